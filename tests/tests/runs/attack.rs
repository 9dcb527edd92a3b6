//! Guests that mean harm to whoever waits for them, each way: they end when they are to, and the
//! next run is as good as the first.

use std::time::{Duration, Instant};

use postern::{Command, Ending, SandboxProfile, Stdin};

use crate::ways::{Service, each_way, sh};
use crate::{HANG, begin, sandbox, sandbox_of};

const TIME: Duration = Duration::from_millis(500);

/// Takes all pieces of a run and then its result, which must come soon after its time is up.
fn survives(service: &Service<'_>, name: &str, command: Command) {
    let begun = Instant::now();
    let mut live = service.start(command.clone().timeout(TIME));
    while live.next_chunk().unwrap().is_some() {}
    live.wait().unwrap();
    service.run(command.timeout(TIME).output_bytes_max(1000)).unwrap();
    assert!(begun.elapsed() < HANG, "{name}, {:?}: {:?}", service.way, begun.elapsed());
    let after = service.run(["echo", "on"]).unwrap();
    assert_eq!(after.stdout_text(), "on\n", "after {name}");
}

#[test]
fn hostile_guests_end_in_time() {
    let _watch = begin();
    let mut profile = SandboxProfile::default();
    profile.limits.nproc = Some(64);
    let feed = Stdin::Bytes(vec![0; 1 << 20]);
    let rows = [
        ("a stopped guest", sh("kill -STOP $$; echo on")),
        ("all stopped", sh("sleep 1000 & sleep 1000 & kill -STOP -1")),
        ("a fork bomb", Command::bash("b() { echo x; b | b & }; b")),
        ("a fork bomb that detaches", sh("b() { setsid sh -c \"$0\" & setsid sh -c \"$0\" & }; b")),
        ("endless output", Command::new("yes")),
        ("endless output on both", sh("yes & yes >&2")),
        ("endless empty lines", sh("yes ''")),
        ("an endless line", sh("cat /dev/zero")),
        ("noise", sh("cat /dev/urandom >&2")),
        ("a guest that reads its own output", sh("yes | head -c 100000 & cat /proc/self/fd/1")),
        (
            "a guest that feeds itself",
            sh("exec 3>/proc/self/fd/0; cat; yes >&3").stdin(feed.clone()),
        ),
        ("a guest that is fed and stops", sh("kill -STOP $$").stdin(feed)),
        ("signals to PID 1", sh("while :; do kill -TERM 1; kill -KILL 1; kill -STOP 1; done")),
        ("a guest that kills all", sh("sleep 1000 & kill -KILL -1; echo on; sleep 1000")),
    ];
    each_way(&sandbox_of(profile), |service| {
        for (name, command) in &rows {
            survives(service, name, command.clone());
        }
    });
}

#[test]
fn a_stopped_guest_is_killed_when_its_grace_is_over() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let mut live = service.start_sh("echo ready; kill -STOP $$");
        assert_eq!(live.line(), "ready");
        std::thread::sleep(Duration::from_millis(50));
        live.terminate(Duration::from_millis(100));
        let result = live.wait().unwrap();
        assert_eq!((result.ending, result.terminated), (Ending::Killed(9), true));
    });
}

/// What a guest does to its ends of the pipes is not done to the service's.
#[test]
fn a_guest_that_changes_its_pipes_changes_nothing_here() {
    let _watch = begin();
    let code = "import fcntl, os, sys\nfor fd in (0, 1, 2):\n    fcntl.fcntl(fd, 1031, 1 << 20)\n    \
                os.set_blocking(fd, False)\ndata = sys.stdin.buffer.read() or b''\n\
                os.set_blocking(1, True)\nos.write(1, b'o' * (1 << 20)); os.write(2, b'e' * (1 << 20))";
    each_way(&sandbox(), |service| {
        let command = Command::python(code).stdin(Stdin::Bytes(vec![b'i'; 1 << 20]));
        let result = service.run(command.clone()).unwrap();
        let lens = (result.stdout.len(), result.stderr.len());
        assert_eq!(lens, (1 << 20, 1 << 20), "{}", result.stderr_text());
        let mut live = service.start(command);
        let mut sum = live.next_chunk().unwrap().unwrap().bytes.len();
        // All of it is in the pipes by now, and its writer gone.
        std::thread::sleep(Duration::from_millis(1500));
        while let Some(chunk) = live.next_chunk().unwrap() {
            sum += chunk.bytes.len();
        }
        assert_eq!(sum, 2 << 20, "{:?}", service.way);
    });
}
