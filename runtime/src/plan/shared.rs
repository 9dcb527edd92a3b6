//! Why a guest has no kernel uid of its own, in words with their fix; decides nothing.

use core::fmt;
use std::path::PathBuf;

use crate::error::Shown as _;

/// Why the guest's kernel uid is the service's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyShared {
    /// The profile names the service's own id.
    Named,
    /// The service has no capability to change ids, and this file gives its user none.
    NoRange {
        /// `/etc/subuid` or `/etc/subgid`.
        file: &'static str,
    },
    /// What the file gives is not in the service's own user namespace.
    RangeUnmapped {
        /// `/etc/subuid` or `/etc/subgid`.
        file: &'static str,
    },
    /// What the file gives is also somebody else's: an id of it would be no one's own.
    RangeTaken {
        /// `/etc/subuid` or `/etc/subgid`.
        file: &'static str,
    },
    /// The tool that writes such ids into a map is not installed.
    ToolMissing {
        /// Its name.
        program: &'static str,
    },
    /// The tool has no power here.
    ToolPowerless {
        /// Where it is.
        path: PathBuf,
    },
    /// `no_new_privs` is set on the service, so that the tool gets no power from it.
    NoNewPrivs,
    /// The service's gid is not its user's primary one, which the tools insist on.
    OtherGroup {
        /// The primary gid.
        primary: u32,
    },
    /// The service's uid is not in `/etc/passwd`, where the tools look for it.
    NoUser,
    /// The profile binds this, which the service's own ids may use and no other.
    Needs {
        /// On the host.
        path: PathBuf,
    },
}

impl WhyShared {
    /// What to do for a uid of the guest's own.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Named => "leave `host_uid` and `host_gid` out of the profile".to_owned(),
            Self::NoRange { .. } | Self::RangeUnmapped { .. } => {
                "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER, \
                 with a range that is nobody's; or run the service with CAP_SETUID, CAP_SETGID \
                 and CAP_SETFCAP"
                    .to_owned()
            }
            Self::RangeTaken { file } => format!("give each user in {file} a range of its own"),
            Self::ToolMissing { .. } => {
                "install newuidmap and newgidmap (Debian: apt-get install uidmap; Fedora: dnf \
                 install shadow-utils)"
                    .to_owned()
            }
            Self::ToolPowerless { path } => format!(
                "as root: chmod u+s {}, owned by root, on a mount without nosuid",
                path.shown()
            ),
            Self::NoNewPrivs => {
                "start the service without no_new_privs (systemd: NoNewPrivileges=no)".to_owned()
            }
            Self::OtherGroup { primary } => format!("run the service with gid {primary}"),
            Self::NoUser => "run the service as a user of /etc/passwd".to_owned(),
            Self::Needs { .. } => "let others use it too, as far as the guest should: o+rX, or \
                                   `access = \"shared\"` for a workspace; or do without it"
                .to_owned(),
        }
    }
}

impl fmt::Display for WhyShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("the profile names the service's own id"),
            Self::NoRange { file } => write!(
                f,
                "the service lacks CAP_SETUID, CAP_SETGID or CAP_SETFCAP, and {file} has no range \
                 for its user"
            ),
            Self::RangeUnmapped { file } => {
                write!(f, "what {file} gives to the user is not mapped in its user namespace")
            }
            Self::RangeTaken { file } => {
                write!(
                    f,
                    "what {file} gives to the user is also given to another, or is its own id"
                )
            }
            Self::ToolMissing { program } => write!(f, "{program} is not installed"),
            Self::ToolPowerless { path } => write!(
                f,
                "{} is not set-uid root, has no capabilities, or is on a nosuid mount",
                path.shown()
            ),
            Self::NoNewPrivs => f.write_str("no_new_privs is set on the service"),
            Self::OtherGroup { primary } => {
                write!(f, "the service's gid is not {primary}, its user's primary one")
            }
            Self::NoUser => f.write_str("the service's uid is not in /etc/passwd"),
            Self::Needs { path } => write!(
                f,
                "only the service's own ids may use {} as the profile wants it used",
                path.shown()
            ),
        }
    }
}
