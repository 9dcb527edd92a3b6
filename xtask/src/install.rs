//! Installs the programs that the tests run, where they are missing and the machine lets us.

use std::path::Path;

use crate::command::program;
use crate::failure::Failure;
use crate::say;

/// A program of the tests and the Debian package that has it.
const PROGRAMS: [(&str, &str); 9] = [
    ("awk", "gawk"),
    ("cc", "gcc"),
    ("git", "git"),
    ("gpg", "gnupg"),
    ("node", "nodejs"),
    ("python3", "python3"),
    ("setcap", "libcap2-bin"),
    ("setpriv", "util-linux"),
    ("ssh-keygen", "openssh-client"),
];

/// Where guests and tests find programs.
const DIRECTORIES: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
const APT: &str = "/usr/bin/apt-get";

/// As root on a machine with apt, gets what is missing. Elsewhere the tests name it and fail.
pub(crate) fn install() -> Result<(), Failure> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|row| !is_there(row.0)).map(|row| row.1).collect();
    let may = rustix::process::geteuid().is_root() && Path::new(APT).exists();
    if missing.is_empty() || !may {
        return Ok(());
    }
    say(&format!("xtask: installing what the tests run: {}", missing.join(" ")));
    apt(&["update", "--quiet"])?;
    let install = ["install", "--quiet", "--yes", "--no-install-recommends"];
    apt(&[&install[..], &missing].concat())
}

fn is_there(name: &str) -> bool {
    DIRECTORIES.iter().any(|directory| Path::new(directory).join(name).exists())
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
    fn each_program_has_one_row() {
        let mut names = PROGRAMS.map(|row| row.0).to_vec();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
        assert!(names.is_sorted());
    }
}
