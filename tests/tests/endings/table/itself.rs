//! Guests that end by themselves, or do not begin.

use postern::{Command, Ending, Error, Stdin};

use super::{AT_ONCE, Act, Flag, Row, Told, row, sh, sh_limited};

/// Every signal that ends a program, and two real-time ones.
const SIGNALS: [i32; 25] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31, 34, 64];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = codes();
    rows.extend(SIGNALS.map(by_signal));
    rows.extend(not_started());
    rows
}

fn exits(name: &str, script: &'static str, code: i32, stdout: &str) -> Row {
    row(name, sh(script), Act::Run, AT_ONCE, Told::Result(Ending::Exited(code), &[]), stdout)
}

fn codes() -> Vec<Row> {
    let kib = "x".repeat(1000 * 1024);
    let ten = "y\n".repeat(500);
    vec![
        exits("leaves with 0", "echo out; echo err >&2", 0, "out\n"),
        exits("leaves with 1", "echo out; exit 1", 1, "out\n"),
        exits("leaves with 255", "printf out; exit 255", 255, "out"),
        exits("says 124, as after a time limit", "exit 124", 124, ""),
        exits("says 137, as after a kill", "echo out; exit 137", 137, "out\n"),
        exits("leaves a megabyte", "printf %01024000d 0 | tr 0 x; exit 3", 3, &kib),
        row(
            "leaves as its time is up, the caller being late",
            sh_limited("echo out; exit 5"),
            Act::Started(|begun| {
                std::thread::sleep(super::SHORT);
                begun.wait()
            }),
            AT_ONCE,
            Told::Result(Ending::Exited(5), &[]),
            "out\n",
        ),
        row(
            "writes more than its cap",
            |mark| sh("yes | head -c 10000000; exit 2")(mark).output_bytes_max(1000),
            Act::Run,
            AT_ONCE,
            Told::Result(Ending::Exited(2), &[Flag::Truncated]),
            &ten,
        ),
        row(
            "does not read its input",
            |mark| sh("echo out; exit 4")(mark).stdin(Stdin::Bytes(vec![b'x'; 4 << 20])),
            Act::Run,
            AT_ONCE,
            Told::Result(Ending::Exited(4), &[]),
            "out\n",
        ),
    ]
}

fn by_signal(signal: i32) -> Row {
    row(
        format!("sends itself signal {signal}"),
        move |mark| {
            Command::new("/bin/sh")
                .args(["-c", "echo out; kill -$1 $$; sleep 60", mark])
                .arg(signal.to_string())
        },
        Act::Run,
        AT_ONCE,
        Told::Result(Ending::Signaled(signal), &[]),
        "out\n",
    )
}

fn not_started() -> Vec<Row> {
    let rows = [
        ("not there", "/nowhere/program", libc::ENOENT),
        ("not on the path", "no-such-program", libc::ENOENT),
        ("beneath a file", "/bin/sh/program", libc::ENOTDIR),
        ("not executable", "/workspace/plain", libc::EACCES),
        ("a directory", "/usr", libc::EACCES),
        ("no program", "/workspace/garbage", libc::ENOEXEC),
        ("for an interpreter that is not there", "/workspace/orphan", libc::ENOENT),
    ];
    let failed = |(name, program, errno): (&str, &'static str, i32)| {
        let told = Told::Result(Ending::ExecFailed(errno), &[]);
        row(
            format!("is {name}"),
            move |mark| Command::new(program).arg(mark),
            Act::Run,
            AT_ONCE,
            told,
            "",
        )
    };
    let mut rows: Vec<Row> = rows.into_iter().map(failed).collect();
    rows.push(row(
        "has an argument longer than the kernel takes",
        |mark| Command::new("/bin/true").args([mark, &"x".repeat(200_000)]),
        Act::Run,
        AT_ONCE,
        Told::Result(Ending::ExecFailed(libc::E2BIG), &[]),
        "",
    ));
    rows.push(row(
        "has a name longer than the kernel takes",
        |mark| Command::new(format!("/{}", "x".repeat(5000))).arg(mark),
        Act::Run,
        AT_ONCE,
        Told::Result(Ending::ExecFailed(libc::ENAMETOOLONG), &[]),
        "",
    ));
    rows.push(row(
        "is to begin in a directory that is not there",
        |mark| Command::new("/bin/true").arg(mark).cwd("/nowhere"),
        Act::Run,
        AT_ONCE,
        Told::Failed(|error| matches!(error, Error::Launch(_))),
        "",
    ));
    rows
}
