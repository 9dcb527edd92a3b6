//! Python source code runs as the interpreter itself would run a script, each way and with a limit
//! of the address space too.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::time::Instant;

use postern::error::{CommandError, PythonError};
use postern::{Command, Ending, Error, SandboxProfile, Stdin};
use postern_tests::{Scratch, run};

use crate::programs::{ENDS, GROUPS, HAS_GROUPS, Program, TOLD_APART, WHOLE};
use crate::ways::each_way;
use crate::{begin, figure, sandbox, sandbox_of};

/// Enough for every program here, children included.
pub(crate) fn limited(bytes: u64) -> SandboxProfile {
    let mut profile = SandboxProfile::default();
    profile.limits.address_space_bytes = Some(bytes);
    profile
}

impl Program {
    fn command(&self) -> Command {
        let command = Command::python(self.code).args(self.arguments.iter().copied());
        command.stdin(Stdin::Bytes(self.stdin.to_vec()))
    }
}

/// Whether the lines are there in their order.
fn has_lines(text: &str, lines: &[&str]) -> bool {
    let mut found = text.lines();
    lines.iter().all(|line| found.any(|other| other == *line))
}

#[test]
fn programs_run_the_same_each_way_limited_or_not() {
    let _watch = begin();
    let (free, limited) = (sandbox(), sandbox_of(limited(4 << 30)));
    let groups: &[Program] = match free.run_python(HAS_GROUPS).unwrap().ok() {
        true => &GROUPS,
        false => {
            figure("skipped: exception groups: this Python is older than 3.11");
            &[]
        }
    };
    let rows: Vec<Program> = [&WHOLE[..], &ENDS, groups].concat();
    for sandbox in [&free, &limited] {
        each_way(sandbox, |service| {
            for program in &rows {
                let name = format!("{}, {:?}", program.name, service.way);
                let result = service.run(program.command()).unwrap();
                let (stdout, stderr) = (result.stdout_text(), result.stderr_text());
                assert_eq!(stdout, program.stdout, "{name}: {stderr}");
                assert!(has_lines(&stderr, program.stderr), "{name}: {stderr}");
                assert_eq!(stderr.is_empty(), program.stderr.is_empty(), "{name}: {stderr}");
                assert_eq!(result.returncode(), program.code_of_end, "{name}");
            }
        });
    }
    for program in &rows {
        let [free, limited] = [&free, &limited].map(|sandbox| {
            let result = sandbox.run(program.command()).unwrap();
            let text = result.stderr_text().into_owned();
            (result.ending, result.stdout, comparable(&text))
        });
        assert_eq!(free, limited, "{}", program.name);
    }
}

