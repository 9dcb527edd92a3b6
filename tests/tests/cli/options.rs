//! What each option comes to in the guest, and which of two counts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use postern_tests::{Scratch, Watch};

use crate::command::{run, shell, start, text, words};

#[test]
fn each_option_is_seen_inside() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.directory("data", 0o777);
    scratch.file("data/value", b"42", 0o644);
    scratch.file("stubs/helper.py", b"answer = 42", 0o644);
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let data = path("data");
    let (same, other, stubs) = (data.clone(), format!("{data}:/data"), path("stubs"));
    let rows: [(&[&str], &str, &str); 14] = [
        (
            &["--ro-bind", &same],
            &format!("cat {data}/value; touch {data}/x 2>/dev/null || echo ro"),
            "42ro\n",
        ),
        (&["--ro-bind", &other], "cat /data/value", "42"),
        (&["--rw-bind", &other], "echo x > /data/new && cat /data/new", "x\n"),
        (&["--env", "A=b=c", "--env", "B="], "echo \"$A,$B.\"", "b=c,.\n"),
        (&["--cwd", "/tmp"], "pwd", "/tmp\n"),
        (&["--proc", "none"], "ls /proc", ""),
        (&["--proc", "read_only"], "test -r /proc/self/status && echo here", "here\n"),
        (&["--etc", "none"], "ls /etc", "ld.so.cache\n"),
        (&["--hostname", "box"], "hostname", "box\n"),
        (&["--stubs", &stubs], "python3 -c 'import helper; print(helper.answer)'", "42\n"),
        (&["--set", "limits.nofile=64"], "ulimit -n", "64\n"),
        (&["--set", "env.A=b"], "echo $A", "b\n"),
        (
            &["--set", "tmp_bytes=1048576"],
            "df -k --output=size /tmp | tail -n 1 | tr -d ' '",
            "1024\n",
        ),
        (&["--color", "always", "--stats"], "echo x", "x\n"),
    ];
    for (options, script, expected) in rows {
        let output = run(&[&["run"], options, &["--", "sh", "-c", script]].concat());
        assert_eq!(text(&output.stdout), expected, "{options:?}: {}", words(&output.stderr));
    }
}

#[test]
fn the_interpreter_is_the_options() {
    let _watch = Watch::begin();
    let code = "import sys; print(sys.executable)";
    let output = run(&["python", "--python", "/usr/bin/python3", "-c", code]);
    assert_eq!(text(&output.stdout), "/usr/bin/python3\n", "{}", words(&output.stderr));
}

#[test]
fn the_later_of_two_counts_and_lists_add() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.directory("data", 0o755);
    let data = scratch.path().join("data");
    let file = format!(
        "hostname = \"file\"\nrequired_ro_binds = [\"{0}:/one\"]\n[env]\nA = \"file\"\nB = \"file\"\nC = \"file\"\n",
        data.display()
    );
    let file = scratch.file("profile.toml", file.as_bytes(), 0o644);
    let file = file.to_str().unwrap();
    let two = format!("{}:/two", data.display());
    let script = "hostname; echo $A $B $C; ls -d /one /two 2>/dev/null";
    let rows: [(&[&str], &str); 5] = [
        (&[], "file\nfile file file\n/one\n"),
        (&["--set", "hostname=set", "--set", "env.A=set"], "set\nset file file\n/one\n"),
        (&["--hostname", "named", "--set", "hostname=set"], "named\nfile file file\n/one\n"),
        (
            &["--env", "A=1", "--set", "env.A=set", "--env", "A=2", "--env", "B=3"],
            "file\n2 3 file\n/one\n",
        ),
        (&["--ro-bind", &two], "file\nfile file file\n/one\n/two\n"),
    ];
    for (options, expected) in rows {
        let arguments =
            [&["run", "--profile", file], options, &["--", "sh", "-c", script]].concat();
        let output = run(&arguments);
        assert_eq!(text(&output.stdout), expected, "{options:?}: {}", words(&output.stderr));
    }
}

