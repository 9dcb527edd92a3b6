//! Help, completions and manual pages: there for every verb, and well-formed.

use std::path::Path;
use std::process::Stdio;

use postern_tests::{Scratch, Watch};

use crate::command::{program, run, shell, text};

const VERBS: [&str; 11] = [
    "run",
    "python",
    "bash",
    "plan",
    "check",
    "profile",
    "seccomp",
    "demo",
    "bwrap",
    "completions",
    "man",
];

#[test]
fn help_goes_to_stdout() {
    let _watch = Watch::begin();
    let mut rows: Vec<Vec<&str>> = vec![vec!["--help"], vec!["-h"], vec!["--version"]];
    rows.extend(VERBS.map(|verb| vec![verb, "--help"]));
    rows.extend([vec!["profile", "show", "--help"], vec!["help", "run"]]);
    for arguments in rows {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_help_says_what_overrides_what() {
    let _watch = Watch::begin();
    for verb in ["run", "python", "bash"] {
        let help = text(&run(&[verb, "--help"]).stdout);
        for words in
            ["Precedence: the defaults, then the profile file", "Signals: INT", "Input: stdin"]
        {
            assert!(help.contains(words), "{verb}: {words}: {help}");
        }
    }
}

/// Judged by the shell itself where it is installed; each names every verb and option.
#[test]
fn completions_are_scripts_of_their_shells() {
    let _watch = Watch::begin();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        for word in VERBS.iter().chain(&["workspace-access", "max-output", "shell", "out"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        let scratch = Scratch::new();
        let file = scratch.file("script", script.as_bytes(), 0o644);
        let judged = program(shell).arg("-n").arg(file).stderr(Stdio::piped()).output();
        if let Ok(judged) = judged {
            assert!(judged.status.success(), "{shell}: {}", text(&judged.stderr));
        }
    }
}

/// What a person gets for a tab.
#[test]
fn bash_completes_options_and_words() {
    let _watch = Watch::begin();
    let rows = [
        ("run --work", "--workspace --workspace-access"),
        ("prof", "profile"),
        ("run --proc mi", "minimal"),
        ("bwrap --unshare-user", "--unshare-user --unshare-user-try"),
    ];
    for (line, expected) in rows {
        let script = format!(
            "source <($P completions bash); COMP_WORDS=(postern {line}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _postern postern \"${{COMP_WORDS[COMP_CWORD]}}\" \
             \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo ${{COMPREPLY[*]}}"
        );
        let output = shell(&script).output().unwrap();
        assert_eq!(text(&output.stdout).trim(), expected, "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn every_verb_has_a_page_that_renders() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let output = run(&["man", "--out", scratch.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut names: Vec<_> = VERBS.iter().map(|verb| format!("postern-{verb}.1")).collect();
    names.extend(
        [
            "postern.1",
            "postern-profile-show.1",
            "postern-profile-schema.1",
            "postern-seccomp-explain.1",
            "postern-seccomp-list.1",
        ]
        .map(String::from),
    );
    names.sort();
    let entries = std::fs::read_dir(scratch.path()).unwrap().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names);
    for name in names {
        renders(&scratch.path().join(name));
    }
    // What the verb reads for itself is on its page too.
    let bwrap = std::fs::read_to_string(scratch.path().join("postern-bwrap.1")).unwrap();
    assert!(bwrap.contains(r"\-\-overlay\fR") && bwrap.contains("WORKDIR"), "{bwrap}");
    let printed = run(&["man"]);
    let page = std::fs::read(scratch.path().join("postern.1")).unwrap();
    assert_eq!(text(&printed.stdout), text(&page));
}

fn renders(page: &Path) {
    let source = std::fs::read_to_string(page).unwrap();
    assert!(source.contains(".TH postern"), "{}", page.display());
    assert!(source.contains(".SH NAME\npostern"), "{}", page.display());
    let judged = program("groff").args(["-man", "-ww", "-Tutf8"]).arg(page).output();
    if let Ok(judged) = judged {
        assert!(judged.status.success() && judged.stderr.is_empty(), "{}", text(&judged.stderr));
        assert!(judged.stdout.len() > 500, "{}", page.display());
    }
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let _watch = Watch::begin();
    let output = run(&["man", "--out", "/no/such/directory"]);
    assert_eq!(output.status.code(), Some(125));
    let expected = "postern: cannot write /no/such/directory/postern.1: No such file";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
}
