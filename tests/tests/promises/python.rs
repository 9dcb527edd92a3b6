//! The guest's Python is the one that the plan says, wherever it was installed, and brings no more
//! of the host along than its own installation. What a plan decides is in `golden_plans`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use postern::error::{CommandError, Error};
use postern::plan::Tier;
use postern::profile::SandboxProfile;
use postern::{Command, Ending, Sandbox};
use postern_tests::{Scratch, Watch, run};
use serde_json::{Value, json};

use crate::fixture::{self, tier, virtual_environment};

/// What every Python of an installation elsewhere must be able to do.
const WORKS: &str = "
import ctypes, encodings, json, os, ssl, subprocess, sys
child = [sys.executable, '-c', 'import sys; print(sys.prefix)']
print(json.dumps({
    'prefix': sys.prefix,
    'base': sys.base_prefix,
    'executable': sys.executable,
    'child': subprocess.check_output(child, text=True).strip(),
    'tls': ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED,
    'libc': ctypes.CDLL(None).getpid() == os.getpid(),
    'stdlib': os.__file__,
}))";

/// The host's Python, as Debian installs it: executable and standard library.
struct Original {
    executable: PathBuf,
    library: PathBuf,
    /// Such as `python3.11`.
    name: String,
}

impl Original {
    fn find() -> Original {
        let python = Path::new("/usr/bin/python3");
        let executable = fs::canonicalize(python).expect("/usr/bin/python3, of package python3");
        let name = executable.file_name().unwrap().to_str().unwrap().to_owned();
        Original { library: Path::new("/usr/lib").join(&name), executable, name }
    }

    /// Installs a copy; the library without its largest parts that nobody here needs.
    fn install(&self, prefix: &Path) -> PathBuf {
        let program = prefix.join("bin").join(&self.name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy(&self.executable, &program).unwrap();
        copy(&self.library, &prefix.join("lib").join(&self.name));
        program
    }
}

fn copy(from: &Path, to: &Path) {
    const LEFT_OUT: [&str; 8] = [
        "__pycache__",
        "config-3",
        "dist-packages",
        "ensurepip",
        "idlelib",
        "pydoc_data",
        "test",
        "tkinter",
    ];
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (name, kind) = (entry.file_name(), entry.file_type().unwrap());
        let is_left_out = LEFT_OUT.iter().any(|left| name.to_str().unwrap().starts_with(left));
        let to = to.join(&name);
        if kind.is_dir() && !is_left_out {
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn python(profile: SandboxProfile, code: &str) -> String {
    let program = profile.python_program();
    let sandbox = Sandbox::builder(profile).build().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sandbox.plan().check_python(), Ok(()));
    let result = run(&sandbox, Command::new(program).args(["-c", code]));
    result.stdout_text().trim_end().to_owned()
}

fn answer(venv: &Path, code: &str) -> Value {
    let output = python(SandboxProfile::with_venv(venv).unwrap(), code);
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// The names in a directory, as the guest sees them.
fn names(venv: &Path, directory: &Path) -> Value {
    answer(venv, &format!("import json, os; print(json.dumps(sorted(os.listdir({directory:?}))))"))
}

fn module(venv: &Path, python: &str, text: &str) {
    let packages = venv.join("lib").join(python).join("site-packages");
    fs::write(packages.join("sample.py"), text).unwrap();
}

#[test]
fn an_environment_of_the_hosts_python_has_its_packages() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let venv = scratch.path().join("environment");
    virtual_environment(Path::new("/usr/bin/python3"), &venv);
    module(&venv, &Original::find().name, "ANSWER = 42\n");
    let found = answer(
        &venv,
        "import json, sample, sys
print(json.dumps([sample.ANSWER, sample.__file__.split('/lib/')[0], sys.prefix, sys.base_prefix]))",
    );
    assert_eq!(found, json!([42, venv, venv, "/usr"]));
}

#[test]
fn an_installation_elsewhere_works_and_nothing_around_it_is_seen() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    // What is above an installation may be closed to the guest's id: it is made anew.
    let closed = scratch.directory("closed", 0o700);
    scratch.file("closed/secret", b"", 0o644);
    let original = Original::find();
    let (prefix, alias) = (closed.join("python/3.12.5"), closed.join("python/3.12"));
    let program = original.install(&prefix);
    symlink("3.12.5", &alias).unwrap();
    symlink(&program, program.with_file_name("python3")).unwrap();
    let library = |prefix: &Path| prefix.join("lib").join(&original.name).join("os.py");
    let rows = [
        ("its own path", program.clone(), prefix.clone()),
        ("a link beside it", prefix.join("bin/python3"), prefix.clone()),
        ("a link to its prefix", alias.join("bin").join(&original.name), alias.clone()),
    ];
    let mut venvs = Vec::new();
    for (index, (name, from, base)) in rows.into_iter().enumerate() {
        let venv = closed.join(format!("environment-{index}"));
        virtual_environment(&from, &venv);
        let found = answer(&venv, WORKS);
        let expected = json!({
            "prefix": venv, "base": base, "executable": venv.join("bin/python"), "child": venv,
            "tls": true, "libc": true, "stdlib": library(&base),
        });
        assert_eq!(found, expected, "{name}");
        let own = venv.file_name().unwrap().to_str().unwrap();
        assert_eq!(names(&venv, &closed), json!([own, "python"]), "{name}");
        venvs.push(venv);
    }
    assert_eq!(names(&venvs[0], &closed.join("python")), json!(["3.12.5"]));
    assert_eq!(names(&venvs[2], &closed.join("python")), json!(["3.12", "3.12.5"]));

    // As soon as anything else lies in the prefix, the interpreter's own parts are all there is.
    scratch.file("closed/python/3.12.5/customers/list", b"", 0o644);
    scratch.file("closed/python/3.12.5/bin/other", b"", 0o755);
    let found = answer(&venvs[2], WORKS);
    assert_eq!((&found["base"], &found["tls"]), (&json!(alias), &json!(true)));
    assert_eq!(names(&venvs[2], &prefix), json!(["bin", "lib"]));
    assert_eq!(names(&venvs[2], &prefix.join("bin")), json!([original.name]));
}

#[test]
fn a_directory_above_may_be_a_link_on_the_host_alone() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    scratch.directory("real", 0o755);
    let spelled = scratch.path().join("spelled");
    symlink("real", &spelled).unwrap();
    let (prefix, venv) = (spelled.join("python"), spelled.join("environment"));
    virtual_environment(&Original::find().install(&prefix), &venv);
    let found = answer(&venv, WORKS);
    assert_eq!((&found["prefix"], &found["base"]), (&json!(venv), &json!(prefix)));
    assert_eq!(names(&venv, &spelled), json!(["environment", "python"]));
    assert_eq!(names(&venv, scratch.path()), json!(["spelled"]));
}

