//! Many questions in one process's lifetime, each answered by a child of its own, so that one that
//! is killed or hangs is an answer too; and other ways to ask one: with what privileges it can get,
//! in a thread, after an exec.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;

use crate::json::Value;
use crate::sys::{child, short, words};

mod nr {
    pub(super) const ALARM: i64 = 37;
    pub(super) const EXECVE: i64 = 59;
    pub(super) const GETUID: i64 = 102;
    pub(super) const GETGID: i64 = 104;
    pub(super) const PRCTL: i64 = 157;
    pub(super) const UNSHARE: i64 = 272;
    pub(super) const MEMFD_CREATE: i64 = 319;
    pub(super) const WAIT4: i64 = 61;
}

/// How long one answer may take.
const SECONDS: usize = 10;

/// `batch`: one question a line of stdin, its words separated by spaces; all answers in order.
/// An answer that did not come is the signal that ended its child.
pub(crate) fn batch(_: &[OsString]) -> Value {
    let mut text = String::new();
    if io::stdin().read_to_string(&mut text).is_err() {
        return false.into();
    }
    text.lines().map(|line| Value::of(in_child(line))).collect::<Vec<Value>>().into()
}

fn question(line: &str) -> Vec<OsString> {
    line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
}

/// The answer of a child, which it leaves in a file without a name.
fn in_child(line: &str) -> io::Result<Value> {
    let fd = short(nr::MEMFD_CREATE, [c"answer".as_ptr().addr(), 1])?;
    let mut file = crate::sys::file(i32::try_from(fd).map_err(io::Error::other)?);
    let pid = child(|| {
        short(nr::ALARM, [SECONDS]).ok();
        let answer = crate::ask(&question(line)).unwrap_or_else(|| "no such question".into());
        file.write_all(answer.to_string().as_bytes()).ok();
    })?;
    let pid = usize::try_from(pid).map_err(io::Error::other)?;
    let [status, ..] = words::<2>(nr::WAIT4, |buffer| [pid, buffer, 0, 0])?;
    let mut answer = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut answer)?;
    Ok(answer_or_signal(answer, status))
}

/// What a child has left, or the signal that kept it from that.
fn answer_or_signal(answer: Vec<u8>, status: u64) -> Value {
    match answer.is_empty() {
        true => Value::map([("signal", (status & 0x7f).into())]),
        false => Value::Raw(answer),
    }
}

/// `rooted QUESTION...`: asked with every capability of a user namespace of its own, and in
/// namespaces of its own, as far as those can be had; else as it is.
pub(crate) fn rooted(arguments: &[OsString]) -> Value {
    become_root_inside().ok();
    crate::ask(arguments).unwrap_or_else(|| false.into())
}

fn become_root_inside() -> io::Result<()> {
    const NEWUSER: usize = 0x1000_0000;
    const OTHERS: usize = 0x4e02_0000;
    let (uid, gid) = (short::<0>(nr::GETUID, [])?, short::<0>(nr::GETGID, [])?);
    short(nr::UNSHARE, [NEWUSER])?;
    fs::write("/proc/self/setgroups", "deny").ok();
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    short(nr::UNSHARE, [OTHERS]).map(drop)
}

/// `via WAY QUESTION...`: asked in a `thread`, in a grandchild whose parent is gone (`orphan`),
/// after an `exec` of this program once more, or likewise beneath an `init` that may not be dumped.
pub(crate) fn via(arguments: &[OsString]) -> Value {
    let Some((way, question)) = arguments.split_first() else { return false.into() };
    match way.as_bytes() {
        b"thread" => {
            let question = question.to_vec();
            let answer = std::thread::spawn(move || crate::ask(&question).map(|a| a.to_string()));
            let answer = answer.join().ok().flatten().unwrap_or_default();
            Value::Raw(answer.into_bytes())
        }
        b"orphan" => orphan(question),
        b"exec" => Value::of(again(question)),
        b"init" => {
            const SET_DUMPABLE: usize = 4;
            short(nr::PRCTL, [SET_DUMPABLE, 0]).ok();
            Value::of(again(question))
        }
        _ => false.into(),
    }
}

fn orphan(question: &[OsString]) -> Value {
    let Ok(mut pipe) = Pipe::new() else { return false.into() };
    let parent = child(|| {
        let answering = child(|| {
            let answer = crate::ask(question).unwrap_or_else(|| false.into());
            pipe.write.write_all(answer.to_string().as_bytes()).ok();
        });
        answering.ok();
    });
    drop(pipe.write);
    parent.and_then(|pid| short(nr::WAIT4, [usize::try_from(pid).unwrap_or(0), 0, 0, 0])).ok();
    let mut answer = Vec::new();
    pipe.read.read_to_end(&mut answer).ok();
    Value::Raw(answer)
}

struct Pipe {
    read: File,
    write: File,
}

impl Pipe {
    fn new() -> io::Result<Pipe> {
        const PIPE2: i64 = 293;
        const CLOSE_ON_EXEC: usize = 0o2_000_000;
        let [both] = words::<1>(PIPE2, |buffer| [buffer, CLOSE_ON_EXEC, 0, 0])?;
        let file = |fd: u64| crate::sys::file(i32::try_from(fd & 0xffff_ffff).unwrap_or(-1));
        Ok(Pipe { read: file(both), write: file(both >> 32) })
    }
}

/// The same program in a process of its own, whose stdout is the answer.
fn again(question: &[OsString]) -> io::Result<Value> {
    let mut pipe = Pipe::new()?;
    let pid = child(|| {
        const DUP2: i64 = 33;
        short(DUP2, [fd_of(&pipe.write), 1]).ok();
        let text = |word: &OsStr| [word.as_bytes(), b"\0"].concat();
        let words: Vec<Vec<u8>> = std::iter::once(text("probe".as_ref()))
            .chain(question.iter().map(|w| text(w)))
            .collect();
        let mut pointers: Vec<usize> = words.iter().map(|word| word.as_ptr().addr()).collect();
        pointers.push(0);
        let none = [0usize];
        let own = c"/proc/self/exe".as_ptr().addr();
        short(nr::EXECVE, [own, pointers.as_ptr().addr(), none.as_ptr().addr()]).ok();
    })?;
    drop(pipe.write);
    let mut answer = Vec::new();
    pipe.read.read_to_end(&mut answer)?;
    let pid = usize::try_from(pid).map_err(io::Error::other)?;
    let [status, ..] = words::<2>(nr::WAIT4, |buffer| [pid, buffer, 0, 0])?;
    Ok(answer_or_signal(answer, status))
}

fn fd_of(file: &File) -> usize {
    use std::os::fd::AsRawFd;
    usize::try_from(file.as_raw_fd()).unwrap_or(0)
}
