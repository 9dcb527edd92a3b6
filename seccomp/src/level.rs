//! The names of the levels a profile can choose; what each refuses is under `policies/`.

use core::fmt;
use core::str::FromStr;

use crate::arch::Arch;
use crate::policies;
use crate::policy::Policy;

/// How much the filter refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The native verdicts of the PyPI package `postern` 0.5, plus the guards and a few rules.
    Compat,
    /// No filter at all.
    Off,
}

impl Level {
    /// Every level, strictest first.
    pub const ALL: [Self; 2] = [Self::Compat, Self::Off];

    /// The name used in profiles and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compat => "compat",
            Self::Off => "off",
        }
    }

    /// The policy of this level, or `None` for [`Level::Off`].
    #[must_use]
    pub const fn policy(self, arch: Arch) -> Option<Policy> {
        match self {
            Self::Compat => Some(policies::compat(arch)),
            Self::Off => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| UnknownLevel { name: name.to_owned() })
    }
}

/// A name that is not a [`Level`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLevel {
    /// The name as given.
    pub name: String,
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown seccomp level {:?}; one of:", self.name)?;
        Level::ALL.iter().try_for_each(|level| write!(f, " {level}"))
    }
}

impl std::error::Error for UnknownLevel {}
