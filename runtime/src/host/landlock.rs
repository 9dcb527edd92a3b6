//! Which version of Landlock a kernel offers to this process, or why none; uses none of it.

use core::fmt;

use super::sys;

/// What Landlock the service can use here.
///
/// See [landlock(7)](https://man7.org/linux/man-pages/man7/landlock.7.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LandlockSupport {
    /// This version of its interface, 1 or later.
    Abi(u32),
    /// The kernel was built without it, or is older than Linux 5.13 (`ENOSYS`).
    #[default]
    Missing,
    /// It is built in and not among the modules that the kernel was started with (`EOPNOTSUPP`).
    Disabled,
    /// Something around the service refuses the call, such as a container's seccomp filter.
    Refused {
        /// What the kernel said.
        errno: i32,
    },
}

impl LandlockSupport {
    /// Asks the kernel, by one system call.
    pub(crate) fn probe() -> Self {
        let version = sys::landlock_version();
        match version.map_err(|error| error.raw_os_error()) {
            Ok(0) | Err(None | Some(libc::ENOSYS)) => Self::Missing,
            Ok(abi) => Self::Abi(abi),
            Err(Some(libc::EOPNOTSUPP)) => Self::Disabled,
            Err(Some(errno)) => Self::Refused { errno },
        }
    }

    /// What to do about it where more is wanted.
    #[must_use]
    pub const fn fix(self) -> &'static str {
        match self {
            Self::Abi(_) => "a newer kernel (ABI 6 is Linux 6.12)",
            Self::Missing => "Linux 6.12 or later, built with CONFIG_SECURITY_LANDLOCK",
            Self::Disabled => "add landlock to the kernel's list of modules (lsm=landlock,...)",
            Self::Refused { .. } => {
                "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in \
                 the seccomp filter around the service"
            }
        }
    }
}

impl fmt::Display for LandlockSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abi(abi) => write!(f, "ABI {abi}"),
            Self::Missing => f.write_str("the kernel has no Landlock"),
            Self::Disabled => f.write_str("Landlock is not among the kernel's active modules"),
            Self::Refused { errno } => {
                write!(f, "Landlock is refused: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

    use super::LandlockSupport;

    #[test]
    fn another_library_finds_what_the_probe_finds() {
        let rows = [(1, ABI::V1), (2, ABI::V2), (3, ABI::V3), (5, ABI::V5)];
        for (number, abi) in rows {
            let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            let works = ruleset.handle_access(AccessFs::from_all(abi)).is_ok();
            let LandlockSupport::Abi(found) = LandlockSupport::probe() else {
                assert!(!works, "{number}");
                continue;
            };
            assert_eq!(found >= number, works, "{number}");
        }
    }
}
