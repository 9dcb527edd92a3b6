//! The names of the levels a profile can choose; what each refuses is under `policies/`.

use core::fmt;
use core::str::FromStr;
use std::sync::OnceLock;

use crate::arch::Arch;
use crate::error::Error;
use crate::policies;
use crate::policy::Policy;
use crate::program;
use crate::program::Program;

/// How much the filter refuses; what each level answers to a call is in `docs/seccomp.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Level {
    /// [`Level::Default`], and what a Python guest never needs: netlink, System V IPC, message
    /// queues and more.
    Strict,
    /// What a hostile guest could use and ordinary programs do without.
    #[default]
    Default,
    /// The native verdicts of the PyPI package `postern` 0.5, plus the guards and a few rules.
    Compat,
    /// No filter at all.
    Off,
}

impl Level {
    /// Every level, strictest first.
    pub const ALL: [Self; 4] = [Self::Strict, Self::Default, Self::Compat, Self::Off];

    /// The name used in profiles and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Default => "default",
            Self::Compat => "compat",
            Self::Off => "off",
        }
    }

    /// The compiled policy of this level for the architecture that this was built for, made once
    /// per process; `None` for [`Level::Off`].
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedTarget`] where there is no reviewed table, or as [`program()`] says.
    pub fn native_program(self) -> Result<Option<&'static Program>, Error> {
        static STRICT: OnceLock<Program> = OnceLock::new();
        static DEFAULT: OnceLock<Program> = OnceLock::new();
        static COMPAT: OnceLock<Program> = OnceLock::new();
        let made = match self {
            Self::Strict => &STRICT,
            Self::Default => &DEFAULT,
            Self::Compat => &COMPAT,
            Self::Off => return Ok(None),
        };
        if let Some(program) = made.get() {
            return Ok(Some(program));
        }
        let program = program(self, Arch::native()?)?;
        Ok(program.map(|program| made.get_or_init(|| program)))
    }

    /// The policy of this level, or `None` for [`Level::Off`].
    #[must_use]
    pub const fn policy(self, arch: Arch) -> Option<Policy> {
        match self {
            Self::Strict => Some(policies::strict(arch)),
            Self::Default => Some(policies::default(arch)),
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
