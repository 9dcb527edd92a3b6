//! stdin, stdout and stderr of the command: passed on whole, closed, full, shared, or not there.

use std::fs::{File, Permissions, set_permissions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use postern_tests::{Scratch, Watch};
use rustix::fs::{OFlags, fcntl_setfl};

use crate::command::{run, shell, soon, start, text, words};

#[test]
fn stdin_reaches_the_guest_to_its_end() {
    let _watch = Watch::begin();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(3_000_001).collect();
    let mut child =
        start(&["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == bytes, "{} of {} bytes", output.stdout.len(), bytes.len());
}

#[test]
fn a_guest_that_ignores_stdin_is_not_waited_for() {
    let _watch = Watch::begin();
    let started = Instant::now();
    let mut child = start(&["run", "--", "true"]).stdin(Stdio::piped()).spawn().unwrap();
    let kept = child.stdin.take();
    let status = child.wait().unwrap();
    drop(kept);
    assert_eq!(status.code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// A loop that reads its list from stdin keeps it.
#[test]
fn stdin_is_left_alone_where_it_is_null() {
    let _watch = Watch::begin();
    let script = "printf 'a\\nb\\nc\\n' | while read -r word; do \
                  $P run --stdin null -- sh -c 'cat; echo \"$1\"' sh \"$word\"; done";
    let output = shell(script).output().unwrap();
    assert_eq!(text(&output.stdout), "a\nb\nc\n", "{}", words(&output.stderr));
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_guest() {
    let _watch = Watch::begin();
    let mut child = start(&["run", "--", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0u8; 4096]).unwrap();
    drop(stdout);
    // SIGPIPE, as for any program in a pipe.
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn closed_pipes_are_no_news() {
    let _watch = Watch::begin();
    // A while later, so that the reader is surely gone.
    let rows = [
        ("$P run -- yes | head -n 1", "y\n", "141 0"),
        ("(sleep 0.5; exec $P run --json -- echo x) | true", "", "141 0"),
        ("(sleep 0.5; exec $P profile schema) | true", "", "141 0"),
        ("(sleep 0.5; exec $P run -- yes) | true", "", "141 0"),
    ];
    for (script, stdout, codes) in rows {
        let script = format!("{script}; codes=\"${{PIPESTATUS[*]}}\"; echo \"codes=$codes\" >&2");
        let output = shell(&script).output().unwrap();
        let stderr = words(&output.stderr);
        assert_eq!(text(&output.stdout), stdout, "{script}: {stderr}");
        assert_eq!(stderr, format!("codes={codes}\n"), "{script}");
    }
}

/// Nobody would see what it does from then on.
#[test]
fn an_output_that_cannot_be_written_ends_the_run() {
    let _watch = Watch::begin();
    let rows: [(&[&str], bool); 4] = [
        (&["run", "--", "sh", "-c", "echo lost; exec sleep 60"], false),
        (&["run", "--", "sh", "-c", "echo lost >&2; exec sleep 60"], true),
        (&["run", "--json", "--", "echo", "lost"], false),
        (&["plan"], false),
    ];
    for (arguments, is_stderr) in rows {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = start(arguments);
        let command = if is_stderr { command.stderr(full) } else { command.stdout(full) };
        let started = Instant::now();
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert!(started.elapsed() < Duration::from_secs(20), "{arguments:?}");
        let expected =
            if is_stderr { "" } else { "postern: cannot write to stdout: No space left" };
        assert!(words(&output.stderr).starts_with(expected), "{}", words(&output.stderr));
    }
}

#[test]
fn streams_that_are_closed_at_the_start_are_empty() {
    let _watch = Watch::begin();
    let rows = [
        ("$P run -- cat <&-", "", ""),
        ("$P run -- sh -c 'echo out; echo err >&2' >&-", "", "err\n"),
        ("$P run -- sh -c 'echo out; echo err >&2' 2>&-", "out\n", ""),
        ("$P run -- sh -c 'ls /proc/self/fd | wc -l' <&- 2>&-", "4\n", ""),
        ("$P run -- true <&- >&- 2>&-", "", ""),
        ("$P python -c 'print(1)' <&- 2>&-", "1\n", ""),
    ];
    for (script, stdout, stderr) in rows {
        let output = shell(script).output().unwrap();
        let words = words(&output.stderr);
        assert_eq!((text(&output.stdout).as_str(), words.as_str()), (stdout, stderr), "{script}");
        assert_eq!(output.status.code(), Some(0), "{script}");
    }
}

/// A guest may hand its end of a pipe to another process, which is not waited for.
#[test]
fn a_stranger_that_holds_an_output_is_not_waited_for() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let shared = scratch.directory("shared", 0o777);
    let listener = UnixListener::bind(shared.join("socket")).unwrap();
    set_permissions(shared.join("socket"), Permissions::from_mode(0o777)).unwrap();
    let code = "import array, socket; s = socket.socket(socket.AF_UNIX); s.connect('/shared/socket'); \
                s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1]))]); \
                print('sent')";
    let bind = format!("{}:/shared", shared.display());
    let started = Instant::now();
    let output = run(&["python", "--rw-bind", &bind, "-c", code]);
    assert_eq!(text(&output.stdout), "sent\n", "{}", words(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    drop(listener);
}

/// Both streams often share one open file, as after `2>&1`, and so does whoever writes next.
#[test]
fn a_file_that_both_streams_share_loses_nothing() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let path = scratch.file("log", b"", 0o644);
    let mut file = File::options().write(true).open(&path).unwrap();
    let (stdout, stderr) = (file.try_clone().unwrap(), file.try_clone().unwrap());
    let script = "echo out; sleep 0.1; echo err >&2; sleep 0.1; echo more";
    let status =
        start(&["run", "--", "sh", "-c", script]).stdout(stdout).stderr(stderr).status().unwrap();
    assert_eq!(status.code(), Some(0));
    file.write_all(b"after\n").unwrap();
    let log = words(&std::fs::read(&path).unwrap());
    assert_eq!(log.lines().collect::<Vec<_>>(), ["out", "err", "more", "after"]);
}

/// As node sets the streams that its children share with it.
#[test]
fn streams_that_do_not_wait_are_waited_for() {
    let _watch = Watch::begin();
    for arguments in [&["run", "--", "cat"][..], &["run", "--json", "--", "cat"]] {
        let (input, mut sent) = std::io::pipe().unwrap();
        let (mut received, output) = std::io::pipe().unwrap();
        for fd in [input.as_fd(), output.as_fd()] {
            fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
        }
        let mut command = start(arguments);
        let mut child = command.stdin(input).stdout(output).spawn().unwrap();
        drop(command);
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            sent.write_all(&[b'x'; 500_000]).unwrap();
        });
        std::thread::sleep(Duration::from_millis(600));
        let mut bytes = Vec::new();
        received.read_to_end(&mut bytes).unwrap();
        writer.join().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(bytes.iter().filter(|byte| **byte == b'x').count() / 500_000, 1);
    }
}

#[test]
fn merged_output_keeps_its_order() {
    let _watch = Watch::begin();
    let script = "i=0; while [ $i -lt 200 ]; do echo $i; echo e$i >&2; i=$((i+1)); done";
    let expected: String = (0..200).map(|number| format!("{number}\ne{number}\n")).collect();
    let output = run(&["run", "--merge", "--", "sh", "-c", script]);
    assert_eq!((text(&output.stdout), words(&output.stderr)), (expected, String::new()));
}

/// The time limit holds although nobody reads, then or later.
#[test]
fn a_reader_that_does_not_read_holds_up_no_limit() {
    let _watch = Watch::begin();
    let mut child = start(&["run", "--timeout", "0.5", "--stats", "--", "yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut unread = child.stdout.take().unwrap();
    if !soon(|| child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
    }
    let mut written = Vec::new();
    unread.read_to_end(&mut written).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = words(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert!(
        stderr.starts_with("[postern] timed out\npostern: end: killed: its time of 500ms was up\n"),
        "{stderr}"
    );
    assert!(written.len() < 1_000_000, "{}", written.len());
    let time = stderr.split_once("postern: time: 0.").expect("less than a second").1;
    assert!(time.starts_with(['5', '6', '7', '8', '9']), "{time}");
}
