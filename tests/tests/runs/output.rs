//! What a guest writes arrives as it comes, in order and whole, each way.

use std::time::{Duration, Instant};

use postern::{Chunk, Command, Ending, LINE_BYTES_MAX, OutputStream, Stdin};

use crate::ways::{Live, each_way, sh};
use crate::{HANG, begin, figure, long_or, sandbox};

/// Everything that is left, each stream by itself.
fn all_of(live: &mut Live<'_>) -> [Vec<u8>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    while let Some(Chunk { stream, bytes, .. }) = live.next_chunk().unwrap() {
        assert!(!bytes.is_empty() && bytes.len() <= 64 << 10, "{} bytes", bytes.len());
        all[usize::from(stream == OutputStream::Stderr)].extend(bytes);
    }
    all
}

/// A pipe is the guest's to enlarge, a piece is not.
#[test]
fn pieces_are_of_a_bounded_size() {
    let _watch = begin();
    const F_SETPIPE_SZ: u32 = 1031;
    let code = format!(
        "import fcntl, os\nfcntl.fcntl(1, {F_SETPIPE_SZ}, 1 << 20)\n\
         for size in 16_000, 500_000: os.write(1, bytes(size)); os.read(0, 1)"
    );
    each_way(&sandbox(), |service| {
        let command = Command::python(code.as_str()).stdin(Stdin::Piped).timeout(HANG);
        let mut live = service.start(command);
        let mut bytes = live.next_chunk().unwrap().unwrap().bytes.len();
        live.write_stdin(b"xx").unwrap();
        bytes += all_of(&mut live)[0].len();
        assert_eq!(bytes, 516_000, "{:?}", service.way);
    });
}

/// The guest does not go on before it is told to, so that each line has come by itself.
#[test]
fn lines_come_while_the_guest_lives() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let script = "for n in 1 2 3; do echo out $n; read x; echo err $n >&2; read x; done; \
                      printf end; read x";
        let mut live = service.start(sh(script).stdin(Stdin::Piped).timeout(HANG));
        for n in ["1", "2", "3"] {
            for (stream, word) in [(OutputStream::Stdout, "out"), (OutputStream::Stderr, "err")] {
                let line = live.next_line().unwrap().unwrap();
                let found = (line.stream, line.text(), line.complete);
                assert_eq!(found, (stream, format!("{word} {n}").into(), true));
                live.write_stdin(b"\n").unwrap();
            }
        }
        let piece = live.next_chunk().unwrap().unwrap();
        assert_eq!((piece.stream, &piece.bytes[..]), (OutputStream::Stdout, &b"end"[..]));
        live.close_stdin();
        assert_eq!(live.next_line().unwrap(), None);
        assert_eq!(live.wait().unwrap().ending, Ending::Exited(1), "{:?}", service.way);
    });
}

/// Numbers in order on both streams at once.
#[test]
fn each_stream_keeps_its_order() {
    let _watch = begin();
    let megabytes = long_or(100, 20);
    let numbers = megabytes * 500_000 / 4;
    let code = format!(
        "import os\nfor n in range(0, {numbers}, 1000):\n    \
         b = b''.join(b'%07d\\n' % i for i in range(n, n + 1000))\n    os.write(1, b); os.write(2, b)\n"
    );
    each_way(&sandbox(), |service| {
        let begun = Instant::now();
        let mut live = service.start(Command::python(code.clone()));
        let all = all_of(&mut live);
        figure(format!("{megabytes} MB on two streams, {:?}: {:?}", service.way, begun.elapsed()));
        for stream in &all {
            assert_eq!(stream.len(), numbers * 8);
            let in_order = |(n, line): (usize, &[u8])| line == format!("{n:07}\n").as_bytes();
            assert!(stream.chunks(8).enumerate().all(in_order), "{:?}", service.way);
        }
        assert!(live.wait().unwrap().ok());
    });
}

#[test]
fn merged_output_keeps_the_true_order() {
    let _watch = begin();
    let script = "for n in $(seq 500); do echo $n; echo $n >&2; done";
    let expected: String = (1..=500).map(|n| format!("{n}\n{n}\n")).collect();
    each_way(&sandbox(), |service| {
        let result = service.run(sh(script).merge_output(true)).unwrap();
        assert_eq!((result.stdout_text(), result.stderr.len()), (expected.as_str().into(), 0));
        let [stdout, stderr] = all_of(&mut service.start(sh(script).merge_output(true)));
        assert_eq!((String::from_utf8(stdout).unwrap(), stderr.len()), (expected.clone(), 0));
    });
}

/// Script, and its lines: their lengths, and whether a newline ended them.
const LINES: [(&str, &[(usize, bool)]); 5] = [
    ("printf 'a\\n\\nbc'", &[(1, true), (0, true), (2, false)]),
    ("printf '\\n'", &[(0, true)]),
    ("true", &[]),
    (
        "head -c 3145728 /dev/zero; echo; echo x",
        &[(LINE_BYTES_MAX, false), (LINE_BYTES_MAX, false), (LINE_BYTES_MAX, true), (1, true)],
    ),
    ("printf '\\0\\377\\r\\n'", &[(3, true)]),
];

