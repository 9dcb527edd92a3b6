//! A word on a terminal about what takes more than a second, gone when it is done; says nothing
//! elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Sooner nobody wonders.
const AFTER: Duration = Duration::from_secs(1);

/// Back to the first column, and what is behind it is gone.
const ERASE: &str = "\r\x1b[K";

/// Something that may take long, until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// For stderr, if it is a terminal that can erase a line and `is_wanted`.
    pub(crate) fn start(what: &'static str, is_wanted: bool) -> Progress {
        let term = std::env::var_os("TERM").filter(|term| !term.is_empty() && term != "dumb");
        match is_wanted && term.is_some() && io::stderr().is_terminal() {
            true => Progress::on(io::stderr(), what, AFTER),
            false => Progress(None),
        }
    }

    fn on(mut to: impl Write + Send + 'static, what: &'static str, after: Duration) -> Progress {
        let (done, is_done) = channel();
        let shown = move || {
            let mut times = 0u32;
            while is_done.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
                times = times.saturating_add(1);
                let seconds = (after * times).as_secs();
                // Nobody to tell is nobody who wonders.
                write!(to, "{ERASE}postern: {what}, {seconds} s").and_then(|()| to.flush()).ok();
            }
            if times > 0 {
                to.write_all(ERASE.as_bytes()).ok();
            }
        };
        // Without a thread there is no word.
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(shown);
        Progress(thread.ok().map(|thread| (done, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.0.take() {
            drop(done);
            // It has said its last, so that nothing is erased that comes next.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_takes_long_is_told_and_erased() {
        let rows = [
            (Duration::from_secs(60), Duration::ZERO, ""),
            (
                Duration::from_millis(300),
                Duration::from_millis(450),
                "\r\x1b[Kpostern: x, 0 s\r\x1b[K",
            ),
        ];
        for (after, taken, expected) in rows {
            let (mut screen, to) = io::pipe().unwrap();
            let progress = Progress::on(to, "x", after);
            thread::sleep(taken);
            drop(progress);
            let mut shown = String::new();
            screen.read_to_string(&mut shown).unwrap();
            assert_eq!(shown, expected);
        }
    }
}
