//! What is asked of the mount tree, as the operations of a direct launch: paths made absolute or
//! relative to the root, defaults filled in.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use postern_init::sys::Fd;
use postern_launcher::direct::{Access, Operation, Upper};

use super::invocation::{self, BindAccess, Setup, Source};
use super::say::Wrong;
use super::{kept, sys};

/// The operations, one for each entry.
pub(super) fn operations(
    setup: &[Setup],
    own: Option<&Path>,
) -> Result<Vec<Operation<'static>>, Wrong> {
    setup.iter().map(|entry| operation(entry, own)).collect()
}

fn operation(entry: &Setup, own: Option<&Path>) -> Result<Operation<'static>, Wrong> {
    let source = |path: &Path| source(path, own);
    Ok(match entry {
        Setup::Bind { source: Source::Path(path), target, access: how, may_miss } => {
            let (source, target) = (source(path), inside(target));
            Operation::Bind {
                source,
                target,
                access: access(*how),
                may_miss: *may_miss,
                seen: None,
            }
        }
        Setup::Bind { source: Source::Fd(fd), target, access: how, may_miss } => {
            let (path, seen) = of_descriptor(*fd)?;
            let (source, target) = (kept::text(path), inside(target));
            let (access, may_miss) = (access(*how), *may_miss);
            Operation::Bind { source, target, access, may_miss, seen: Some(seen) }
        }
        Setup::RemountReadOnly { target } => Operation::RemountReadOnly { target: inside(target) },
        Setup::Overlay { layers, upper, target } => Operation::Overlay {
            layers: kept::list(layers.iter().map(|layer| source(layer)).collect()),
            upper: match upper {
                invocation::Upper::Directory { upper, work } => {
                    Upper::Directory { upper: source(upper), work: source(work) }
                }
                invocation::Upper::Memory => Upper::Memory,
                invocation::Upper::ReadOnly => Upper::ReadOnly,
            },
            target: inside(target),
        },
        Setup::Proc { target } => Operation::Proc { target: inside(target) },
        Setup::Dev { target } => Operation::Dev { target: inside(target) },
        Setup::Tmpfs { target, mode, size_bytes } => Operation::Tmpfs {
            target: inside(target),
            mode: mode.unwrap_or(0o755),
            size: size_bytes.map(|bytes| kept::text(bytes.to_string())),
        },
        Setup::Mqueue { target } => Operation::Mqueue { target: inside(target) },
        Setup::Dir { target, mode } => {
            Operation::Dir { target: inside(target), mode: mode.unwrap_or(0o755) }
        }
        Setup::File { fd, target, mode } => {
            Operation::File { fd: Fd(*fd), target: inside(target), mode: mode.unwrap_or(0o666) }
        }
        Setup::BindData { fd, target, mode, read_only } => Operation::BindData {
            fd: Fd(*fd),
            target: inside(target),
            mode: mode.unwrap_or(0o600),
            access: if *read_only { Access::ReadOnly } else { Access::ReadWrite },
        },
        Setup::Symlink { to, target } => {
            Operation::Symlink { to: kept::text(to), target: inside(target) }
        }
        Setup::Chmod { target, mode } => Operation::Chmod { target: inside(target), mode: *mode },
    })
}

const fn access(access: BindAccess) -> Access {
    match access {
        BindAccess::ReadWrite => Access::ReadWrite,
        BindAccess::ReadOnly => Access::ReadOnly,
        BindAccess::Devices => Access::Devices,
    }
}

/// A path of the host that does not depend on where the launch stands.
fn source(path: &Path, own: Option<&Path>) -> &'static CStr {
    match own {
        Some(own) => kept::text(own.join(path)),
        None => kept::text(path),
    }
}

/// A path of the new root without slashes around it.
fn inside(path: &Path) -> &'static CStr {
    let bytes = path.as_os_str().as_bytes();
    let is_name = |byte: &u8| *byte != b'/';
    let inner = match (bytes.iter().position(is_name), bytes.iter().rposition(is_name)) {
        (Some(first), Some(last)) => bytes.get(first..=last).unwrap_or_default(),
        _ => b".",
    };
    kept::text(OsStr::from_bytes(inner))
}

