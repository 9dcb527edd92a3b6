//! A limit of the address space holds the program and lets the interpreter start.

use postern::{Command, Ending};
use postern_tests::{Scratch, run};

use crate::python::limited;
use crate::{begin, sandbox_of};

#[test]
fn the_limit_is_seen_and_felt() {
    let _watch = begin();
    let limit = 512 << 20;
    let sandbox = sandbox_of(limited(limit));
    let seen = "import resource; print(resource.getrlimit(resource.RLIMIT_AS))";
    let result = run(&sandbox, Command::python(seen));
    assert_eq!(result.stdout_text(), format!("({limit}, {limit})\n"));
    let felt = format!("bytearray({})", limit / 2);
    run(&sandbox, Command::python(felt));
    let result = sandbox.run_python(format!("x = 1\nbytearray({limit})")).unwrap();
    let stderr = result.stderr_text();
    assert_eq!(result.ending, Ending::Exited(1), "{stderr}");
    let lines = ["  File \"/run/postern/main.py\", line 2, in <module>", "MemoryError"];
    assert!(lines.iter().all(|line| stderr.lines().any(|other| other == *line)), "{stderr}");
}

/// It is the run's, not this program's alone: what the code starts has it as well.
#[test]
fn children_have_the_limit_too() {
    let _watch = begin();
    let limit: u64 = 512 << 20;
    let code =
        "import subprocess\nprint(subprocess.check_output(['sh', '-c', 'ulimit -v; ulimit -Hv']))";
    let result = run(&sandbox_of(limited(limit)), Command::python(code));
    assert_eq!(result.stdout_text(), format!("b'{0}\\n{0}\\n'\n", limit >> 10));
}

/// Other programs have it from their first instruction on. This interpreter needs more while it
/// starts than its program may have.
#[test]
fn a_limit_too_small_to_start_with_is_no_hindrance() {
    let _watch = begin();
    let scratch = Scratch::new();
    let start =
        b"import mmap, os\ntry: mmap.mmap(-1, 96 << 20).close()\nexcept OSError: os._exit(9)\n";
    let start = scratch.file("sitecustomize.py", start, 0o644);
    let mut profile = limited(64 << 20);
    profile.stubs = vec![start];
    let sandbox = sandbox_of(profile);
    let at_exec = sandbox.run(["python3", "-c", "print(1)"]).unwrap();
    assert_eq!(at_exec.ending, Ending::Exited(9), "{}", at_exec.stderr_text());
    let result = run(&sandbox, Command::python("print(6 * 7)"));
    assert_eq!(result.stdout_text(), "42\n");
}
