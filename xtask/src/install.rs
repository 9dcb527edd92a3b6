//! Installs the programs that the tests run, where they are missing and the machine lets us.

use std::path::Path;

use crate::command::program;
use crate::failure::Failure;
use crate::say;

/// A program of the tests and the Debian package that has it.
const PROGRAMS: [(&str, &str); 11] = [
    ("awk", "gawk"),
    ("cc", "gcc"),
    ("git", "git"),
    ("gpg", "gnupg"),
    ("newuidmap", "uidmap"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("python3", "python3"),
    ("setcap", "libcap2-bin"),
    ("setpriv", "util-linux"),
    ("ssh-keygen", "openssh-client"),
];

/// The package that has the module of Python's which makes environments with pip in them.
const ENSUREPIP: &str = "python3-venv";

/// Where guests and tests find programs.
const DIRECTORIES: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
const APT: &str = "/usr/bin/apt-get";

/// As root on a machine with apt, gets what is missing. Elsewhere the tests name it and fail.
pub(crate) fn install() -> Result<(), Failure> {
    let programs = PROGRAMS.iter().filter(|row| !is_there(row.0)).map(|row| row.1);
    let module = (!has_ensurepip(Path::new("/usr"))).then_some(ENSUREPIP);
    missing(&programs.chain(module).collect::<Vec<_>>())
}

/// The same for programs of some tests alone, with the packages that have them.
pub(crate) fn programs(rows: &[(&str, &'static str)]) -> Result<(), Failure> {
    let rows = rows.iter().filter(|row| !is_there(row.0));
    missing(&rows.map(|row| row.1).collect::<Vec<_>>())
}

/// The same for packages of which no program tells whether they are there.
pub(crate) fn packages(names: &[&'static str]) -> Result<(), Failure> {
    let is_installed = |name: &str| {
        let mut query = program("dpkg-query");
        query.args(["--show", "--showformat", "${db:Status-Status}", name]);
        query.output().is_ok_and(|output| output.stdout == b"installed")
    };
    missing(&names.iter().copied().filter(|name| !is_installed(name)).collect::<Vec<_>>())
}

fn missing(missing: &[&str]) -> Result<(), Failure> {
    let may = rustix::process::geteuid().is_root() && Path::new(APT).exists();
    if missing.is_empty() || !may {
        return Ok(());
    }
    say(&format!("xtask: installing what the tests run: {}", missing.join(" ")));
    apt(&["update", "--quiet"])?;
    let install = ["install", "--quiet", "--yes", "--no-install-recommends"];
    apt(&[&install[..], missing].concat())
}

fn is_there(name: &str) -> bool {
    DIRECTORIES.iter().any(|directory| Path::new(directory).join(name).exists())
}

/// Whether the Python of a prefix has it: Debian's leaves it to a package.
fn has_ensurepip(prefix: &Path) -> bool {
    let name = std::fs::read_link(prefix.join("bin/python3"));
    name.is_ok_and(|name| prefix.join("lib").join(name).join("ensurepip").is_dir())
}

fn apt(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = program(APT);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    let status =
        command.status().map_err(|source| Failure::Start { program: APT.into(), source })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Ended { command: format!("{APT} {}", arguments.join(" ")), status }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_by_name() {
        assert!(is_there("sh"));
        assert!(!is_there("no-such-program"));
    }

    #[test]
    fn a_python_is_asked_for_its_module() {
        let prefix = std::env::temp_dir().join(format!("postern-ensurepip-{}", std::process::id()));
        std::fs::create_dir_all(prefix.join("bin")).unwrap();
        std::os::unix::fs::symlink("python3.11", prefix.join("bin/python3")).unwrap();
        let before = has_ensurepip(&prefix);
        std::fs::create_dir_all(prefix.join("lib/python3.11/ensurepip")).unwrap();
        let after = has_ensurepip(&prefix);
        std::fs::remove_dir_all(&prefix).unwrap();
        assert_eq!((before, after), (false, true));
    }

    #[test]
    fn each_program_has_one_row() {
        let mut names = PROGRAMS.map(|row| row.0).to_vec();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
        assert!(names.is_sorted());
    }
}