/// Where a descriptor leads, and what must be found there: a mount of the caller's cannot be bound
/// by descriptor in another mount namespace.
fn of_descriptor(fd: i32) -> Result<(PathBuf, (u64, u64)), Wrong> {
    let path = PathBuf::from(format!("/proc/self/fd/{fd}"));
    let failed = |error| Wrong::of(format!("Can't find source path {}", path.display()), error);
    let leads = std::fs::read_link(&path).map_err(failed)?;
    let failed = |error| Wrong::of(format!("Can't stat fd {fd}"), error);
    let found = rustix::fs::fstat(sys::lend(fd).map_err(failed)?);
    let found = found.map_err(|errno| failed(errno.into()))?;
    Ok((leads, (found.st_dev, found.st_ino)))
}

/// Where the operations of an entry are said to be, for people.
pub(super) fn target_of(entry: &Setup) -> &Path {
    match entry {
        Setup::Bind { target, .. }
        | Setup::RemountReadOnly { target }
        | Setup::Overlay { target, .. }
        | Setup::Proc { target }
        | Setup::Dev { target }
        | Setup::Tmpfs { target, .. }
        | Setup::Mqueue { target }
        | Setup::Dir { target, .. }
        | Setup::File { target, .. }
        | Setup::BindData { target, .. }
        | Setup::Symlink { target, .. }
        | Setup::Chmod { target, .. } => target,
    }
}

/// The source of an entry as it was written; of an overlay the first that is not there.
#[expect(clippy::wildcard_enum_match_arm, reason = "others have no source")]
pub(super) fn source_of(entry: &Setup) -> PathBuf {
    match entry {
        Setup::Bind { source: Source::Path(path), .. } => path.clone(),
        Setup::Bind { source: Source::Fd(fd), .. } => format!("/proc/self/fd/{fd}").into(),
        Setup::Overlay { layers, upper, .. } => {
            let upper = match upper {
                invocation::Upper::Directory { upper, work } => vec![upper, work],
                invocation::Upper::Memory | invocation::Upper::ReadOnly => Vec::new(),
            };
            let mut all = upper.into_iter().chain(layers);
            all.find(|path| path.metadata().map(|found| found.ino()).is_err())
                .cloned()
                .unwrap_or_default()
        }
        Setup::BindData { .. } => "tmpfile".into(),
        _ => PathBuf::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_where_they_begin() {
        let rows =
            [("/", c"."), ("//", c"."), ("/a/b/", c"a/b"), ("a//b", c"a//b"), ("/..", c"..")];
        for (path, expected) in rows {
            assert_eq!(inside(Path::new(path)), expected, "{path}");
        }
        let own = Some(Path::new("/own"));
        for (path, expected) in [("a", c"/own/a"), ("/a", c"/a"), ("../a", c"/own/../a")] {
            assert_eq!(source(Path::new(path), own), expected, "{path}");
        }
    }

    #[test]
    fn what_is_made_has_a_mode() {
        let target = || PathBuf::from("/t");
        let rows = [
            (Setup::Tmpfs { target: target(), mode: None, size_bytes: None }, 0o755),
            (Setup::Dir { target: target(), mode: None }, 0o755),
            (Setup::Dir { target: target(), mode: Some(0o1777) }, 0o1777),
            (Setup::File { fd: 0, target: target(), mode: None }, 0o666),
            (Setup::BindData { fd: 0, target: target(), mode: None, read_only: true }, 0o600),
        ];
        for (entry, expected) in rows {
            let made = operation(&entry, None).map_err(|wrong| wrong.text).unwrap();
            #[expect(clippy::wildcard_enum_match_arm, reason = "no other is made here")]
            let mode = match made {
                Operation::Tmpfs { mode, .. }
                | Operation::Dir { mode, .. }
                | Operation::File { mode, .. }
                | Operation::BindData { mode, .. } => Some(mode),
                _ => None,
            };
            assert_eq!(mode, Some(expected), "{entry:?}");
        }
    }
}
