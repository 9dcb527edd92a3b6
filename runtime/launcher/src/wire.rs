//! The messages from the library to the launcher: words of 64 bits and strings, read in place.
//!
//! Both sides are built from one source tree, so the format carries a number, not a history: a
//! launcher that meets another number refuses. Nothing here allocates or trusts a length.

use core::ffi::CStr;

use postern_init::sys::{Errno, c_str};

/// First word of a setup message.
pub const SETUP: u64 = 0x706f_7374_6572_0001;
/// First word of a run request.
pub const RUN: u64 = 0x706f_7374_6572_8001;

/// Room for a request that travels in the message itself; a longer one comes in a sealed memfd.
pub const REQUEST_INLINE_MAX: usize = 48 * 1024;
/// How many runs one launcher keeps at a time.
pub const RUNS_MAX: usize = 1024;

/// The descriptors that the launcher is born with: its socket to the library.
pub const CONTROL_FD: i32 = 3;
/// The host's process, as a pidfd.
pub const HOST_FD: i32 = 4;

/// Bits of a setup message's flags word.
pub mod flags {
    /// Bring `lo` up in each run's network namespace.
    pub const LOOPBACK: u64 = 1;
    /// Runs share the launcher's pid namespace: one at a time.
    pub const SHARED_PID: u64 = 2;
    /// Nothing is made ahead after the first run.
    pub const SINGLE_USE: u64 = 4;
    /// Drop supplementary groups.
    pub const DROP_GROUPS: u64 = 8;
    /// Take the ids given, keeping the capabilities given.
    pub const TAKE_IDS: u64 = 16;
    /// The launcher has no user namespace of its own: mounts must be made private by hand.
    pub const HOST_USER_NAMESPACE: u64 = 32;
}

/// Bits of a run request's flags word.
pub mod run_flags {
    /// Wait for one byte from the host before the guest is made.
    pub const ATTEST: u64 = 1;
    /// The request is in a memfd, which is the last descriptor of the message.
    pub const IN_MEMFD: u64 = 2;
    /// The guest limits its own address space once it is up.
    pub const LIMIT_INSIDE: u64 = 4;
    /// A control group follows the streams among the descriptors: the run is made in it.
    pub const CGROUP: u64 = 8;
    /// The guest gets a terminal for its three streams, whose size is in the word's upper half: rows,
    /// then columns, 16 bits each.
    pub const TERMINAL: u64 = 16;
}

/// Where a sysctl is written.
pub mod scope {
    /// Once, by the launcher, for its own user namespace.
    pub const LAUNCHER_USER: u64 = 0;
    /// By the launcher in each ipc namespace made ahead.
    pub const AHEAD_IPC: u64 = 1;
    /// By each run in its own user namespace.
    pub const RUN_USER: u64 = 2;
}

/// Operation codes of mount lists; the fields of each are read in `mount`.
pub mod op {
    /// As [`FRESH`] up to its options; becomes the new root.
    pub const ROOT: u64 = 1;
    /// The host's tree becomes the new root. attributes.
    pub const HOST_ROOT: u64 = 2;
    /// mode, parent, name.
    pub const DIR: u64 = 3;
    /// mode, parent, name, contents.
    pub const FILE: u64 = 4;
    /// parent, name, to.
    pub const SYMLINK: u64 = 5;
    /// attributes, dev, ino, source, parent, name.
    pub const BIND: u64 = 6;
    /// step code, attributes, type, count, key and value each; then export, target, parent, name.
    pub const FRESH: u64 = 7;
    /// target, cover.
    pub const MASK: u64 = 8;
    /// target.
    pub const READ_ONLY: u64 = 9;
    /// target. What is there is bound over itself, read-only; a missing target is passed over.
    pub const READ_ONLY_SELF: u64 = 11;
    /// As [`BIND`]; the mount is id-mapped by the setup's maps of an owner.
    pub const BIND_AS: u64 = 12;
    /// attributes, target, keep (or empty).
    pub const RUN_DIRECTORY: u64 = 10;
}

