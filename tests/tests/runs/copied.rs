//! A stream of the caller's is copied to the guest: all of it, to its end, and no more than is taken.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use postern::{Command, Stdin};
use postern_tests::Scratch;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::ways::{each_way, sh};
use crate::{HANG, begin, sandbox};

const LEN: usize = 3_000_001;

fn bytes() -> Vec<u8> {
    (0..=250u8).cycle().take(LEN).collect()
}

fn pipe() -> (OwnedFd, File) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader, writer.into())
}

/// Both ends of a terminal.
fn terminal() -> (File, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    (master.into(), slave.into())
}

#[test]
fn each_kind_of_stream_comes_whole() {
    let _watch = begin();
    let scratch = Scratch::new();
    let path = scratch.path().join("input");
    std::fs::write(&path, bytes()).unwrap();
    let sources: [(&str, &dyn Fn() -> OwnedFd); 4] = [
        ("file", &|| File::open(&path).unwrap().into()),
        ("pipe", &|| {
            let (reader, mut writer) = pipe();
            std::thread::spawn(move || writer.write_all(&bytes()).unwrap());
            reader
        }),
        ("socket", &|| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            std::thread::spawn(move || theirs.write_all(&bytes()).unwrap());
            ours.into()
        }),
        ("slow pipe", &|| {
            let (reader, mut writer) = pipe();
            std::thread::spawn(move || {
                for part in bytes().chunks(LEN / 20) {
                    writer.write_all(part).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            reader
        }),
    ];
    each_way(&sandbox(), |service| {
        for (name, source) in sources {
            let command = Command::new("cat").stdin(Stdin::copied(source())).timeout(HANG);
            let result = service.run(command).unwrap();
            assert!(result.stdout == bytes(), "{name}: {} bytes", result.stdout.len());
            assert!(result.ok(), "{name}, {:?}: {:?}", service.way, result.ending);
        }
        let null = Stdin::copied(File::open("/dev/null").unwrap());
        let result = service.run(sh("cat; echo end").stdin(null)).unwrap();
        assert_eq!(result.stdout_text(), "end\n");
    });
}

/// A terminal of the caller's is a stream like any other; the guest gets a pipe.
#[test]
fn a_terminal_is_copied_too() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let (mut master, slave) = terminal();
        let command = sh("test -t 0 || cat").stdin(Stdin::copied(slave)).timeout(HANG);
        master.write_all(b"one\ntwo\n\x04").unwrap();
        assert_eq!(service.run(command).unwrap().stdout_text(), "one\ntwo\n", "{:?}", service.way);
    });
}

/// What the guest does not take stays where it is, but for one piece and what its pipe holds.
#[test]
fn no_more_is_read_than_the_guest_takes() {
    let _watch = begin();
    let scratch = Scratch::new();
    let path = scratch.path().join("input");
    std::fs::write(&path, bytes()).unwrap();
    each_way(&sandbox(), |service| {
        for (script, most) in [
            ("exec <&-; sleep 0.2", 0),
            ("sleep 0.3", 64 << 10),
            ("head -c 100000 >&2; sleep 0.3", 300 << 10),
        ] {
            let mut file = File::open(&path).unwrap();
            let copy = file.as_fd().try_clone_to_owned().unwrap();
            let closed = script.starts_with("exec");
            // The first piece may be on its way before the guest has closed its end.
            let most = if closed { 64 << 10 } else { most };
            let result = service.run(sh(script).stdin(Stdin::copied(copy)).timeout(HANG)).unwrap();
            assert!(result.ok());
            let at = file.stream_position().unwrap();
            assert!(at <= most, "{script}, {:?}: {at} bytes read", service.way);
        }
    });
}

/// Nobody writes, and the run ends all the same; its time holds; its flags are its own.
#[test]
fn an_input_without_end_holds_up_nobody() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let (reader, _writer) = pipe();
        let own = reader.try_clone().unwrap();
        let begun = Instant::now();
        let command = Command::new("true").stdin(Stdin::copied(reader.try_clone().unwrap()));
        assert!(service.run(command).unwrap().ok());
        let command = Command::new("cat").stdin(Stdin::copied(reader));
        let result = service.run(command.timeout(Duration::from_millis(300))).unwrap();
        assert!(result.timed_out && begun.elapsed() < HANG, "{:?}", service.way);
        assert!(!fcntl_getfl(&own).unwrap().contains(OFlags::NONBLOCK), "{:?}", service.way);
    });
}

/// Somebody else reads the same pipe: what `poll` saw may be gone, and the time limit still holds.
#[test]
fn a_pipe_with_another_reader() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for _ in 0..10 {
            let (reader, mut writer) = pipe();
            let mut other = File::from(reader.try_clone().unwrap());
            let thief = std::thread::spawn(move || {
                let mut byte = [0u8; 64];
                while matches!(other.read(&mut byte), Ok(1..)) {}
            });
            let (is_over, over) = channel::<()>();
            let feeder = std::thread::spawn(move || {
                for _ in 0..20 {
                    writer.write_all(b"x").unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
                // Long enough for a read that waits to be noticed.
                over.recv_timeout(HANG / 4).ok();
            });
            let begun = Instant::now();
            let command = sh("cat >/dev/null").stdin(Stdin::copied(reader));
            let result = service.run(command.timeout(Duration::from_millis(150))).unwrap();
            assert!(result.timed_out && begun.elapsed() < HANG / 8, "{:?}", service.way);
            drop(is_over);
            feeder.join().unwrap();
            thief.join().unwrap();
        }
    });
}

/// A pipe holds what was not asked for.
#[test]
fn a_guest_that_is_gone_leaves_the_rest() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let (reader, mut writer) = pipe();
        let own = reader.try_clone().unwrap();
        let mut live = service
            .start(sh("read x; exec <&-; echo closed; read y <&2").stdin(Stdin::copied(reader)));
        writer.write_all(b"first\n").unwrap();
        assert_eq!(live.line(), "closed");
        writer.write_all(b"second\n").unwrap();
        live.wait().unwrap();
        let left = ioctl_fionread(&own).unwrap();
        assert!(left == 7 || left == 0, "{left} bytes left");
    });
}
