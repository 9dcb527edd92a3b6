//! The process that was called, while the program runs: tells others about it, waits, and leaves
//! with its status.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use postern_init::sys::{Errno, Fd};
use postern_launcher::direct::{self, REPORT_LEN, Report, Started};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::invocation::Invocation;
use super::launch::error;
use super::namespaces::{
    CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER,
    CLONE_NEWUTS,
};
use super::say::{Level, Wrong, say};
use super::{FAILED, sys, words};

/// The child and what came with it.
pub(super) struct Watched {
    pub(super) started: Started,
    /// Who called this process.
    pub(super) parent: Option<Pid>,
    pub(super) line: OwnedFd,
    /// `CLONE_NEW*` of its clone.
    pub(super) made: u64,
}

/// The process that was called, once its child is there.
pub(super) struct Monitor<'a> {
    invocation: &'a Invocation,
    parent: Option<Pid>,
    pidfd: OwnedFd,
    line: OwnedFd,
    /// Somebody may still say something on it.
    has_line: bool,
    made: u64,
    json: Option<File>,
    /// Set by a report of a failure: what the child's own status then is does not matter.
    failure: Option<u8>,
}

impl<'a> Monitor<'a> {
    pub(super) fn new(invocation: &'a Invocation, watched: Watched) -> Result<Monitor<'a>, Wrong> {
        let Watched { started, parent, line, made } = watched;
        let pidfd = sys::take(started.0).map_err(|error| Wrong::of("clone", error))?;
        let (json, failure) = (None, None);
        Ok(Monitor { invocation, parent, pidfd, line, has_line: true, made, json, failure })
    }

    /// Stays until the program has ended; its status.
    pub(super) fn run(mut self) -> Result<u8, Wrong> {
        let outcome = self.watch();
        if outcome.is_err() {
            // Nothing is left of a launch that this process gave up; what has ended needs no signal.
            rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL).ok();
            self.reap().ok();
        }
        outcome
    }

    fn watch(&mut self) -> Result<u8, Wrong> {
        self.introduce()?;
        self.close_others()?;
        loop {
            if let Some(status) = self.wait()? {
                return Ok(status);
            }
        }
    }

    /// Tells of the child, and lets it go on.
    fn introduce(&mut self) -> Result<(), Wrong> {
        let asked = self.invocation;
        let pid = if self.is_awaited() { pid_of(&self.pidfd)? } else { String::new() };
        let names = self.namespaces(&pid);
        if let Some(fd) = asked.namespaces.userns2 {
            direct::join(Fd(fd), CLONE_NEWUSER)
                .map_err(|errno| Wrong::of("Setting userns2 failed", error(errno)))?;
        }
        match direct::drop_privileges() {
            Ok(()) | Err(Errno::EPERM) => {}
            Err(errno) => return Err(Wrong::of("capset failed", error(errno))),
        }
        if asked.die_with_parent {
            direct::die_with_parent().map_err(|errno| Wrong::of("prctl", error(errno)))?;
            if rustix::process::getppid() != self.parent {
                return Err(Wrong::new("the parent has died"));
            }
        }
        if let Some(fd) = asked.info_fd {
            let names: String = names.iter().map(|name| format!(",\n    {name}")).collect();
            let text = format!("{{\n    \"child-pid\": {pid}{names}\n}}\n");
            write(File::from(taken(fd, "--info-fd")?), &text)?;
        }
        if let Some(fd) = asked.json_status_fd {
            let names: String = names.iter().map(|name| format!(", {name}")).collect();
            let file = File::from(taken(fd, "--json-status-fd")?);
            write(&file, &format!("{{ \"child-pid\": {pid}{names} }}\n"))?;
            self.json = Some(file);
        }
        if let Some(fd) = asked.userns_block_fd {
            let fd = taken(fd, "--userns-block-fd")?;
            // Its end is an answer too.
            rustix::io::read(fd, &mut [0u8; 1]).ok();
        }
        if self.is_awaited() {
            // A child that is gone is seen soon enough.
            rustix::net::send(&self.line, &[1], rustix::net::SendFlags::NOSIGNAL).ok();
        }
        Ok(())
    }

    fn is_awaited(&self) -> bool {
        let asked = self.invocation;
        [asked.info_fd, asked.json_status_fd, asked.userns_block_fd].iter().any(Option::is_some)
    }

