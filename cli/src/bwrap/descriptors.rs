//! What is read from descriptors before anything is started: arguments and filters.

use std::fs::File;
use std::io::Read;
use std::os::fd::RawFd;

use super::invocation::{Filters, Invocation, Setup, Source};
use super::parse::ReadArgs;
use super::say::Wrong;
use super::{kept, sys};

/// The descriptors of this process.
pub(super) struct Files;

impl ReadArgs for Files {
    fn read(&mut self, fd: RawFd) -> std::io::Result<Vec<u8>> {
        read(fd)
    }
}

/// Everything that a descriptor has to give; it is closed.
fn read(fd: RawFd) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(sys::take(fd)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The programs for seccomp(2), in order.
pub(super) fn filters(filters: &Filters) -> Result<&'static [&'static [u8]], Wrong> {
    let fds = match filters {
        Filters::None => &[][..],
        Filters::One(fd) => std::slice::from_ref(fd),
        Filters::Stacked(fds) => fds,
    };
    let programs = fds.iter().map(|fd| {
        let bytes = read(*fd).map_err(|error| Wrong::of("Can't read seccomp data", error))?;
        match bytes.len() % 8 {
            0 => Ok(kept::list(bytes)),
            _ => Err(Wrong::new("Invalid seccomp data, must be multiple of 8")),
        }
    });
    Ok(kept::list(programs.collect::<Result<Vec<&'static [u8]>, Wrong>>()?))
}

/// Refuses numbers that are no open descriptors, before anything opens another under them.
pub(super) fn check(invocation: &Invocation) -> Result<(), Wrong> {
    let spaces = &invocation.namespaces;
    let named = [
        ("--userns", spaces.userns),
        ("--userns2", spaces.userns2),
        ("--pidns", spaces.pidns),
        ("--block-fd", invocation.block_fd),
        ("--userns-block-fd", invocation.userns_block_fd),
        ("--info-fd", invocation.info_fd),
        ("--json-status-fd", invocation.json_status_fd),
    ];
    let named = named.into_iter().filter_map(|(option, fd)| Some((option, fd?)));
    let kept = invocation.sync_fds.iter().map(|fd| ("--sync-fd", *fd));
    #[expect(clippy::wildcard_enum_match_arm, reason = "others name no descriptor")]
    let setup = invocation.setup.iter().filter_map(|setup| match setup {
        Setup::Bind { source: Source::Fd(fd), .. } => Some(("--bind-fd", *fd)),
        Setup::File { fd, .. } => Some(("--file", *fd)),
        Setup::BindData { fd, .. } => Some(("--bind-data", *fd)),
        _ => None,
    });
    for (option, fd) in named.chain(kept).chain(setup) {
        sys::check(fd).map_err(|error| Wrong::of(format!("{option} {fd}"), error))?;
    }
    Ok(())
}
