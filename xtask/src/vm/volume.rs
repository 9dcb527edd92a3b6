//! A disk of a guest: one ext4 file system in one partition with a name of its own, made without a
//! mount. A kernel finds disks in any order, so that a disk is never asked for by its place.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::command::{lines_of, program, succeed};
use crate::failure::Failure;

/// Where the partition begins, as every tool has it.
const START_BYTES: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;

/// A disk by the signature of its table, of which the kernel makes the partition's `PARTUUID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// The guest's root.
    System,
    /// What one run adds.
    Payload,
}

impl Name {
    const fn signature(self) -> u32 {
        match self {
            Self::System => 0x5057_0001,
            Self::Payload => 0x5057_0002,
        }
    }

    /// As `root=` and mount take it.
    pub(crate) fn partition(self) -> String {
        format!("PARTUUID={:08x}-01", self.signature())
    }
}

/// Makes a disk of a directory, with so much room, and checks what came of it.
///
/// # Errors
/// Those of mke2fs and e2fsck.
pub(crate) fn make(tree: &Path, file: &Path, name: Name, free_bytes: u64) -> Result<(), Failure> {
    let mut used = program("du");
    let lines = lines_of(used.args(["--summarize", "--block-size=1024"]).arg(tree))?;
    let used = lines.first().and_then(|line| line.split('\t').next()?.parse::<u64>().ok());
    let used = used.ok_or_else(|| Failure::Archive { fact: "du printed no size".to_owned() })?;
    // Inodes, bitmaps and a journal. Whole blocks: mke2fs leaves a part of one out, and a partition that
    // ends behind its disk is found by nobody.
    let kib = (used + used / 8 + 32 * 1024 + free_bytes / 1024).next_multiple_of(1024);
    // What it says of a file that is not there yet is of no use.
    cache::write(file, "")?;
    let mut make = program("mke2fs");
    make.args(["-q", "-t", "ext4", "-F", "-m", "0", "-E", &format!("offset={START_BYTES}"), "-d"]);
    succeed(make.arg(tree).arg(file).arg(format!("{kib}k")))?;
    let within = PathBuf::from(format!("{}?offset={START_BYTES}", file.display()));
    // It says what it does, whatever it finds; no problem is a status of 0.
    lines_of(program("e2fsck").args(["-f", "-n"]).arg(within))?;
    let sector = sector(name, kib * 1024 / SECTOR_BYTES)?;
    let written = OpenOptions::new().write(true).open(file);
    let written = written.and_then(|file| file.write_all_at(&sector, 0));
    written.map_err(|source| cache::failure("write", file, source))
}

/// The first sector: a table with one partition of so many sectors.
fn sector(name: Name, sectors: u64) -> Result<[u8; 512], Failure> {
    let too_large = |_| Failure::Archive { fact: format!("{sectors} sectors are no partition") };
    let length = u32::try_from(sectors).map_err(too_large)?;
    let start = u32::try_from(START_BYTES / SECTOR_BYTES).map_err(too_large)?;
    let mut sector = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| {
        sector.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
    };
    put(440, &name.signature().to_le_bytes());
    // Linux, by block numbers alone.
    put(446 + 4, &[0x83]);
    put(446 + 8, &start.to_le_bytes());
    put(446 + 12, &length.to_le_bytes());
    put(510, &[0x55, 0xaa]);
    Ok(sector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_has_one_partition_and_a_name_of_its_own() {
        for (name, signature, partition) in [
            (Name::System, [1, 0, 0x57, 0x50], "PARTUUID=50570001-01"),
            (Name::Payload, [2, 0, 0x57, 0x50], "PARTUUID=50570002-01"),
        ] {
            let sector = sector(name, 0x0102_0304).unwrap();
            assert_eq!(sector[440..444], signature);
            assert_eq!(name.partition(), partition);
            // Type, first sector, sectors; three more entries; the mark of a table.
            let entry = [0x83, 0, 0, 0, 0, 8, 0, 0, 4, 3, 2, 1];
            assert_eq!(sector[450..462], entry);
            assert_eq!(sector[462..510], [0; 48]);
            assert_eq!(sector[510..], [0x55, 0xaa]);
        }
    }

    #[test]
    fn what_is_too_large_for_the_table_is_refused() {
        assert!(sector(Name::System, u64::from(u32::MAX)).is_ok());
        assert!(sector(Name::System, u64::from(u32::MAX) + 1).is_err());
    }
}
