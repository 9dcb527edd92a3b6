//! The output of a live run as iterators, which end after an error.

use super::Process;
use super::output::{Chunk, Line};
use crate::error::Error;

/// The output of a run, a piece at a time. Made by [`Process::output`].
#[derive(Debug)]
pub struct Output<'a> {
    process: Option<&'a mut Process>,
}

impl<'a> Output<'a> {
    pub(super) fn new(process: &'a mut Process) -> Output<'a> {
        Output { process: Some(process) }
    }
}

impl Iterator for Output<'_> {
    type Item = Result<Chunk, Error>;

    fn next(&mut self) -> Option<Result<Chunk, Error>> {
        let next = self.process.as_mut()?.next_chunk().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.process = None;
        }
        next
    }
}

/// The output of a run, a line at a time. Made by [`Process::lines`]. A line that has begun when
/// this is dropped is kept for the next one.
#[derive(Debug)]
pub struct Lines<'a> {
    process: &'a mut Process,
    failed: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(process: &'a mut Process) -> Lines<'a> {
        Lines { process, failed: false }
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<Line, Error>;

    fn next(&mut self) -> Option<Result<Line, Error>> {
        while !self.failed {
            if let Some(line) = self.process.splitter.next() {
                return Some(Ok(line));
            }
            match self.process.next_chunk() {
                Ok(Some(chunk)) => self.process.splitter.push(&chunk),
                Ok(None) => return self.process.splitter.rest().map(Ok),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
