//! What to paste to remove a cause: settings, profiles and flags as whole texts. Applies none.

mod apparmor;
mod texts;

use std::path::Path;

use serde::Serialize;

use super::{Cause, Refusal};

/// Whose configuration a [`Fix`] changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Place {
    /// The machine: sysctl, AppArmor, mounts.
    Host,
    /// The systemd unit of the service; write its name for `SERVICE`.
    Systemd,
    /// The `docker run` of the service's container.
    Docker,
    /// The pod of the service's container; write its name for `NAME`.
    Kubernetes,
    /// The sandbox's own profile.
    Profile,
    /// How the service itself is started or written.
    Service,
}

impl Place {
    /// One word for it, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Systemd => "systemd",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
            Self::Profile => "profile",
            Self::Service => "service",
        }
    }
}

/// One way to remove a cause. Where a cause has several, each is enough in the place it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fix {
    /// Whose configuration it changes.
    pub place: Place,
    /// What it does, and what it gives away.
    pub what: String,
    /// The file that `text` goes into; `None` where `text` is not for a file of its own.
    pub file: Option<String>,
    /// What to paste: the file's contents, a command, flags, lines of a pod.
    pub text: String,
    /// What to run, as root, once the file is there.
    pub command: Option<String>,
}

impl Fix {
    fn new(place: Place, what: &str, text: impl Into<String>) -> Fix {
        Fix { place, what: what.to_owned(), file: None, text: text.into(), command: None }
    }

    fn in_file(self, file: impl Into<String>, command: impl Into<String>) -> Fix {
        Fix { file: Some(file.into()), command: Some(command.into()), ..self }
    }
}

impl Cause {
    /// What to paste so that the cause is gone, most fitting first.
    ///
    /// `executable` is the service's own, as `/proc/self/exe` names it: an AppArmor profile is for
    /// one executable. Nothing is looked at and nothing is changed.
    #[must_use]
    pub fn fixes(&self, executable: &Path) -> Vec<Fix> {
        let found = texts::TABLE.iter().find(|row| row.0 == self.name);
        found.map_or_else(Vec::new, |row| (row.1)(executable))
    }
}

impl Refusal {
    /// What to paste where the host, not the profile, is what has to change; empty for the rest,
    /// whose `Display` says what to write in the profile.
    #[must_use]
    pub fn fixes(&self) -> Vec<Fix> {
        match self.rule() {
            "missing-capabilities" => texts::map_capabilities(),
            "cgroup-unavailable" => texts::delegation(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::error::causes;

    #[test]
    fn every_cause_has_a_fix_that_can_be_pasted() {
        let table: BTreeSet<_> = texts::TABLE.iter().map(|row| row.0).collect();
        let names: BTreeSet<_> = causes().map(|cause| cause.name).collect();
        assert_eq!(table, names);
        for cause in causes() {
            let fixes = cause.fixes(Path::new("/usr/bin/service"));
            assert!(!fixes.is_empty(), "{}", cause.name);
            for fix in fixes {
                let texts = [&fix.what, &fix.text];
                assert!(texts.iter().all(|text| !text.trim().is_empty()), "{fix:?}");
                assert_eq!(fix.file.is_some(), fix.command.is_some(), "{fix:?}");
            }
        }
    }

    #[test]
    fn a_setting_is_a_line_a_file_and_a_command() {
        let rows = [
            ("user-namespaces-limited", "user.max_user_namespaces = 15000\n"),
            ("unprivileged-userns-clone", "kernel.unprivileged_userns_clone = 1\n"),
            ("memfd-noexec", "vm.memfd_noexec = 1\n"),
            ("keyring-quota", "kernel.keys.maxkeys = 2000\n"),
        ];
        for (name, line) in rows {
            let cause = causes().find(|cause| cause.name == name).unwrap();
            let fixes = cause.fixes(Path::new("/x"));
            let fix = fixes.iter().find(|fix| fix.text == line).unwrap();
            assert_eq!(fix.file.as_deref(), Some("/etc/sysctl.d/60-postern.conf"), "{name}");
            let command = "sysctl -p /etc/sysctl.d/60-postern.conf";
            assert_eq!(fix.command.as_deref(), Some(command), "{name}");
        }
    }

    #[test]
    fn a_container_gets_its_flags() {
        let rows = [
            ("proc-masked", Place::Docker, "--security-opt systempaths=unconfined"),
            ("proc-masked", Place::Kubernetes, "procMount: Unmasked"),
            ("proc-masked", Place::Kubernetes, "hostUsers: false"),
            ("proc-masked", Place::Profile, "proc = \"none\""),
            ("outer-seccomp", Place::Docker, "--security-opt seccomp=unconfined"),
            ("outer-seccomp", Place::Kubernetes, "seccompProfile:\n          type: Unconfined"),
            ("mount-forbidden", Place::Docker, "--security-opt apparmor=unconfined"),
            ("mount-forbidden", Place::Kubernetes, "appArmorProfile:\n          type: Unconfined"),
            ("process-limit", Place::Docker, "--pids-limit"),
        ];
        for (name, place, words) in rows {
            let cause = causes().find(|cause| cause.name == name).unwrap();
            let fixes = cause.fixes(Path::new("/x"));
            let fits = |fix: &Fix| fix.place == place && fix.text.contains(words);
            assert!(fixes.iter().any(fits), "{name} {place:?} {words}: {fixes:#?}");
        }
    }
}