#[test]
fn what_profile_show_prints_is_a_profile() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let options =
        ["--set", "limits.nproc=77", "--hostname", "box", "--env", "A=b", "--proc", "minimal"];
    for (name, more) in [("shown.toml", &[][..]), ("shown.json", &["--json"][..])] {
        let shown = run(&[&["profile", "show"], &options[..], more].concat());
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        let file = scratch.file(name, &shown.stdout, 0o644);
        let file = file.to_str().unwrap();
        let again = run(&[&["profile", "show", "--profile", file], more].concat());
        assert_eq!(text(&again.stdout), text(&shown.stdout), "{name}");
        let output = run(&["run", "--profile", file, "--", "sh", "-c", "hostname; echo $A"]);
        assert_eq!(text(&output.stdout), "box\nb\n", "{}", words(&output.stderr));
    }
}

#[test]
fn the_schema_is_the_documented_one() {
    let _watch = Watch::begin();
    let output = run(&["profile", "schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "A postern profile");
    assert!(schema["properties"]["limits"].is_object(), "{schema}");
}

#[test]
fn a_workspace_of_any_name_is_read_and_written() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let names: [&[u8]; 6] = [b"two words", b"a:b", b"a\\b", b"a\nb", b"\xff\xfe", b"-dash"];
    for name in names {
        let job = scratch.path().join(OsStr::from_bytes(name));
        std::fs::create_dir(&job).unwrap();
        let mut arguments: Vec<OsString> =
            ["run", "--workspace"].into_iter().map(OsString::from).collect();
        arguments.push(job.clone().into());
        let rest = ["--workspace-access", "shared", "--", "sh", "-c", "pwd; echo 42 > answer"];
        arguments.extend(rest.into_iter().map(OsString::from));
        let output = run(&arguments);
        assert_eq!(text(&output.stdout), "/workspace\n", "{job:?}: {}", words(&output.stderr));
        assert_eq!(std::fs::read_to_string(job.join("answer")).unwrap(), "42\n");
    }
}

#[test]
fn a_bind_of_any_name_is_seen() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let source = scratch.path().join(OsStr::from_bytes(b"\xff:\\ x"));
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("value"), "42").unwrap();
    let mut bind = scratch.path().as_os_str().to_owned();
    bind.push(OsStr::from_bytes(b"/\xff\\:\\\\ x:/data"));
    let arguments = ["run".as_ref(), "--ro-bind".as_ref(), bind.as_os_str(), "--".as_ref()];
    let arguments = [&arguments[..], &["cat".as_ref(), "/data/value".as_ref()]].concat();
    let output = run::<&OsStr>(&arguments);
    assert_eq!(text(&output.stdout), "42", "{}", words(&output.stderr));
}

/// From where the user is, up and down.
#[test]
fn paths_of_the_host_may_be_relative() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.file("a/job/x", b"42", 0o644);
    let same = scratch.path().join("a/job/x");
    for (here, path) in [("a", "job"), ("a", "./job"), ("a/job", "."), ("a/job", "../job")] {
        for (bind, file) in
            [(format!("{path}:/data"), "/data/x"), (path.to_owned(), same.to_str().unwrap())]
        {
            let output = start(&["run", "--ro-bind", &bind, "--", "cat", file])
                .current_dir(scratch.path().join(here))
                .output()
                .unwrap();
            assert_eq!(text(&output.stdout), "42", "{here} {bind}: {}", words(&output.stderr));
        }
    }
}

#[test]
fn bytes_that_are_no_text_reach_the_guest() {
    let _watch = Watch::begin();
    let script =
        "exec $P run --env $'A=\\xff' -- sh -c 'printf %s \"$A$1\" | od -An -tx1' sh $'\\xfe\\n'";
    let output = shell(script).output().unwrap();
    assert_eq!(text(&output.stdout), " ff fe 0a\n", "{}", words(&output.stderr));
}
