//! The access rights of a Landlock domain as the kernel's bits, version by version; opens nothing.

use crate::plan::LandlockRight;

/// `LANDLOCK_ACCESS_FS_*`, as in `<linux/landlock.h>`.
mod access {
    pub(super) const EXECUTE: u64 = 1 << 0;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const READ_FILE: u64 = 1 << 2;
    pub(super) const READ_DIR: u64 = 1 << 3;
    pub(super) const REMOVE_DIR: u64 = 1 << 4;
    pub(super) const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_CHAR: u64 = 1 << 6;
    pub(super) const MAKE_DIR: u64 = 1 << 7;
    pub(super) const MAKE_REG: u64 = 1 << 8;
    pub(super) const MAKE_SOCK: u64 = 1 << 9;
    pub(super) const MAKE_FIFO: u64 = 1 << 10;
    pub(super) const MAKE_BLOCK: u64 = 1 << 11;
    pub(super) const MAKE_SYM: u64 = 1 << 12;
    pub(super) const REFER: u64 = 1 << 13;
    pub(super) const TRUNCATE: u64 = 1 << 14;
    pub(super) const IOCTL_DEV: u64 = 1 << 15;
}

/// `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET` and `LANDLOCK_SCOPE_SIGNAL`.
const SCOPES: u64 = 1 | 2;

/// Each right by the version that brought it. Rights that came later than these are not handled,
/// and so not restricted: a bit without a name here is never set.
const BY_VERSION: [(u32, u64); 4] = [
    (
        1,
        access::EXECUTE
            | access::WRITE_FILE
            | access::READ_FILE
            | access::READ_DIR
            | access::REMOVE_DIR
            | access::REMOVE_FILE
            | access::MAKE_CHAR
            | access::MAKE_DIR
            | access::MAKE_REG
            | access::MAKE_SOCK
            | access::MAKE_FIFO
            | access::MAKE_BLOCK
            | access::MAKE_SYM,
    ),
    (2, access::REFER),
    (3, access::TRUNCATE),
    (5, access::IOCTL_DEV),
];

/// What a domain of this version restricts.
pub(super) fn handled(abi: u32) -> u64 {
    let known = BY_VERSION.iter().filter(|row| row.0 <= abi);
    known.fold(0, |bits, row| bits | row.1)
}

/// What a domain of this version keeps to itself.
pub(super) const fn scoped(abi: u32) -> u64 {
    if abi >= 6 { SCOPES } else { 0 }
}

/// What a group of rights is in a domain of this version.
pub(super) fn bits(right: LandlockRight, abi: u32) -> u64 {
    let files = access::WRITE_FILE | access::TRUNCATE;
    let all = match right {
        LandlockRight::Read => access::READ_FILE | access::READ_DIR | access::EXECUTE,
        LandlockRight::Files => files,
        LandlockRight::Devices => files | access::IOCTL_DEV,
        LandlockRight::Tree => {
            files
                | access::REMOVE_DIR
                | access::REMOVE_FILE
                | access::MAKE_DIR
                | access::MAKE_REG
                | access::MAKE_SOCK
                | access::MAKE_FIFO
                | access::MAKE_SYM
                | access::REFER
        }
    };
    all & handled(abi)
}

#[cfg(test)]
mod tests {
    use landlock::{ABI, Access, AccessFs, BitFlags, Scope};

    use super::*;

    const VERSIONS: [(u32, ABI); 6] =
        [(1, ABI::V1), (2, ABI::V2), (3, ABI::V3), (4, ABI::V4), (5, ABI::V5), (6, ABI::V6)];

    #[test]
    fn the_table_is_that_of_landlocks_own_library() {
        for (abi, version) in VERSIONS {
            assert_eq!(handled(abi), AccessFs::from_all(version).bits(), "ABI {abi}");
            let scopes: BitFlags<Scope> = Scope::from_all(version);
            assert_eq!(scoped(abi), scopes.bits(), "ABI {abi}");
        }
        assert_eq!((handled(11), scoped(11)), (handled(6), scoped(6)), "later rights are unknown");
    }

    #[test]
    fn reading_changes_nothing_and_no_right_makes_a_device() {
        use LandlockRight::{Devices, Files, Read, Tree};
        for (abi, version) in VERSIONS {
            assert_eq!(bits(Read, abi), AccessFs::from_read(version).bits(), "ABI {abi}");
            let given = [Read, Files, Devices, Tree].map(|right| bits(right, abi));
            let all = given.into_iter().fold(0, |all, bits| all | bits);
            let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
            assert_eq!(handled(abi) & !all, devices.bits(), "ABI {abi}");
            // On a file the kernel takes no right of directories.
            let of_files = AccessFs::from_file(version).bits();
            assert_eq!(bits(Files, abi) & !of_files, 0, "ABI {abi}");
        }
    }
}