/// `export` field of [`op::FRESH`]: the host gets a descriptor of this directory.
pub const EXPORT: u64 = 1;

/// The same through an id-mapped mount, on which what is the guest's is the service's own.
pub const EXPORT_AS_OWN: u64 = 2;

/// A message that does not say what it should.
pub const MALFORMED: Errno = Errno::EPROTO;

/// Reads a message from front to back. Each read is checked; copying a reader marks a place.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// The next word.
    ///
    /// # Errors
    /// [`MALFORMED`] at the end.
    pub fn word(&mut self) -> Result<u64, Errno> {
        let (word, rest) = self.bytes.split_first_chunk::<8>().ok_or(MALFORMED)?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// The next word, which fits 32 bits.
    ///
    /// # Errors
    /// [`MALFORMED`] at the end, or when it does not fit.
    pub fn small(&mut self) -> Result<u32, Errno> {
        u32::try_from(self.word()?).ok().ok_or(MALFORMED)
    }

    /// The next counted bytes, padded to a whole word.
    ///
    /// # Errors
    /// [`MALFORMED`] when they are not all there.
    pub fn bytes(&mut self) -> Result<&'a [u8], Errno> {
        let len = usize::try_from(self.word()?).ok().ok_or(MALFORMED)?;
        let padded = len.checked_next_multiple_of(8).ok_or(MALFORMED)?;
        let (padded, rest) = self.bytes.split_at_checked(padded).ok_or(MALFORMED)?;
        self.bytes = rest;
        padded.get(..len).ok_or(MALFORMED)
    }

    /// The next string, which ends in its only NUL.
    ///
    /// # Errors
    /// [`MALFORMED`] when it does not.
    pub fn string(&mut self) -> Result<&'a CStr, Errno> {
        c_str(self.bytes()?).ok_or(MALFORMED)
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

/// A counted list inside a message.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    /// How many entries.
    pub count: u64,
    /// At the first of them.
    pub entries: Reader<'a>,
}

impl<'a> List<'a> {
    /// Reads a list's count and its whole extent in bytes, so that the list can be passed over.
    ///
    /// # Errors
    /// [`MALFORMED`] when it is not all there.
    pub fn read(reader: &mut Reader<'a>) -> Result<List<'a>, Errno> {
        let count = reader.word()?;
        Ok(List { count, entries: Reader::new(reader.bytes()?) })
    }
}

/// Everything the launcher is told once.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// [`flags`].
    pub flags: u64,
    /// `CLONE_NEW*` of each run's clone, those made ahead left out.
    pub clone_flags: u64,
    /// `CLONE_NEW*` made one run ahead.
    pub ahead_flags: u64,
    /// The uid to take, in the launcher's own user namespace.
    pub launcher_uid: u32,
    /// The gid to take.
    pub launcher_gid: u32,
    /// Capabilities to keep, a bit each.
    pub keep_capabilities: u64,
    /// The guest's uid inside.
    pub guest_uid: u32,
    /// The guest's gid inside.
    pub guest_gid: u32,
    /// The line that each run writes to its `uid_map`.
    pub uid_map: &'a CStr,
    /// The line that each run writes to its `gid_map`.
    pub gid_map: &'a CStr,
    /// The map on which what is the guest's is the service's own, for [`EXPORT_AS_OWN`].
    pub service_uid_map: &'a CStr,
    /// Likewise for gids.
    pub service_gid_map: &'a CStr,
    /// The map on which the guest stands for an owner, for [`op::BIND_AS`]; empty: no such mount.
    pub owner_uid_map: &'a CStr,
    /// Likewise for gids.
    pub owner_gid_map: &'a CStr,
    /// What each run writes to its `oom_score_adj`.
    pub oom_score_adj: &'a CStr,
    /// The hostname; empty: leave it.
    pub hostname: &'a CStr,
    /// The working directory.
    pub cwd: &'a CStr,
    /// scope, need (0 reported, 1 required), path, value.
    pub sysctls: List<'a>,
    /// resource, limit.
    pub rlimits: List<'a>,
    /// resource, limit.
    pub guest_rlimits: List<'a>,
    /// Mount operations of the launcher.
    pub template: List<'a>,
    /// Mount operations of each run.
    pub run: List<'a>,
    /// `LANDLOCK_ACCESS_FS_*` that are denied but where a rule allows them; 0: no Landlock domain.
    pub landlock_handled: u64,
    /// `LANDLOCK_SCOPE_*`.
    pub landlock_scoped: u64,
    /// rights, path.
    pub landlock_rules: List<'a>,
    /// The system-call filter, eight bytes an instruction; empty: none.
    pub filter: &'a [u8],
    /// A filter for the guest's program only, likewise.
    pub policy: &'a [u8],
}