#[test]
fn an_environment_with_a_copy_of_the_executable_gets_its_library() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let (prefix, venv) = (scratch.path().join("python"), scratch.path().join("environment"));
    let program = Original::find().install(&prefix);
    fixture::run(&program, &["-I", "-m", "venv", "--without-pip", "--copies"], &venv);
    assert!(fs::symlink_metadata(venv.join("bin/python")).unwrap().is_file());
    let found = answer(&venv, WORKS);
    assert_eq!((&found["prefix"], &found["base"]), (&json!(venv), &json!(prefix)));
}

/// The rule that a profile with this environment breaks.
fn rule(venv: &Path) -> Option<&'static str> {
    let profile = SandboxProfile::with_venv(venv).unwrap();
    match Sandbox::builder(profile).build() {
        Ok(_) => None,
        Err(Error::Refused(refusal)) => Some(refusal.rule()),
        Err(other) => panic!("{}: {other}", venv.display()),
    }
}

#[test]
fn an_interpreter_that_cannot_be_run_is_refused_before_the_launch() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let environment = |name: &str, program: &Path| {
        scratch.directory(&format!("{name}/bin"), 0o755);
        symlink(program, scratch.path().join(name).join("bin/python")).unwrap();
        scratch.path().join(name)
    };
    // Without privileges the guest is the owner, and may use all that is here.
    let foreign = |rule| matches!(tier(), Tier::Privileged | Tier::MapWriter).then_some(rule);
    let closed = scratch.file("closed/bin/python3.12", b"", 0o700);
    scratch.file("closed/lib/python3.12/os.py", b"", 0o644);
    let alone = scratch.file("alone/python3.12", b"", 0o755);
    let sealed = scratch.directory("sealed", 0o755);
    scratch.file("sealed/bin/python", b"", 0o755);
    scratch.directory("sealed", 0o700);
    let nowhere = scratch.path().join("nowhere/bin/python3.12");
    let rows = [
        (environment("a", &nowhere), Some("venv-python-dangling")),
        (environment("b", &alone), Some("venv-python-hidden")),
        (environment("c", &closed), foreign("venv-python-forbidden")),
        (sealed, foreign("venv-python-forbidden")),
        (scratch.directory("empty", 0o755), Some("venv-without-python")),
    ];
    for (venv, expected) in rows {
        assert_eq!(rule(&venv), expected, "{}", venv.display());
    }
}

