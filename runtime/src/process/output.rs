//! What a guest writes, piece by piece as it comes; keeps nothing that has been handed over.

use std::collections::VecDeque;

/// Which of its outputs a guest wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output; with [`Command::merge_output`](crate::Command::merge_output) both.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Both, in the order of their descriptors.
    pub(crate) const BOTH: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

    /// The other one.
    pub(crate) const fn other(self) -> OutputStream {
        match self {
            OutputStream::Stdout => OutputStream::Stderr,
            OutputStream::Stderr => OutputStream::Stdout,
        }
    }
}

/// A piece of output, never empty, of at most 64 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk {
    /// Where the guest wrote it.
    pub stream: OutputStream,
    /// What it wrote.
    pub bytes: Vec<u8>,
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Where the guest wrote it.
    pub stream: OutputStream,
    /// The line without its newline.
    pub bytes: Vec<u8>,
    /// The guest ended it with a newline. False for the last line of a stream that ends without
    /// one, and for a part of a line that is longer than [`LINE_BYTES_MAX`].
    pub complete: bool,
}

impl Line {
    /// The line as text; what is no UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Bytes of the longest line that is kept whole: 1 MiB. A longer one comes in parts of that size.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Puts lines together from chunks.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    ready: VecDeque<Line>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Splitter {
    fn partial(&mut self, stream: OutputStream) -> &mut Vec<u8> {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    fn finish_line(&mut self, stream: OutputStream, complete: bool) {
        let bytes = std::mem::take(self.partial(stream));
        self.ready.push_back(Line { stream, bytes, complete });
    }

    pub(crate) fn push(&mut self, chunk: &Chunk) {
        for piece in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, complete) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            let mut piece = piece;
            loop {
                let partial = self.partial(chunk.stream);
                let room = LINE_BYTES_MAX.saturating_sub(partial.len()).min(piece.len());
                let (head, tail) = piece.split_at(room);
                partial.extend_from_slice(head);
                piece = tail;
                if piece.is_empty() {
                    break;
                }
                self.finish_line(chunk.stream, false);
            }
            if complete {
                self.finish_line(chunk.stream, true);
            }
        }
    }

    /// The next line that is there.
    pub(crate) fn next(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    /// What is left once both streams have ended.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        for stream in OutputStream::BOTH {
            if !self.partial(stream).is_empty() {
                self.finish_line(stream, false);
            }
        }
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[(OutputStream, &[u8])]) -> Vec<(OutputStream, String, bool)> {
        let mut splitter = Splitter::default();
        for (stream, bytes) in chunks {
            splitter.push(&Chunk { stream: *stream, bytes: bytes.to_vec() });
        }
        let mut all = Vec::new();
        while let Some(line) = splitter.next().or_else(|| splitter.rest()) {
            all.push((line.stream, line.text().into_owned(), line.complete));
        }
        all
    }

    #[test]
    fn lines_are_put_together_within_a_stream() {
        use OutputStream::{Stderr, Stdout};
        let chunks: [(OutputStream, &[u8]); 5] = [
            (Stdout, b"one\n\ntw"),
            (Stderr, b"err"),
            (Stdout, b"o\nthree"),
            (Stderr, b"or\n"),
            (Stderr, b"end"),
        ];
        let row = |stream, text: &str, complete| (stream, text.to_owned(), complete);
        let expected = [
            row(Stdout, "one", true),
            row(Stdout, "", true),
            row(Stdout, "two", true),
            row(Stderr, "error", true),
            row(Stdout, "three", false),
            row(Stderr, "end", false),
        ];
        assert_eq!(lines(&chunks), expected);
    }

    #[test]
    fn an_endless_line_comes_in_parts() {
        let long = vec![b'x'; LINE_BYTES_MAX + 3];
        let found = lines(&[(OutputStream::Stdout, &long), (OutputStream::Stdout, b"\n")]);
        let shape: Vec<_> = found.iter().map(|(_, text, end)| (text.len(), *end)).collect();
        assert_eq!(shape, [(LINE_BYTES_MAX, false), (3, true)]);
        let exact = vec![b'x'; LINE_BYTES_MAX];
        let found = lines(&[(OutputStream::Stdout, &exact), (OutputStream::Stdout, b"\n")]);
        let shape: Vec<_> = found.iter().map(|(_, text, end)| (text.len(), *end)).collect();
        assert_eq!(shape, [(LINE_BYTES_MAX, true)]);
    }
}
