//! The fixed record in which the launcher and PID 1 report to the library; no text crosses.

/// Length of an encoded [`Record`] in bytes.
pub const LEN: usize = 56;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The launcher stands ready; its facts are in the other fields.
    Ready = 1,
    /// The run's PID 1 exists; its pidfd travels with this record.
    Started = 2,
    /// A step failed; nothing more will come but [`Kind::Reaped`].
    Failed = 3,
    /// PID 1 is confined as the guest will be, and waits for one byte before it goes on.
    Confined = 4,
    /// The guest's process ended; code, signal and usage are its own.
    GuestEnded = 5,
    /// The program could not be started; `errno` says why.
    ExecFailed = 6,
    /// PID 1 was reaped by the launcher: nothing of the run is left.
    Reaped = 7,
    /// The guest has a terminal; its master and its other end travel with this record.
    Terminal = 8,
}

impl Kind {
    const fn from_code(code: u32) -> Option<Kind> {
        Some(match code {
            1 => Kind::Ready,
            2 => Kind::Started,
            3 => Kind::Failed,
            4 => Kind::Confined,
            5 => Kind::GuestEnded,
            6 => Kind::ExecFailed,
            7 => Kind::Reaped,
            8 => Kind::Terminal,
            _ => return None,
        })
    }
}

/// One report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// What it says.
    pub kind: Kind,
    /// The failing step's code, or 0.
    pub step: u32,
    /// The place of the failing operation in its list (`u32::MAX`: not in a list).
    pub index: u32,
    /// Why, as the kernel said it.
    pub errno: i32,
    /// Exit code, or -1; securebits of a [`Kind::Confined`] record.
    pub code: i32,
    /// Terminating signal, or 0.
    pub signal: i32,
    /// User time in microseconds.
    pub user_us: u64,
    /// System time in microseconds.
    pub system_us: u64,
    /// Largest resident set of any one process, in KiB.
    pub peak_kib: u64,
    /// [`facts`] bits of a [`Kind::Ready`] record, [`attested`] bits of a [`Kind::Confined`] one.
    pub facts: u32,
}

/// What the launcher found out while it got ready, as bits of [`Record::facts`].
pub mod facts {
    /// `clone3` was refused and `clone` used instead.
    pub const CLONE3_REFUSED: u32 = 1;
    /// The kernel has no keyrings.
    pub const NO_KEYRINGS: u32 = 2;
    /// A reported-only limit of the launcher's user namespace could not be lowered.
    pub const LAUNCHER_LIMITS_MISSING: u32 = 4;
    /// A reported-only ipc limit could not be lowered.
    pub const IPC_LIMITS_MISSING: u32 = 8;
    /// The root was changed by moving the mount, since `pivot_root` does not work on this root.
    pub const MOVED_ROOT: u32 = 16;
    /// The id maps are written through the host's own /proc, since no fresh one can be mounted.
    pub const HOST_PROC: u32 = 32;
    /// The workspace's mount could not be id-mapped: the host reaches it as a group.
    pub const WORKSPACE_BY_GROUP: u32 = 64;
}

/// What PID 1 finds of itself, as bits of the facts of a [`Kind::Confined`] record, whose code is
/// its securebits: the kernel tells these to nobody else.
pub mod attested {
    /// A Landlock domain refused what nothing else refuses.
    pub const LANDLOCK: u32 = 1;
    /// The session keyring is closed to PID 1 itself.
    pub const KEYRING_CLOSED: u32 = 2;
    /// No process of the same uid may look into PID 1.
    pub const NON_DUMPABLE: u32 = 4;
}

impl Record {
    /// A record that says only its kind.
    #[must_use]
    pub const fn new(kind: Kind) -> Record {
        Record {
            kind,
            step: 0,
            index: u32::MAX,
            errno: 0,
            code: -1,
            signal: 0,
            user_us: 0,
            system_us: 0,
            peak_kib: 0,
            facts: 0,
        }
    }

    /// The bytes that travel.
    #[must_use]
    pub fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        let words = [
            u64::from(self.kind as u32) | u64::from(self.step) << 32,
            u64::from(self.index) | u64::from(self.errno.cast_unsigned()) << 32,
            u64::from(self.code.cast_unsigned()) | u64::from(self.signal.cast_unsigned()) << 32,
            self.user_us,
            self.system_us,
            self.peak_kib,
            u64::from(self.facts),
        ];
        let (chunks, _) = out.as_chunks_mut::<8>();
        for (chunk, word) in chunks.iter_mut().zip(words) {
            *chunk = word.to_ne_bytes();
        }
        out
    }

    /// What the bytes say; `None` when they are no record.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let mut words = [0u64; 7];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().ok()?);
        }
        let [a, b, c, user_us, system_us, peak_kib, facts] = words;
        let ((kind, step), (index, errno), (code, signal)) = (halves(a), halves(b), halves(c));
        Some(Record {
            kind: Kind::from_code(kind)?,
            step,
            index,
            errno: errno.cast_signed(),
            code: code.cast_signed(),
            signal: signal.cast_signed(),
            user_us,
            system_us,
            peak_kib,
            facts: halves(facts).0,
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each half is 32 bits wide")]
const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way() {
        let record = Record {
            kind: Kind::GuestEnded,
            step: 7,
            index: 3,
            errno: -1,
            code: 255,
            signal: 9,
            user_us: u64::MAX,
            system_us: 1,
            peak_kib: 2,
            facts: 5,
        };
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let good = Record::new(Kind::Ready).encode();
        let mut unknown = good;
        if let Some(first) = unknown.first_mut() {
            *first = 99;
        }
        for bytes in [&[] as &[u8], good.get(1..).unwrap_or_default(), &unknown] {
            assert_eq!(Record::decode(bytes), None);
        }
    }
}
