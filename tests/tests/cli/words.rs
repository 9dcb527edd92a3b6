//! What the command says itself: marked, short, coloured only for people, and nothing that a
//! terminal would act on.

use std::ffi::OsStr;

use postern_tests::{Scratch, Watch};

use crate::command::{Terminal, postern, run, shell, text, words};

#[test]
fn failures_are_marked_lines_with_the_fix_on_its_own() {
    let _watch = Watch::begin();
    let rows: [(&[&str], &[&str]); 6] = [
        (
            &["run", "--cwd", "tmp", "--", "true"],
            &[
                "postern: cwd: tmp is relative [path-relative]",
                "postern: fix: write an absolute path",
            ],
        ),
        (
            &["run", "--set", "nproc=1", "--", "true"],
            &[
                "postern: --set nproc=1: unknown key `nproc`",
                "postern: fix: did you mean `limits.nproc`?",
            ],
        ),
        (
            &["run", "--set", "hostname=", "--", "true"],
            &[
                "postern: --set hostname=: hostname: is 0 bytes long [hostname-length]",
                "postern: fix: 1 to 64 are allowed",
            ],
        ),
        (
            &["run", "--", "no-such"],
            &[
                "postern: cannot exec \"no-such\": No such file or directory (os error 2)",
                "postern: fix: the guest sees /usr, its workspace and what is bound; show it the program with --ro-bind, or name another",
            ],
        ),
        (&["run"], &["postern: argv: empty; the first word is the program"]),
        (
            &["run", "--profile", "/no/such.toml", "--", "true"],
            &["postern: /no/such.toml: no such file", "postern: fix: check the path"],
        ),
    ];
    for (arguments, expected) in rows {
        let output = run(arguments);
        let stderr = words(&output.stderr);
        assert_eq!(stderr.lines().collect::<Vec<_>>(), expected, "{arguments:?}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn a_wrong_option_is_told_with_its_likeness() {
    let _watch = Watch::begin();
    let output = run(&["run", "--worksapce", "x", "--", "true"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr.starts_with("postern: unexpected argument '--worksapce' found\n"), "{stderr}");
    assert!(stderr.contains("'--workspace'"), "{stderr}");
    assert!(stderr.lines().all(|line| line.starts_with("postern: ")), "{stderr}");
}

#[test]
fn names_cannot_move_the_terminal() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let name = "\x1b]0;owned\x07\u{202e}\npostern: fine";
    let file = scratch.path().join(format!("{name}.toml"));
    let rows: [&[&OsStr]; 3] = [
        &["run".as_ref(), "--".as_ref(), name.as_ref()],
        &["run".as_ref(), "--profile".as_ref(), file.as_os_str(), "--".as_ref(), "true".as_ref()],
        &["python".as_ref(), file.as_os_str()],
    ];
    for arguments in rows {
        let stderr = words(&run(arguments).stderr);
        assert!(!stderr.contains(['\x1b', '\x07', '\u{202e}']), "{stderr:?}");
        assert!(!stderr.lines().any(|line| line.starts_with("postern: fine")), "{stderr}");
        assert!(stderr.contains("owned"), "{stderr}");
    }
}

#[test]
fn colours_are_for_terminals_and_those_who_ask() {
    let _watch = Watch::begin();
    let rows = [
        ("$P run -- no-such", true),
        ("NO_COLOR=1 $P run -- no-such", false),
        ("NO_COLOR=1 $P run --color always -- no-such", true),
        ("TERM=dumb $P run -- no-such", false),
        ("$P run --color never -- no-such", false),
        ("$P run -- no-such 2>&1 | cat", false),
        ("$P run --color always -- no-such 2>&1 | cat", true),
    ];
    for (script, coloured) in rows {
        let terminal = Terminal::start(&["bash".as_ref(), "-c".as_ref(), script.as_ref()]);
        let (_, seen) = terminal.finish();
        assert!(seen.contains("cannot exec"), "{script}: {seen}");
        assert_eq!(seen.contains("\x1b["), coloured, "{script}: {seen:?}");
    }
}

/// Seen as it is written, not when the program ends, on a terminal and in a pipe.
#[test]
fn python_keeps_no_output_back() {
    let _watch = Watch::begin();
    let postern = postern();
    let code = "import sys; print('flags', int(sys.stdout.write_through), sys.flags.no_user_site)";
    let line: Vec<&OsStr> = vec![postern.as_ref(), "python".as_ref(), "-c".as_ref(), code.as_ref()];
    let (_, seen) = Terminal::start(&line).finish();
    assert!(seen.contains("flags 1 1"), "{seen}");
    assert_eq!(text(&run(&["python", "-c", code]).stdout), "flags 1 1\n");
}

#[test]
fn statistics_are_a_few_lines_behind_everything() {
    let _watch = Watch::begin();
    let rows = [
        ("exit 3", "postern: end: exited with code 3"),
        ("kill -TERM $$", "postern: end: ended by signal 15 (TERM)"),
        ("printf half >&2", "postern: end: exited with code 0"),
    ];
    for (script, expected) in rows {
        let output = run(&["run", "--stats", "--", "sh", "-c", script]);
        let stderr = words(&output.stderr);
        let lines: Vec<_> = stderr.lines().collect();
        let own: Vec<_> = lines.iter().filter(|line| line.starts_with("postern: ")).collect();
        assert_eq!((own.len(), *own[0]), (4, expected), "{stderr}");
        for (line, begin) in own.iter().skip(1).zip(["time: ", "peak memory: ", "held by: "]) {
            assert!(line.starts_with(&format!("postern: {begin}")), "{stderr}");
        }
    }
}

/// The words of PyPI's package, on a line of their own.
#[test]
fn time_is_up_on_a_line_of_its_own() {
    let _watch = Watch::begin();
    let script = "$P run --timeout 0.2 -- sh -c 'printf half >&2; exec sleep 60'";
    let output = shell(script).output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(words(&output.stderr), "half\n[postern] timed out\n");
}