impl<'a> Setup<'a> {
    /// Reads a whole setup message.
    ///
    /// # Errors
    /// [`MALFORMED`] when it is not one.
    pub fn read(bytes: &'a [u8]) -> Result<Setup<'a>, Errno> {
        let mut reader = Reader::new(bytes);
        let r = &mut reader;
        if r.word()? != SETUP {
            return Err(MALFORMED);
        }
        Ok(Setup {
            flags: r.word()?,
            clone_flags: r.word()?,
            ahead_flags: r.word()?,
            launcher_uid: r.small()?,
            launcher_gid: r.small()?,
            keep_capabilities: r.word()?,
            guest_uid: r.small()?,
            guest_gid: r.small()?,
            uid_map: r.string()?,
            gid_map: r.string()?,
            service_uid_map: r.string()?,
            service_gid_map: r.string()?,
            owner_uid_map: r.string()?,
            owner_gid_map: r.string()?,
            oom_score_adj: r.string()?,
            hostname: r.string()?,
            cwd: r.string()?,
            sysctls: List::read(r)?,
            rlimits: List::read(r)?,
            guest_rlimits: List::read(r)?,
            template: List::read(r)?,
            run: List::read(r)?,
            landlock_handled: r.word()?,
            landlock_scoped: r.word()?,
            landlock_rules: List::read(r)?,
            filter: r.bytes()?,
            policy: r.bytes()?,
        })
    }

    /// Whether a [`flags`] bit is set.
    #[must_use]
    pub const fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// What one run is told, before its tables are relocated.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// [`run_flags`].
    pub flags: u64,
    /// The name of the run's own directory in the exchange; empty: none.
    pub run_directory: &'a CStr,
    /// Where programs without a slash are looked for.
    pub search: &'a CStr,
    /// The working directory instead of the plan's; empty: the plan's.
    pub cwd: &'a CStr,
    /// The program.
    pub program: &'a CStr,
    /// Entries of the argument table, the last one 0.
    pub arguments: usize,
    /// Entries of the environment table, the last one 0.
    pub environment: usize,
    /// Byte offset of the argument table in the message; the environment's follows it.
    pub table: usize,
}

impl<'a> Request<'a> {
    /// Reads the fixed part of a request.
    ///
    /// # Errors
    /// [`MALFORMED`] when it is not one.
    pub fn read(bytes: &'a [u8]) -> Result<Request<'a>, Errno> {
        let mut reader = Reader::new(bytes);
        let r = &mut reader;
        if r.word()? != RUN {
            return Err(MALFORMED);
        }
        let (flags, arguments, environment) = (r.word()?, r.word()?, r.word()?);
        let request = Request {
            flags,
            arguments: usize::try_from(arguments).ok().ok_or(MALFORMED)?,
            environment: usize::try_from(environment).ok().ok_or(MALFORMED)?,
            run_directory: r.string()?,
            search: r.string()?,
            cwd: r.string()?,
            program: r.string()?,
            table: 0,
        };
        let table = bytes.len().checked_sub(r.rest().len()).ok_or(MALFORMED)?;
        Ok(Request { table, ..request })
    }
}