/// Without what differs from run to run, and by the two frames beneath the program's.
fn comparable(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("[Previous line repeated "));
    let words = lines.flat_map(|line| line.split(' ').chain(["\n"]));
    words.filter(|word| !word.starts_with("0x")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_limit_can_be_told_by_little_else() {
    let _watch = begin();
    let (free, limited) = (sandbox(), sandbox_of(limited(4 << 30)));
    for (code, without, with) in TOLD_APART {
        let [without_limit, with_limit] = [&free, &limited].map(|s| run(s, Command::python(code)));
        let found = (without_limit.stdout_text(), with_limit.stdout_text());
        assert_eq!(found, (without.into(), with.into()), "{code}");
    }
}

/// About `bytes` of source that does something on every line.
fn long_program(bytes: usize) -> (String, u64) {
    let (mut code, mut sum, mut line) = (String::from("x = 0\n"), 0u64, 0u64);
    while code.len() < bytes {
        writeln!(code, "x = (x * 31 + {line}) & 0xffffffff  # {:40}", "").unwrap();
        sum = (sum * 31 + line) & 0xffff_ffff;
        line += 1;
    }
    code.push_str("print(x)\n");
    (code, sum)
}

#[test]
fn eight_mebibytes_of_source_run() {
    let _watch = begin();
    let (code, expected) = long_program(8 << 20);
    for sandbox in [sandbox(), sandbox_of(limited(4 << 30))] {
        let begun = Instant::now();
        let result = run(&sandbox, Command::python(code.clone()));
        figure(format!("{} bytes of Python: {:?}", code.len(), begun.elapsed()));
        assert_eq!(result.stdout_text(), format!("{expected}\n"));
    }
}

#[test]
fn arguments_need_not_be_text() {
    let _watch = begin();
    let odd = OsString::from_vec(b"\xff\xfe \x01".to_vec());
    let code = "import os, sys; print(os.fsencode(sys.argv[1]))";
    for sandbox in [sandbox(), sandbox_of(limited(4 << 30))] {
        let result = run(&sandbox, Command::python(code).arg(odd.clone()));
        assert_eq!(result.stdout_text(), "b'\\xff\\xfe \\x01'\n");
    }
}

#[test]
fn the_file_is_called_as_the_caller_says() {
    let _watch = begin();
    let code = "import sys\nprint(sys.argv[0], __file__)\n1 / 0\n";
    for sandbox in [sandbox(), sandbox_of(limited(4 << 30))] {
        for name in ["job.py", "a b.py", "no-extension", "\u{e9}.py", "-c"] {
            let result = sandbox.run(Command::python(code).script_name(name)).unwrap();
            let path = format!("/run/postern/{name}");
            assert_eq!(result.stdout_text(), format!("{path} {path}\n"));
            let stderr = result.stderr_text();
            let lines = [format!("  File \"{path}\", line 3, in <module>"), "    1 / 0".into()];
            assert!(has_lines(&stderr, &lines.each_ref().map(String::as_str)), "{name}: {stderr}");
        }
    }
}

/// With `PYTHONSAFEPATH` the script's directory does not lead the path, and nothing else is lost.
#[test]
fn the_path_is_what_the_interpreter_makes_it() {
    let _watch = begin();
    let code = "import sys; print([p for p in sys.path if p != '/run/postern'], \
                sys.path.count('/run/postern'))";
    let (free, limited) = (sandbox(), sandbox_of(limited(4 << 30)));
    for variable in ["PYTHONSAFEPATH", "PYTHONUNBUFFERED"] {
        let command = Command::python(code).env(variable, "1");
        let [free, limited] = [&free, &limited].map(|s| run(s, command.clone()).stdout);
        assert_eq!(String::from_utf8_lossy(&free), String::from_utf8_lossy(&limited), "{variable}");
    }
}

/// What is kept in the workspace is data: the next interpreter does not start with it.
#[test]
fn one_run_plants_nothing_that_the_next_starts_with() {
    let _watch = begin();
    let plant = "import os, site\nfor d in (site.getusersitepackages(), os.getcwd()):\n    \
                 os.makedirs(d, exist_ok=True)\n    for n in ('sitecustomize', 'usercustomize', 'planted'):\n        \
                 open(f'{d}/{n}.py', 'w').write('print(\"planted\")')\n        \
                 open(f'{d}/{n}.pth', 'w').write('import planted')\n";
    for sandbox in [sandbox(), sandbox_of(limited(4 << 30))] {
        run(&sandbox, Command::python(plant));
        let planted =
            run(&sandbox, Command::new("sh").args(["-c", "find . -name planted.py | wc -l"]));
        assert_eq!(planted.stdout_text(), "2\n");
        let result = run(&sandbox, Command::python("print('clean')"));
        assert_eq!((result.stdout_text(), result.stderr_text()), ("clean\n".into(), "".into()));
    }
}

#[test]
fn stubs_can_be_imported() {
    let _watch = begin();
    let scratch = Scratch::new();
    let stub = scratch.file("greeter_pb2.py", b"WORD = 'hello'\n", 0o644);
    for limit in [None, Some(4 << 30)] {
        let mut profile = SandboxProfile::builder().stubs([stub.clone()]).build().unwrap();
        profile.limits.address_space_bytes = limit;
        let result =
            run(&sandbox_of(profile), Command::python("import greeter_pb2 as g; print(g.WORD)"));
        assert_eq!(result.stdout_text(), "hello\n");
    }
}

#[test]
fn the_interpreter_of_a_venv_runs_the_code() {
    let _watch = begin();
    let scratch = Scratch::new();
    let venv = scratch.path().join("env");
    #[expect(clippy::disallowed_methods, reason = "a test prepares the host as its owner would")]
    let mut python = std::process::Command::new("/usr/bin/python3");
    let made = python.args(["-I", "-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let profile = SandboxProfile::builder().venv(&venv).build().unwrap();
    let code = "import sys; print(sys.prefix, sys.executable)";
    let result = run(&sandbox_of(profile), Command::python(code));
    let expected = format!("{0} {0}/bin/python\n", venv.display());
    assert_eq!(result.stdout_text(), expected);
}

#[test]
fn an_interpreter_that_is_not_there_is_refused_before_the_run() {
    let _watch = begin();
    let mut profile = SandboxProfile::default();
    profile.python = Some("/no/such/python".into());
    each_way(&sandbox_of(profile), |service| {
        let refused = service.run(Command::python("pass")).unwrap_err();
        let missing = PythonError::Missing {
            program: "/no/such/python".into(),
            searched: vec!["/no/such".into()],
        };
        let is_missing =
            matches!(&refused, Error::Command(CommandError::Python(found)) if *found == missing);
        assert!(is_missing, "{:?}: {refused}", service.way);
    });
}

/// In a place that only the guest sees into, it is the guest's exec that tells.
#[test]
fn an_interpreter_that_nobody_can_look_for_is_an_ending() {
    let _watch = begin();
    let mut profile = SandboxProfile::default();
    profile.python = Some("/workspace/python".into());
    each_way(&sandbox_of(profile), |service| {
        let result = service.run(Command::python("pass")).unwrap();
        let found = (result.ending, result.returncode());
        assert_eq!(found, (Ending::ExecFailed(libc::ENOENT), 127), "{:?}", service.way);
    });
}
