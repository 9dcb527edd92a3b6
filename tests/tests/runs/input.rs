//! What a guest is given to read arrives whole, and a guest that does not read it holds up nobody
//! for longer than its time, each way.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use postern::{Command, Ending, Stdin};

use crate::ways::{each_way, sh};
use crate::{HANG, begin, figure, sandbox};

/// No byte repeats at the distance of a page or a pipe.
fn noise(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

#[test]
fn a_hundred_megabytes_go_through_each_way() {
    let _watch = begin();
    let bytes = noise(100_000_000);
    each_way(&sandbox(), |service| {
        let cat = Command::new("cat").stdin(Stdin::Bytes(bytes.clone())).output_bytes_max(u64::MAX);
        let begun = Instant::now();
        let result = service.run(cat).unwrap();
        figure(format!("100 MB through cat, {:?}: {:?}", service.way, begun.elapsed()));
        assert!(result.stdout == bytes, "{} bytes came back", result.stdout.len());
        assert!(result.ok() && !result.truncated);
    });
}

/// A digest that the guest makes of what was written to it, and of the same fed to it.
#[test]
fn what_is_written_is_what_is_read() {
    let _watch = begin();
    let bytes = noise(20_000_000);
    each_way(&sandbox(), |service| {
        let fed = Command::new("sha256sum").stdin(Stdin::Bytes(bytes.clone()));
        let fed = service.run(fed).unwrap().stdout;
        let mut live = service.start(Command::new("sha256sum").stdin(Stdin::Piped).timeout(HANG));
        for part in bytes.chunks(777_777) {
            live.write_stdin(part).unwrap();
        }
        live.close_stdin();
        assert_eq!(live.write_stdin(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        let written = live.wait().unwrap().stdout;
        assert_eq!((written.len(), &written), (68, &fed), "{:?}", service.way);
    });
}

#[test]
fn a_conversation() {
    let _watch = begin();
    let code =
        "import sys\nfor line in sys.stdin:\n    print(int(line) ** 2, flush=True)\nprint('bye')";
    each_way(&sandbox(), |service| {
        let mut live = service.start(Command::python(code).stdin(Stdin::Piped).timeout(HANG));
        for n in 0..200 {
            live.write_stdin(format!("{n}\n").as_bytes()).unwrap();
            assert_eq!(live.line(), (n * n).to_string());
        }
        live.close_stdin();
        assert_eq!(live.line(), "bye");
        assert!(live.wait().unwrap().ok());
    });
}

/// Waiting for the run ends the input that nobody can write to any more.
#[test]
fn waiting_ends_the_input() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start(Command::new("cat").stdin(Stdin::Piped).timeout(HANG));
        live.write_stdin(b"text").unwrap();
        assert_eq!(live.wait().unwrap().stdout_text(), "text");
    });
}

#[test]
fn a_guest_that_does_not_read_runs_out_of_time() {
    let _watch = begin();
    let bytes = noise(1_000_000);
    each_way(&sandbox(), |service| {
        let timed = sh("sleep 1000").timeout(Duration::from_millis(400));
        let begun = Instant::now();
        let mut live = service.start(timed.clone().stdin(Stdin::Piped));
        let error = live.write_stdin(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{:?}", service.way);
        let result = live.wait().unwrap();
        assert!(result.timed_out && begun.elapsed() < HANG);
        let result = service.run(timed.stdin(Stdin::Bytes(bytes.clone()))).unwrap();
        assert!(result.timed_out, "{:?}", service.way);
    });
}

/// A guest that reads a part, or nothing, or closes its input while it is fed: no error of the run.
#[test]
fn a_guest_need_not_read_what_it_is_fed() {
    let _watch = begin();
    let bytes = noise(10_000_000);
    let rows = [
        ("true", ""),
        ("exec <&-; echo closed; sleep 0.1", "closed\n"),
        ("head -c 3 | wc -c", "3\n"),
        ("read x; exec <&-; sleep 0.1; echo on", "on\n"),
        ("head -c 3 >&2; kill -9 $$", ""),
    ];
    each_way(&sandbox(), |service| {
        for (script, stdout) in rows {
            let result = service.run(sh(script).stdin(Stdin::Bytes(bytes.clone()))).unwrap();
            assert_eq!(result.stdout_text(), stdout, "{script}, {:?}", service.way);
        }
    });
}

#[test]
fn a_guest_that_no_longer_reads_is_a_broken_pipe() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let closing = sh("exec <&-; echo closed; sleep 0.1; exit 3");
        let mut live = service.start(closing.stdin(Stdin::Piped));
        assert_eq!(live.line(), "closed");
        // PID 1 closes its own copy about when the guest begins.
        let mut writes = (0..100_000).map(|_| live.write_stdin(b"x"));
        let error = writes.find_map(Result::err).expect("an end of the pipe");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert_eq!(live.wait().unwrap().ending, Ending::Exited(3));
        let mut live = service.start(sh("true"));
        assert_eq!(live.write_stdin(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(live.wait().unwrap().ok());
    });
}
