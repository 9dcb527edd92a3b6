//! What the child of a direct launch tells its parent; the words for it are the parent's.

use core::ffi::CStr;
use postern_init::supervise;
use postern_init::sys::{self as base, Errno, Fd, c_str};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What could not be done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            const ALL: &'static [Fault] = &[$(Fault::$name,)*];
        }
    };
}

faults! {
    /// Waiting for the parent's word.
    Gate,
    /// Resetting signals.
    Signals,
    /// `prctl(PR_SET_NO_NEW_PRIVS)`.
    NoNewPrivileges,
    /// Opening the host's `/proc`.
    HostProc,
    /// Bringing `lo` up.
    Loopback,
    /// Writing `uid_map`.
    UidMap,
    /// Writing `setgroups`.
    Setgroups,
    /// Writing `gid_map`.
    GidMap,
    /// `setresuid(2)`.
    Uid,
    /// `setresgid(2)`.
    Gid,
    /// Dropping from the bounding set.
    BoundingSet,
    /// Setting `umask`.
    Umask,
    /// Making mounts slaves of the host's.
    Propagation,
    /// Making the new root.
    MakeRoot,
    /// Finding the source of an operation before anything is done.
    FindSource,
    /// Opening the source of an operation.
    OpenSource,
    /// The source is not what the descriptor is open on.
    SourceChanged,
    /// Making the directories above the target.
    Parents,
    /// Making the target.
    Target,
    /// The target is a symbolic link.
    TargetIsLink,
    /// The target is no directory.
    TargetIsNoDirectory,
    /// The target is a directory.
    TargetIsDirectory,
    /// Binding.
    Bind,
    /// Setting the flags of what is bound.
    BindFlags,
    /// Making a mount read-only.
    RemountReadOnly,
    /// Mounting an overlay.
    Overlay,
    /// Mounting a procfs.
    Proc,
    /// Covering a part of procfs.
    CoverProc,
    /// Mounting a tmpfs.
    Tmpfs,
    /// Making a device node's place.
    DevNode,
    /// Making a link or directory of `/dev`.
    DevEntry,
    /// Mounting a devpts.
    Devpts,
    /// Mounting an mqueue.
    Mqueue,
    /// Writing the contents of a file.
    WriteFile,
    /// Making the file that is bound.
    TemporaryFile,
    /// Making a symbolic link.
    Link,
    /// Something that is no link is there.
    LinkIsOther,
    /// The link is there and leads elsewhere: where is the report's text.
    LinkLeadsElsewhere,
    /// Opening the target of a change of mode.
    OpenTarget,
    /// Changing the mode.
    Chmod,
    /// Setting the hostname.
    Hostname,
    /// Changing the root.
    PivotRoot,
    /// Joining the second user namespace.
    JoinSecondUser,
    /// Lowering `user.max_user_namespaces`.
    LimitUserNamespaces,
    /// Making the inner user namespace.
    InnerUser,
    /// A user namespace could be made where none should be.
    UserNamespacesLeft,
    /// `capset(2)`.
    Capabilities,
    /// `PR_SET_DUMPABLE`.
    Dumpable,
    /// Entering the working directory.
    WorkingDirectory,
    /// `setsid(2)`.
    Session,
    /// Making the process that becomes the program.
    Fork,
    /// Closing what PID 1 does not keep.
    CloseDescriptors,
    /// Opening a file to lock.
    OpenLock,
    /// Locking it.
    Lock,
    /// Asking to die with the parent.
    DieWithParent,
    /// Adding an ambient capability.
    Ambient,
    /// Installing a filter.
    Filter,
    /// A wall beyond what was asked for: the place is 0 for the keyring, 1 for limits, 2 for Landlock.
    Hardening,
    /// Starting the program.
    Exec,
    /// Waiting for the program.
    Wait,
}

impl Fault {
    /// At no place in a list.
    pub(super) const fn why(self) -> impl FnOnce(Errno) -> Failure {
        self.at(0)
    }

    /// At a place in a list.
    pub(super) const fn at(self, place: u32) -> impl FnOnce(Errno) -> Failure {
        move |errno| Failure { fault: self, place, errno }
    }

    /// Not because the kernel said so.
    pub(super) const fn plain(self, place: u32) -> Failure {
        Failure { fault: self, place, errno: Errno(0) }
    }
}

/// A failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What could not be done.
    pub fault: Fault,
    /// To which entry of its list.
    pub place: u32,
    /// Why; 0 where the kernel had no part in it.
    pub errno: Errno,
}

/// The longest text of a [`Report`].
const TEXT_MAX: usize = 256;