#[test]
fn lines_are_whole_and_as_they_were_written() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for (script, expected) in LINES {
            let mut live = service.start_sh(script);
            let mut found = Vec::new();
            while let Some(line) = live.next_line().unwrap() {
                found.push((line.bytes.len(), line.complete));
            }
            assert_eq!(found, expected, "{script}, {:?}", service.way);
        }
    });
}

#[test]
fn every_byte_comes_through() {
    let _watch = begin();
    let every: Vec<u8> = (0..=255).collect();
    each_way(&sandbox(), |service| {
        let code = "import os; os.write(1, bytes(range(256))); os.write(2, bytes(range(256)))";
        let result = service.run(Command::python(code)).unwrap();
        assert_eq!((&result.stdout, &result.stderr), (&every, &every));
        let [stdout, stderr] = all_of(&mut service.start(Command::python(code)));
        assert_eq!((&stdout, &stderr), (&every, &every));
    });
}

/// The end of the output is not the end of the run.
#[test]
fn a_guest_may_close_its_outputs_and_live_on() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let script = "echo a; exec >&- 2>&-; read x; exit 5";
        let mut live = service.start(sh(script).stdin(Stdin::Piped).timeout(HANG));
        assert_eq!(live.line(), "a");
        assert_eq!(live.next_line().unwrap(), None);
        assert_eq!(live.next_chunk().unwrap(), None);
        live.write_stdin(b"\n").unwrap();
        assert_eq!(live.wait().unwrap().ending, Ending::Exited(5), "{:?}", service.way);
    });
}

/// A grandchild that holds the pipe ends with the run, and the output with it.
#[test]
fn what_outlives_the_program_ends_with_the_run() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let begun = Instant::now();
        let script = "setsid sh -c 'echo grandchild; sleep 1000' & read x; echo end";
        let mut live = service.start(sh(script).stdin(Stdin::Piped));
        assert_eq!(live.line(), "grandchild");
        live.write_stdin(b"\n").unwrap();
        assert_eq!(live.line(), "end");
        assert_eq!(live.next_line().unwrap(), None);
        assert!(live.wait().unwrap().ok(), "{:?}", service.way);
        assert!(begun.elapsed() < HANG);
    });
}

/// The guest counts what it could write, and is no further while nobody takes any.
#[test]
fn a_guest_waits_for_output_to_be_taken() {
    let _watch = begin();
    let sandbox = sandbox();
    let code = "import os\nfor n in range(256):\n    os.write(1, b'x' * 4096)\n    \
                open('/workspace/count', 'w').write(str(n + 1))\n";
    each_way(&sandbox, |service| {
        let workspace = sandbox.workspace().unwrap();
        let count = || String::from_utf8(workspace.read("count", 9).unwrap()).unwrap();
        workspace.write("count", "0").unwrap();
        let mut live = service.start(Command::python(code));
        let first = live.next_chunk().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let written: usize = count().parse().unwrap();
        let room = (64 << 10) + first.bytes.len();
        assert!((1..=room / 4096 + 1).contains(&written), "{written} pages, {:?}", service.way);
        let [rest, _] = all_of(&mut live);
        assert_eq!(first.bytes.len() + rest.len(), 256 * 4096);
        assert!(live.wait().unwrap().ok());
    });
}

/// What the first reader of lines has begun, the second one has.
#[test]
fn readers_of_lines_may_come_and_go() {
    let _watch = begin();
    let sandbox = sandbox();
    let mut process = sandbox.start(sh("seq 1000; printf last")).unwrap();
    let mut found = Vec::new();
    for taken in 1..60 {
        found.extend(process.lines().take(taken).map(|line| line.unwrap().text().into_owned()));
    }
    let expected: Vec<_> = (1..=1000).map(|n| n.to_string()).chain(["last".to_owned()]).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_stream_may_be_taken_after_a_piece_of_it() {
    let _watch = begin();
    let sandbox = sandbox();
    let script = "echo first; read x; sleep 0.2; echo second; sleep 0.2; echo third";
    let mut process = sandbox.start(sh(script).stdin(Stdin::Piped)).unwrap();
    let first = process.next_chunk().unwrap().unwrap();
    assert_eq!(first.bytes, b"first\n");
    let stdout = process.take_stdout().unwrap();
    process.write_stdin("\n").unwrap();
    // Blocking again: nothing is there yet.
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut &stdout, &mut rest).unwrap();
    assert_eq!(rest, "second\nthird\n");
    let result = process.wait().unwrap();
    assert!(result.ok() && result.stdout.is_empty());
}

/// Output that was written before the end is there however late it is asked for.
#[test]
fn late_readers_lose_nothing() {
    let _watch = begin();
    let sandbox = sandbox();
    let late = |number: u32| {
        let mut process = sandbox.start(sh("echo out; echo err >&2")).unwrap();
        let mut lines = Vec::new();
        for line in process.lines() {
            lines.push(line.unwrap().text().into_owned());
            std::thread::sleep(Duration::from_millis(1200));
        }
        lines.sort();
        assert_eq!(lines, ["err", "out"], "run {number}");
    };
    // Many at once, so that some are seen to end before anything is read.
    std::thread::scope(|scope| {
        for number in 0..long_or(400, 64) {
            scope.spawn(move || late(number));
        }
    });
}
