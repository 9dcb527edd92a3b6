//! The architectures a filter can be made for, and their call tables; not the host's abilities.

use core::fmt;

use crate::error::Error;
use crate::table;

/// An architecture with a reviewed table of system calls.
///
/// All of them are little-endian, which the program layout relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arch {
    /// 64-bit x86, the native ABI only: not i386, not x32.
    X86_64,
}

impl Arch {
    /// The architecture this code was built for.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedTarget`] elsewhere than on 64-bit x86 Linux.
    pub const fn native() -> Result<Self, Error> {
        let x86_64 = cfg!(target_arch = "x86_64") && cfg!(target_pointer_width = "64");
        if cfg!(target_os = "linux") && x86_64 {
            Ok(Self::X86_64)
        } else {
            let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
            Err(Error::UnsupportedTarget { os, arch })
        }
    }

    /// The `AUDIT_ARCH_*` value that the kernel puts into `seccomp_data.arch`.
    #[must_use]
    pub const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
        }
    }

    /// The Linux release whose calls were reviewed last; newer calls count as unreviewed.
    #[must_use]
    pub const fn reviewed_release(self) -> &'static str {
        match self {
            Self::X86_64 => table::x86_64::RELEASE,
        }
    }

    /// Every reviewed call as number and name, ascending.
    pub fn calls(self) -> impl ExactSizeIterator<Item = (u32, &'static str)> + DoubleEndedIterator {
        self.table().iter().copied()
    }

    /// The number of a call, if the architecture has it.
    #[must_use]
    pub fn call_number(self, name: &str) -> Option<u32> {
        self.table().iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
    }

    /// The name of a reviewed call number.
    #[must_use]
    pub fn call_name(self, number: u32) -> Option<&'static str> {
        let table = self.table();
        let index = table.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        table.get(index).map(|(_, name)| *name)
    }

    /// Names of calls that were probably meant by one that is none, the likeliest first, at most
    /// three.
    #[must_use]
    pub fn nearest_calls(self, name: &str) -> Vec<&'static str> {
        // Longer ones resemble nothing, and comparing them takes time by their product.
        if name.len() > 64 {
            return Vec::new();
        }
        let name = name.to_lowercase();
        let slips_max = 1 + name.len() / 5;
        let slips = |call: &'static str| (strsim::osa_distance(&name, call), call);
        let mut near: Vec<_> = self.calls().map(|(_, call)| slips(call)).collect();
        near.retain(|(slips, call)| *slips <= slips_max || is_part(&name, call));
        near.sort();
        near.into_iter().map(|(_, call)| call).take(3).collect()
    }

    const fn table(self) -> &'static [(u32, &'static str)] {
        match self {
            Self::X86_64 => table::x86_64::CALLS,
        }
    }
}

/// Whether one name begins with the other, as `openat` and `openat2` do.
fn is_part(name: &str, call: &str) -> bool {
    name.len() >= 3 && (call.starts_with(name) || name.starts_with(call) && call.len() >= 3)
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86_64",
        })
    }
}
