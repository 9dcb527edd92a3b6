//! The golden profiles, and a piece of host for each: what they name under `/srv`, `/opt` and
//! `/home` stands in a scratch directory.

use std::os::unix::fs::symlink;
use std::path::Path;

use postern::SandboxProfile;
use postern::host::Host;
use postern::plan::{Tier, resolve};
use postern_tests::{PROBE, Scratch};

/// A golden profile.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    text: &'static str,
    /// As in the golden plan.
    pub(crate) run_directories: bool,
    /// The caller's workspace: in the scratch directory, and as the guest sees it, empty where it
    /// is the same path.
    directory: Option<(&'static str, &'static str)>,
}

const fn golden(name: &'static str, text: &'static str) -> Golden {
    Golden { name, text, run_directories: false, directory: None }
}

impl Golden {
    const fn with_run_directories(self) -> Golden {
        Golden { run_directories: true, ..self }
    }

    const fn in_directory(self, place: &'static str, seen_at: &'static str) -> Golden {
        Golden { directory: Some((place, seen_at)), ..self }
    }

    /// The profile with its host paths in the scratch directory.
    pub(crate) fn profile(&self, scratch: &Scratch) -> SandboxProfile {
        let at = scratch.path().to_str().unwrap();
        let mut text = self.text.replace("\"/srv/", &format!("\"{at}/srv/"));
        text = text.replace("\"/opt/", &format!("\"{at}/opt/"));
        text = text.replace("source = \"/home/ada", &format!("source = \"{at}/home/ada"));
        if text.contains("host_view") {
            text = text.replace("\"/home/ada", &format!("\"{at}/home/ada"));
        }
        if matches!(tier(), Tier::Subordinate | Tier::Unprivileged) {
            // Without privileges there is no id but the service's own.
            text = text.replace("host_uid = 4000\nhost_gid = 4000\n", "");
        }
        let profile = SandboxProfile::from_toml_str(&text);
        profile.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Puts the probe into the caller's workspace; the path that the guest sees.
    pub(crate) fn directory_probe(&self, scratch: &Scratch) -> String {
        let (place, seen_at) = self.directory.expect("a workspace for the probe");
        let probe = scratch.file(&format!("{place}/probe"), PROBE, 0o755);
        match seen_at {
            "" => probe.to_str().unwrap().to_owned(),
            seen_at => format!("{seen_at}/probe"),
        }
    }
}

/// What kind of host this is.
pub(crate) fn tier() -> Tier {
    let profile = SandboxProfile::default();
    let host = Host::probe(&profile).unwrap();
    resolve(&profile, &host).unwrap().identity.tier
}

macro_rules! text {
    ($name:literal) => {
        golden($name, include_str!(concat!("../../plan/", $name, ".toml")))
    };
}

pub(crate) const GOLDEN: [Golden; 28] = [
    text!("beneath-tmp"),
    text!("bwrap-like"),
    text!("caller-workspace").in_directory("srv/job", "/workspace"),
    text!("default-container-root"),
    text!("default-root").with_run_directories(),
    text!("default-subordinate"),
    text!("default-unprivileged"),
    text!("etc-none"),
    text!("host-view").in_directory("home/ada/project", ""),
    text!("host-view-owned").with_run_directories(),
    text!("limits"),
    text!("many-binds"),
    text!("merged-usr"),
    text!("own-workspace").in_directory("srv/job", "/workspace"),
    text!("private-tmp"),
    text!("proc-masked"),
    text!("proc-minimal"),
    text!("proc-none"),
    text!("rootfs"),
    text!("rootless-container"),
    text!("shared-network"),
    text!("stub-directory").with_run_directories(),
    text!("stubs"),
    text!("unmerged-usr"),
    text!("venv"),
    text!("venv-alias"),
    text!("venv-elsewhere"),
    text!("venv-shared-prefix"),
];

/// Everything that a golden profile names.
pub(crate) fn fixture(name: &str) -> Scratch {
    let scratch = Scratch::new();
    for number in 0..40 {
        scratch.directory(&format!("srv/models/{number}"), 0o755);
    }
    for open in ["srv/job", "home/ada/project", "home/ada/project/.git", "home/ada/.cache"] {
        // The guest's kernel uid is another one on a root host.
        scratch.directory(open, 0o777);
    }
    scratch.directory("srv/modules", 0o755);
    scratch.directory("srv/stubs/greeter", 0o755);
    scratch.file("srv/stubs/greeter_pb2.py", b"", 0o644);
    scratch.file("opt/guest-root/usr/bin/probe", PROBE, 0o755);
    scratch.directory("opt/guest-root/usr/lib64", 0o755);
    symlink("usr/lib64", scratch.path().join("opt/guest-root/lib64")).unwrap();
    let venv = scratch.path().join("opt/analysis-env");
    match name {
        "venv" => virtual_environment(Path::new("/usr/bin/python3"), &venv),
        "venv-alias" => {
            let alias = scratch.path().join("opt/uv/cpython-3.12-linux");
            nominal_environment(&scratch, "opt/uv/cpython-3.12.5-linux", &alias);
            symlink("cpython-3.12.5-linux", alias).unwrap();
        }
        "venv-elsewhere" => {
            nominal_environment(&scratch, "opt/python3.12", &scratch.path().join("opt/python3.12"));
        }
        "venv-shared-prefix" => nominal_environment(&scratch, "opt", &scratch.path().join("opt")),
        _ => {}
    }
    scratch
}

/// What a plan looks at in an installation and an environment made from it, by way of `prefix`:
/// enough where no Python is run.
fn nominal_environment(scratch: &Scratch, installation: &str, prefix: &Path) {
    scratch.file(&format!("{installation}/bin/python3.12"), PROBE, 0o755);
    scratch.file(&format!("{installation}/lib/python3.12/os.py"), b"", 0o644);
    let bin = prefix.join("bin");
    let config = format!("home = {}\nversion = 3.12.5\n", bin.display());
    scratch.file("opt/analysis-env/pyvenv.cfg", config.as_bytes(), 0o644);
    scratch.directory("opt/analysis-env/bin", 0o755);
    let python = scratch.path().join("opt/analysis-env/bin/python");
    symlink(bin.join("python3.12"), python).unwrap();
}

/// One that this interpreter makes, with links to it.
pub(crate) fn virtual_environment(python: &Path, path: &Path) {
    assert!(python.exists(), "{} is missing on this host: install python3", python.display());
    run(python, &["-I", "-m", "venv", "--without-pip", "--symlinks"], path);
}

/// Runs a program of the host's with a path behind its arguments; what it prints.
pub(crate) fn run(program: &Path, arguments: &[&str], path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "a test prepares the host as its owner would")]
    let mut command = std::process::Command::new(program);
    let output = command.args(arguments).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
