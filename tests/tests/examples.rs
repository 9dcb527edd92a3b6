//! The example programs, run as their readers would; what they say is not compared word for word.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use postern_tests::Watch;
use rustix::process::{Pid, Signal, kill_process};

/// An example: beside the copies that the runner made, or where cargo puts it.
#[expect(clippy::disallowed_methods, reason = "a test starts the program it is about")]
fn example(name: &str) -> Command {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || {
        let own = std::env::current_exe().unwrap();
        own.parent().unwrap().parent().unwrap().join("examples")
    };
    let path = copies.unwrap_or_else(built).join(name);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}

#[test]
fn each_says_what_it_is_for() {
    let _watch = Watch::begin();
    let rows: [(&str, &[&str], i32, &[&str]); 6] = [
        ("one-shot", &["print(6 * 7)"], 0, &["42\n"]),
        ("one-shot", &["import sys; sys.exit(5)"], 5, &[]),
        ("streaming", &[], 0, &["out | step 0\n", "out | step 4\n", "err | done\n", "Exited(0)"]),
        ("many-runs", &[], 0, &["99 2 ['mine']\n", "100 runs by "]),
        ("one-method", &[], 0, &["refused: "]),
        ("untrusted-analysis", &[], 0, &["\"species\""]),
    ];
    for (name, arguments, code, texts) in rows {
        let output = example(name).args(arguments).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {stdout}{stderr}");
        assert!(texts.iter().all(|text| stdout.contains(text)), "{name}: {stdout}{stderr}");
    }
}

/// The guest of a worker that is told to end may tidy up first.
#[test]
fn a_worker_passes_sigterm_on_and_leaves_with_143() {
    let _watch = Watch::begin();
    let mut worker =
        example("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut jobs = worker.stdin.take().unwrap();
    let job = "import signal, sys, time; \
               signal.signal(15, lambda *a: (print('tidied up'), sys.exit(7))); \
               print('begun'); time.sleep(60)";
    writeln!(jobs, "print('first')\n{job}").unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("ready as kernel uid "));
    for expected in ["job: first", "job ended: 0", "job: begun"] {
        assert_eq!(lines.next().unwrap(), expected);
    }
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    for expected in ["job: tidied up", "job ended: 7"] {
        assert_eq!(lines.next().unwrap(), expected);
    }
    assert_eq!(worker.wait().unwrap().code(), Some(143));
}