/// Length of an encoded [`Report`] in bytes.
pub const REPORT_LEN: usize = 16 + TEXT_MAX;

/// What one message says.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and nothing to box it with")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A step failed; the text is what only the child knows, and mostly empty.
    Failed(Failure, Text),
    /// The program has ended with this status; PID 1 may stay for what it has left behind.
    Ended(i32),
}

/// A few bytes of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; TEXT_MAX],
    len: u32,
}

impl Text {
    /// Nothing.
    pub(super) const EMPTY: Text = Text { bytes: [0; TEXT_MAX], len: 0 };

    /// The target of a link, as much as there is room for.
    pub(super) fn of_link(dir: Fd, name: &CStr) -> Result<Text, Errno> {
        let mut text = Text::EMPTY;
        let len = super::sys::read_link(dir, name, &mut text.bytes)?;
        text.len = u32::try_from(len).unwrap_or(0);
        Ok(text)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let len = usize::try_from(self.len).unwrap_or(0);
        self.bytes.get(..len).unwrap_or_default()
    }
}

impl Report {
    /// Where a failure has the number of its step.
    const ENDED: u32 = u32::MAX;

    /// The bytes that travel.
    fn encode(&self) -> [u8; REPORT_LEN] {
        let (words, text) = match self {
            Report::Failed(failure, text) => {
                let errno = failure.errno.0.cast_unsigned();
                ([failure.fault as u32, failure.place, errno, text.len], text)
            }
            Report::Ended(status) => ([Self::ENDED, status.cast_unsigned(), 0, 0], &Text::EMPTY),
        };
        let mut out = [0; REPORT_LEN];
        let (head, tail) = out.split_at_mut(16);
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        tail.copy_from_slice(&text.bytes);
        out
    }

    /// Reads what `tell` has sent.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Report> {
        let (head, tail) = bytes.split_first_chunk::<16>()?;
        let mut words = head
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()));
        let (kind, place, errno, len) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        if kind == Self::ENDED {
            return Some(Report::Ended(place.cast_signed()));
        }
        let fault = *Fault::ALL.get(usize::try_from(kind).ok()?)?;
        let failure = Failure { fault, place, errno: Errno(errno.cast_signed()) };
        Some(Report::Failed(failure, Text { bytes: tail.try_into().ok()?, len }))
    }
}

/// Sends a report with a call that any filter for programs has to allow; a parent that is gone
/// needs none.
pub(super) fn tell(line: Fd, report: &Report) {
    base::write(line, &report.encode()).ok();
}

/// A number as a string.
pub(super) fn decimal(buffer: &mut [u8; 11], number: u32) -> Option<&CStr> {
    let (_nul, digits) = buffer.split_last_mut()?;
    let mut left = number;
    let mut first = digits.len();
    loop {
        first = first.checked_sub(1)?;
        *digits.get_mut(first)? = b'0'.wrapping_add(u8::try_from(left.checked_rem(10)?).ok()?);
        left = left.checked_div(10)?;
        if left == 0 {
            break;
        }
    }
    c_str(buffer.get(first..)?)
}

/// `/proc/self/fd/N`.
pub(super) fn fd_path(buffer: &mut [u8; 32], fd: Fd) -> Option<&CStr> {
    let mut digits = [0; 11];
    let number = decimal(&mut digits, u32::try_from(fd.0).ok()?)?;
    supervise::join(buffer, b"/proc/self/fd", number.to_bytes())
}

/// A part of a path as a string of its own: the slash behind it is a NUL meanwhile.
pub(super) fn part(buffer: &[u8], from: usize, end: usize) -> Option<&CStr> {
    c_str(buffer.get(from..=end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        let mut text = Text::EMPTY;
        text.bytes[..4].copy_from_slice(b"/etc");
        text.len = 4;
        let failure = Failure { fault: Fault::Exec, place: 7, errno: Errno::ENOENT };
        for report in [
            Report::Failed(failure, text),
            Report::Failed(Fault::Gate.plain(0), Text::EMPTY),
            Report::Ended(137),
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Report::decode(&[0; 15]), None);
        assert_eq!(Report::decode(&[0xfe; REPORT_LEN]), None);
    }

    #[test]
    fn a_descriptor_has_a_path() {
        for (fd, path) in [(0, c"/proc/self/fd/0"), (70, c"/proc/self/fd/70")] {
            assert_eq!(fd_path(&mut [0; 32], Fd(fd)), Some(path));
        }
        assert_eq!(fd_path(&mut [0; 32], Fd(-1)), None);
    }
}
