//! What a plan knows about the guest's Python before anything is started.

use postern::error::{PythonError, Refusal};
use postern::plan::{Plan, Python, resolve};
use postern::profile::SandboxProfile;

use crate::hosts::{self, Machine};
use crate::pythons;

fn plan(text: &str, machine: fn() -> Machine) -> Result<Plan, Refusal> {
    let profile = SandboxProfile::from_toml_str(text).unwrap();
    let host = machine().facts(&profile);
    resolve(&profile, &host)
}

/// The interpreter by the guest's path and the host's, and its version.
type Known = (&'static str, &'static str, Option<(u8, u8)>);

/// A profile, the host it meets, and the interpreter that the guest will run.
type Row = (&'static str, fn() -> Machine, Known);

/// As [`pythons::with_venv`], with an interpreter that has no version in its name.
fn unnamed() -> Machine {
    pythons::with_venv().file_with("/usr/bin/python", 0o755).link(
        "/opt/analysis-env/bin/python",
        "/usr/bin/python",
        "/usr/bin/python",
    )
}

#[test]
fn the_interpreter_is_found_where_the_guest_will_find_it() {
    const VENV: &str = "venv = '/opt/analysis-env'";
    const IN_VENV: &str = "/opt/analysis-env/bin/python";
    let alias = "/opt/uv/cpython-3.12.5-linux/bin/python3.12";
    let rows: [Row; 11] = [
        ("", pythons::with_python, ("/usr/bin/python3", "/usr/bin/python3.11", Some((3, 11)))),
        (
            "python = '/bin/python3'",
            pythons::with_python,
            ("/bin/python3", "/usr/bin/python3.11", Some((3, 11))),
        ),
        (
            "env.PATH = '/bin:/usr/bin'",
            pythons::with_python,
            ("/bin/python3", "/usr/bin/python3.11", Some((3, 11))),
        ),
        (VENV, pythons::with_venv, (IN_VENV, "/usr/bin/python3.11", Some((3, 11)))),
        (VENV, pythons::elsewhere, (IN_VENV, "/opt/python3.12/bin/python3.12", Some((3, 12)))),
        (VENV, pythons::alias, (IN_VENV, alias, Some((3, 12)))),
        (VENV, pythons::copies, (IN_VENV, IN_VENV, Some((3, 12)))),
        (VENV, unnamed, (IN_VENV, "/usr/bin/python", Some((3, 12)))),
        (
            "rootfs = '/opt/guest-root'",
            pythons::rootfs,
            ("/usr/bin/python3", "/opt/guest-root/usr/bin/python3.9", Some((3, 9))),
        ),
        (
            "rootfs = '/opt/guest-root'\nvenv = '/opt/analysis-env'",
            pythons::rootfs,
            (IN_VENV, "/opt/guest-root/usr/bin/python3.9", Some((3, 9))),
        ),
        (
            "rootfs = '/opt/guest-root'\nvenv = '/opt/analysis-env'",
            pythons::elsewhere_in_rootfs,
            (IN_VENV, "/opt/guest-root/opt/python3.12/bin/python3.12", Some((3, 12))),
        ),
    ];
    for (text, machine, expected) in rows {
        let plan = plan(text, machine).unwrap();
        let found = plan.interpreter().unwrap_or_else(|| panic!("{text}: {:?}", plan.python));
        let paths = (found.guest_path.to_str().unwrap(), found.host_path.to_str().unwrap());
        assert_eq!((paths.0, paths.1, found.version), expected, "{text}");
        assert_eq!(plan.check_python(), Ok(()), "{text}");
    }
}

fn without_python() -> Machine {
    pythons::with_python().without("/usr/bin/python3")
}

fn with_python2() -> Machine {
    pythons::with_python().file_with("/usr/bin/python2.7", 0o755).link(
        "/usr/bin/python3",
        "python2.7",
        "/usr/bin/python2.7",
    )
}

fn with_python3_7() -> Machine {
    pythons::with_python().file_with("/usr/bin/python3.7", 0o755)
}

fn with_python3_8() -> Machine {
    pythons::with_python().file_with("/usr/bin/python3.8", 0o755)
}

fn not_a_program() -> Machine {
    pythons::with_python().file_with("/usr/bin/python3.11", 0o644).link(
        "/usr/bin/python3",
        "python3.11",
        "/usr/bin/python3.11",
    )
}

fn missing(program: &str, searched: &[&str]) -> Result<(), PythonError> {
    let searched = searched.iter().map(Into::into).collect();
    Err(PythonError::Missing { program: program.into(), searched })
}

fn too_old(program: &str, version: (u8, u8)) -> Result<(), PythonError> {
    Err(PythonError::TooOld { program: program.into(), version, least: (3, 8) })
}

#[test]
fn what_cannot_run_python_code_is_known_only_where_it_is_certain() {
    type Row = (&'static str, fn() -> Machine, Result<(), PythonError>);
    let usual = ["/usr/local/bin", "/usr/bin", "/bin"];
    let rows: [Row; 13] = [
        ("", without_python, missing("python3", &usual)),
        ("env.PATH = '/bin'", without_python, missing("python3", &["/bin"])),
        ("env.PATH = '/nowhere:/bin'", without_python, missing("python3", &["/nowhere", "/bin"])),
        ("python = '/opt/python'", pythons::with_python, missing("/opt/python", &["/opt"])),
        ("", with_python2, too_old("/usr/bin/python3", (2, 7))),
        ("python = '/usr/bin/python3.7'", with_python3_7, too_old("/usr/bin/python3.7", (3, 7))),
        ("python = '/usr/bin/python3.8'", with_python3_8, Ok(())),
        // The guest may write there, or nobody has looked.
        ("env.PATH = '/workspace/bin:/bin'", without_python, Ok(())),
        ("env.PATH = '/tmp:/bin'", without_python, Ok(())),
        ("env.PATH = 'bin:/bin'", without_python, Ok(())),
        ("env.PATH = ':/bin'", without_python, Ok(())),
        ("", hosts::debian, Ok(())),
        ("", not_a_program, Ok(())),
    ];
    for (text, machine, expected) in rows {
        let plan = plan(text, machine).unwrap();
        assert_eq!(plan.check_python(), expected, "{text}: {:?}", plan.python);
    }
}

#[test]
fn a_plan_without_python_says_so_and_is_a_plan() {
    let plan = plan("", without_python).unwrap();
    assert!(plan.interpreter().is_none());
    assert!(matches!(plan.python, Python::Missing { .. }), "{:?}", plan.python);
    assert!(!plan.to_string().contains("python"), "{plan}");
}

/// What of an installation a plan shows.
#[test]
fn no_more_than_the_installation_is_bound() {
    type Row = (fn() -> Machine, &'static [&'static str]);
    let rows: [Row; 8] = [
        (pythons::with_venv, &[]),
        (pythons::elsewhere, &["bind /opt/python3.12 "]),
        (pythons::copies, &["bind /opt/python3.12 "]),
        (
            pythons::alias,
            &[
                "bind /opt/uv/cpython-3.12.5-linux ",
                "symlink /opt/uv/cpython-3.12-linux to cpython-3.12.5-linux",
            ],
        ),
        (
            pythons::shared_prefix,
            &[
                "bind /opt/bin/python3.12 ",
                "bind /opt/lib/libpython3.12.so.1.0 ",
                "bind /opt/lib/python3.12 ",
                "symlink /opt/lib/libpython3.12.so to libpython3.12.so.1.0",
            ],
        ),
        (
            pythons::at_the_top,
            &[
                "bind /python/bin/python3.12 ",
                "bind /python/lib/libpython3.12.so.1.0 ",
                "bind /python/lib/python3.12 ",
                "symlink /python/lib/libpython3.12.so to libpython3.12.so.1.0",
            ],
        ),
        (
            pythons::conda,
            &["bind /opt/conda/bin/python3.12 ", "bind /opt/conda/lib ", "bind /opt/conda/ssl "],
        ),
        (with_more_names, &["bind /opt/python3.12 "]),
    ];
    for (machine, expected) in rows {
        let plan = plan("venv = '/opt/analysis-env'", machine).unwrap().to_string();
        let lines = plan.lines().filter_map(|line| line.strip_prefix("template "));
        let is_shown = |line: &&str| line.starts_with("bind /") || line.starts_with("symlink /");
        let is_base = |line: &&str| {
            ["/usr ", "/etc/", "/dev/", "/bin ", "/sbin ", "/lib ", "/lib64 ", "/opt/analysis-env "]
                .iter()
                .any(|base| line.split_once(' ').is_some_and(|(_, rest)| rest.starts_with(base)))
        };
        let mut lines: Vec<_> = lines.filter(is_shown).filter(|line| !is_base(line)).collect();
        lines.sort_unstable();
        let is_same = |(line, expected): (&&str, &&str)| line.starts_with(expected);
        assert!(
            lines.len() == expected.len() && lines.iter().zip(expected).all(is_same),
            "{expected:?}: {lines:#?}"
        );
    }
}

/// As python-build-standalone is unpacked.
fn with_more_names() -> Machine {
    pythons::elsewhere().listing("/opt/python3.12", &["BUILD", "bin", "lib", "lib64", "share"])
}

#[test]
fn what_a_refusal_says_to_add_is_enough() {
    type Row = (&'static str, fn() -> Machine);
    let rows: [Row; 5] = [
        ("home", pythons::in_home),
        ("bare home", pythons::in_bare_home),
        ("store", pythons::in_store),
        ("covered", pythons::in_tmp),
        ("alone", pythons::alone),
    ];
    for (name, machine) in rows {
        let venv = "venv = '/opt/analysis-env'\n";
        let refusal = plan(venv, machine).expect_err(name);
        assert_eq!(refusal.rule(), "venv-python-hidden", "{name}");
        let sentence = refusal.to_string();
        let advice = sentence.split('`').nth(1).unwrap();
        let text = format!("{venv}{advice}");
        plan(&text, machine).unwrap_or_else(|refusal| panic!("{name}: {advice}: {refusal}"));
    }
}