#[test]
fn stubs_lead_the_profiles_own_python_path() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    for (place, module) in
        [("own", "both"), ("own", "mine"), ("directory", "both"), ("directory", "listed")]
    {
        let text = format!("FROM = {place:?}\n");
        scratch.file(&format!("{place}/{module}.py"), text.as_bytes(), 0o644);
    }
    let at = |path: &str| scratch.path().join(path);
    let own = at("own");
    let rows = [
        ("a directory", vec![at("directory")]),
        ("files", vec![at("directory/both.py"), at("directory/listed.py")]),
    ];
    for (name, stubs) in rows {
        let profile = SandboxProfile::builder()
            .stubs(stubs)
            .ro_binds([own.to_str().unwrap()].map(|path| (path, path)))
            .env("PYTHONPATH", own.to_str().unwrap())
            .build()
            .unwrap();
        let code = "import both, listed, mine; print(both.FROM, listed.FROM, mine.FROM)";
        assert_eq!(python(profile, code), "directory directory own", "{name}");
    }
}

#[test]
fn a_rootfs_with_a_python_wins_over_the_host() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let original = Original::find();
    let usr = scratch.path().join("root/usr");
    let program = original.install(&usr);
    symlink(&original.name, program.with_file_name("python3")).unwrap();
    for name in ["lib", "lib64"] {
        symlink(format!("usr/{name}"), scratch.path().join("root").join(name)).unwrap();
    }
    let libraries = fixture::run(Path::new("/usr/bin/ldd"), &[], &original.executable);
    for path in libraries.split_whitespace().filter(|word| word.starts_with("/lib")) {
        let to = usr.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
    }
    fs::write(usr.join("lib").join(&original.name).join("of_rootfs.py"), "").unwrap();
    let venv = scratch.path().join("environment");
    virtual_environment(Path::new("/usr/bin/python3"), &venv);
    let rows = [
        ("its PATH", None, "/usr/bin/python3"),
        ("an environment of the host", Some(&venv), venv.join("bin/python").to_str().unwrap()),
    ]
    .map(|(name, venv, executable)| (name, venv, executable.to_owned()));
    for (name, venv, executable) in rows {
        let profile = SandboxProfile::builder().rootfs(scratch.path().join("root"));
        let profile = match venv {
            Some(venv) => profile.venv(venv),
            None => profile,
        };
        let code = "import of_rootfs, sys; print(sys.executable)";
        assert_eq!(python(profile.build().unwrap(), code), executable, "{name}");
    }
}

#[test]
fn the_plan_knows_the_python_of_the_default_profile() {
    let _watch = Watch::begin();
    let sandbox = crate::default_sandbox();
    let known = sandbox.plan().interpreter().expect("Python on this host: install python3");
    let code = "import sys; print(sys.executable, *sys.version_info[:2])";
    let found = run(&sandbox, Command::new("python3").args(["-c", code]));
    let (major, minor) = known.version.expect("a version in the executable's name");
    let expected = format!("{} {major} {minor}\n", known.guest_path.display());
    assert_eq!(found.stdout_text(), expected);
}

/// A root that holds nothing but an executable at `usr/bin/NAME`, to which `python3` leads.
fn root_with(scratch: &Scratch, root: &str, name: Option<&str>) -> SandboxProfile {
    let root = scratch.directory(root, 0o755);
    let programs = root.join("usr/bin");
    fs::create_dir_all(&programs).unwrap();
    if let Some(name) = name {
        fs::copy("/bin/true", programs.join(name)).unwrap();
        symlink(name, programs.join("python3")).unwrap();
    }
    SandboxProfile::builder().rootfs(root).build().unwrap()
}

#[test]
fn python_code_is_refused_where_no_python_can_run_it() {
    let _watch = Watch::begin();
    let scratch = Scratch::new();
    let rows = [
        ("none", None, "python: the guest has no python3 in "),
        ("old", Some("python3.7"), "/python3 is Python 3.7; 3.8 is the oldest"),
    ];
    for (root, name, words) in rows {
        let sandbox = Sandbox::builder(root_with(&scratch, root, name)).build().unwrap();
        let refused = sandbox.run_python("pass").unwrap_err();
        let is_typed = matches!(&refused, Error::Command(CommandError::Python(_)));
        assert!(is_typed && refused.to_string().contains(words), "{root}: {refused}");
        // A path of the command's own leads elsewhere than the plan knows: the kernel decides.
        let own = Command::python("pass").env("PATH", "/nowhere");
        assert_eq!(sandbox.run(own).unwrap().ending, Ending::ExecFailed(libc::ENOENT), "{root}");
        // A shell is another matter.
        let missing = sandbox.run_bash("true").unwrap();
        assert_eq!(missing.ending, Ending::ExecFailed(libc::ENOENT), "{root}");
    }
}
