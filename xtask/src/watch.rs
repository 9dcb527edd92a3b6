//! Runs one command to its end, line by line, and gives up on it after a deadline. What a test prints
//! is shown and counted; what it means otherwise is its caller's affair.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::arguments::Length;
use crate::command::start;
use crate::failure::Failure;
use crate::tally::Tally;

impl Length {
    /// How long one executable may take.
    fn deadline(self) -> Duration {
        match self {
            Self::Sample => Duration::from_secs(20 * 60),
            Self::Long => Duration::from_secs(3 * 60 * 60),
        }
    }
}

/// What became of one command: what it counted, and what went wrong besides.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) tally: Tally,
    pub(crate) trouble: Option<String>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) status: ExitStatus,
    /// Its output was still open when its time was up.
    pub(crate) hung: bool,
}

/// Runs a test until its output ends, and counts.
pub(crate) fn watch(
    command: Command,
    length: Length,
    show: &mut impl Write,
) -> Result<Watched, Failure> {
    let mut tally = Tally::default();
    let deadline = length.deadline();
    let followed = follow(command, deadline, |line| {
        tally.line(line);
        drop(writeln!(show, "{line}"));
    })?;
    let trouble = match followed.status {
        _ if followed.hung => {
            Some(format!("its output was still open after {} s", deadline.as_secs()))
        }
        status if tally.results == 0 => Some(format!("it printed no result: {status}")),
        status if status.success() || tally.failed > 0 => None,
        status => Some(format!("no test failed, yet {status}")),
    };
    Ok(Watched { tally, trouble })
}

/// Runs a command until its output ends: a process it left behind keeps the output open, and so is
/// found by the deadline.
pub(crate) fn follow(
    mut command: Command,
    deadline: Duration,
    mut line: impl FnMut(&str),
) -> Result<Followed, Failure> {
    let (reader, writer) = io::pipe().map_err(|source| start(&command, source))?;
    let second = writer.try_clone().map_err(|source| start(&command, source))?;
    command.stdin(Stdio::null()).stdout(writer).stderr(second);
    let mut child = command.spawn().map_err(|source| start(&command, source))?;
    let program = command.get_program().to_owned();
    // The command holds our ends of the pipe, which would keep the output open.
    drop(command);

    let ended = each(&lines(reader), deadline, &mut line);
    if !ended {
        drop(child.kill());
    }
    let status = child.wait().map_err(|source| Failure::Start { program, source })?;
    Ok(Followed { status, hung: !ended })
}

fn lines(reader: io::PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(reader).split(b'\n').map_while(Result::ok);
        for line in lines {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Whether the output ended in time.
fn each(lines: &Receiver<String>, deadline: Duration, act: &mut impl FnMut(&str)) -> bool {
    let start = Instant::now();
    loop {
        match lines.recv_timeout(deadline.saturating_sub(start.elapsed())) {
            Ok(line) => act(&line),
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::program;

    #[test]
    fn each_end_of_a_command_is_told() {
        let result = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let failed = "echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101";
        let rows = [
            (result.to_owned(), None),
            (failed.to_owned(), None),
            (format!("{result} >&2"), None),
            ("true".to_owned(), Some("it printed no result: exit status: 0")),
            ("kill -9 $$".to_owned(), Some("it printed no result: signal: 9 (SIGKILL)")),
            (format!("{result}; exit 3"), Some("no test failed, yet exit status: 3")),
        ];
        for (script, trouble) in rows {
            let mut shell = program("sh");
            shell.args(["-c", &script]);
            let watched = watch(shell, Length::Sample, &mut io::sink()).unwrap();
            assert_eq!(watched.trouble.as_deref(), trouble, "{script}");
        }
    }

    #[test]
    fn an_output_left_open_is_given_up() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(!each(&lines(reader), Duration::from_millis(10), &mut |_: &str| ()));
        drop(writer);
    }
}