    /// The new namespaces by name and number. That of users is not settled yet.
    fn namespaces(&self, pid: &str) -> Vec<String> {
        let all = [
            ("cgroup", CLONE_NEWCGROUP),
            ("ipc", CLONE_NEWIPC),
            ("mnt", CLONE_NEWNS),
            ("net", CLONE_NEWNET),
            ("pid", CLONE_NEWPID),
            ("uts", CLONE_NEWUTS),
        ];
        let new = all.iter().filter(|(_, flag)| self.is_awaited() && self.made & flag != 0);
        new.filter_map(|(name, _)| {
            let found = std::fs::metadata(format!("/proc/{pid}/ns/{name}")).ok()?;
            Some(format!("\"{name}-namespace\": {}", found.ino()))
        })
        .collect()
    }

    /// What was passed for the program is no longer held here.
    fn close_others(&self) -> Result<(), Wrong> {
        let json = self.json.iter().map(AsRawFd::as_raw_fd);
        let mut kept: Vec<RawFd> =
            json.chain([self.line.as_raw_fd(), self.pidfd.as_raw_fd()]).collect();
        kept.sort_unstable();
        let kept: Vec<Fd> = kept.into_iter().map(Fd).collect();
        direct::close_others(&kept).map_err(|errno| Wrong::of("close_range", error(errno)))
    }

    /// Waits for the next thing to happen; the status, if it is the end.
    fn wait(&mut self) -> Result<Option<u8>, Wrong> {
        let mut fds = vec![PollFd::new(&self.pidfd, PollFlags::IN)];
        // A program that nobody of ours watches closes the line by its exec.
        if self.has_line {
            fds.push(PollFd::new(&self.line, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Wrong::of("poll", errno)),
        }
        let has_ended = fds.first().is_some_and(|fd| !fd.revents().is_empty());
        // First what was said: whoever says it often ends at once.
        while let Some(report) = self.listen()? {
            if let Some(status) = self.note(&report) {
                return Ok(Some(status));
            }
        }
        match has_ended {
            true => self.reap().map(Some),
            false => Ok(None),
        }
    }

    /// The next report, if there is one.
    fn listen(&mut self) -> Result<Option<Report>, Wrong> {
        let mut bytes = [0; REPORT_LEN];
        match rustix::net::recv(&self.line, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.has_line = false,
            Ok((len, _)) => return Ok(bytes.get(..len).and_then(Report::decode)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => self.has_line = false,
            Err(errno) => return Err(Wrong::of("recv", errno)),
        }
        Ok(None)
    }

    /// What a report comes to; the status, if it is the end.
    fn note(&mut self, report: &Report) -> Option<u8> {
        match report {
            Report::Failed(failure, text) => {
                let wrong = words::of_failure(self.invocation, failure, text);
                say(Level::Error, self.invocation.level_prefix, &wrong.text);
                self.failure = Some(wrong.status);
                None
            }
            Report::Ended(status) => Some(self.end(u8::try_from(*status).unwrap_or(FAILED))),
        }
    }

    /// The child's own end.
    fn reap(&mut self) -> Result<u8, Wrong> {
        let ended = loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(ended)) => break ended,
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(Wrong::of("waitid", errno)),
            }
        };
        let by_signal = ended.terminating_signal().map(|signal| signal.wrapping_add(128));
        let status = ended.exit_status().or(by_signal).unwrap_or(i32::from(u8::MAX));
        Ok(self.end(u8::try_from(status).unwrap_or(u8::MAX)))
    }

    /// The status to leave with, told to whoever wants to know; that of a launch that failed is none
    /// of the program's.
    fn end(&mut self, status: u8) -> u8 {
        if let Some(failure) = self.failure {
            return failure;
        }
        if let Some(mut json) = self.json.take() {
            // Nobody may be left to read it; the status is the same.
            writeln!(json, "{{ \"exit-code\": {status} }}").ok();
        }
        status
    }
}

/// The process of a descriptor, as this one sees it.
fn pid_of(pidfd: &OwnedFd) -> Result<String, Wrong> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let text = std::fs::read_to_string(&path).map_err(|error| Wrong::of(&path, error))?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:")).map(str::trim);
    Ok(pid.unwrap_or("-1").to_owned())
}

fn taken(fd: RawFd, option: &str) -> Result<OwnedFd, Wrong> {
    sys::take(fd).map_err(|error| Wrong::of(format!("{option} {fd}"), error))
}

fn write(mut file: impl Write, text: &str) -> Result<(), Wrong> {
    file.write_all(text.as_bytes()).map_err(|error| Wrong::of("Write to info_fd", error))
}
