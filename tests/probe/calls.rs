//! System calls in sequence, written as words: numbers, buffers, descriptors, earlier answers. A
//! row of a table can say any call; what an answer means is the table's affair.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::arch;
use crate::json::Value;
use crate::sys::{call, child, keep, kept, short};

mod nr {
    pub(super) const SOCKET: i64 = 41;
    pub(super) const PAUSE: i64 = 34;
    pub(super) const KILL: i64 = 62;
    pub(super) const OPENAT: i64 = 257;
    pub(super) const EXIT_GROUP: i64 = 231;
    pub(super) const PIDFD_OPEN: i64 = 434;
}

/// What a sequence has made so far.
#[derive(Default)]
struct State {
    answers: Vec<io::Result<usize>>,
    buffers: Vec<usize>,
    children: Vec<usize>,
}

impl State {
    fn buffer(&mut self, bytes: &[u8], len: usize) -> io::Result<usize> {
        let address = room(bytes, len)?;
        self.buffers.push(address);
        Ok(address)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for pid in &self.children {
            short(nr::KILL, [*pid, 9]).ok();
        }
    }
}

/// `calls NUMBER OPERAND... ; NUMBER OPERAND... ; ...`: the answer of each.
///
/// A number is decimal, hexadecimal or negative; `int80:` before it takes the 32-bit gate, and
/// `show BUFFER BYTES` is no call but tells what is in a buffer. An operand is a number or
/// `s:TEXT` (a string), `b:HEX` (bytes), `z:LEN` (zeroes), `w:A,B` (words of eight bytes),
/// `p:FLAGS:PATH` (a descriptor), `f:FLAGS:N` (answer N's descriptor opened once more), `k:FAMILY:TYPE:PROTOCOL` (a socket), `kid` and `kidfd` (a child
/// that waits), `me`, `$N` (an earlier answer), `&N` (an earlier buffer), `@N:OFFSET` (32 bits of it).
pub(crate) fn sequence(arguments: &[OsString]) -> Value {
    let mut state = State::default();
    let answers = run(arguments, &mut state);
    answers.into()
}

/// `repeat MOST NUMBER OPERAND... ; ...`: how often the sequence could be made until its last call
/// was refused, and with what.
pub(crate) fn repeat(arguments: &[OsString]) -> Value {
    let Some((most, rest)) = arguments.split_first() else { return false.into() };
    let (mut made, mut errno) = (0usize, 0);
    let mut state = State::default();
    while made < crate::number(most) && errno == 0 {
        state.answers.clear();
        state.buffers.clear();
        let mark = crate::sys::kept_so_far();
        run(rest, &mut state);
        crate::sys::give_back(mark);
        match state.answers.last() {
            Some(Err(error)) => errno = error.raw_os_error().unwrap_or(-1),
            Some(Ok(_)) => made += 1,
            None => return false.into(),
        }
    }
    Value::map([("made", made.into()), ("errno", errno.into())])
}

fn run(arguments: &[OsString], state: &mut State) -> Vec<Value> {
    let words: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
    words.split(|word| *word == ";").map(|item| one(item, state)).collect()
}

fn one(item: &[&str], state: &mut State) -> Value {
    let Some((name, operands)) = item.split_first() else { return false.into() };
    let mut values = [0usize; 6];
    for (slot, word) in values.iter_mut().zip(operands) {
        match operand(word, state) {
            Ok(value) => *slot = value,
            Err(error) => match error.raw_os_error() {
                // What the operand was to open is refused already.
                Some(errno) => return Value::errno(errno),
                None => return Value::map([("unread", Value::from(*word))]),
            },
        }
    }
    if *name == "show" {
        return kept(values[0], values[1]).into();
    }
    let answer = match name.strip_prefix("int80:") {
        Some(number) => narrow(signed(number), values),
        None => call(signed(name), values),
    };
    if is_fork(name) && answer.as_ref().is_ok_and(|pid| *pid == 0) {
        // The new process has no question to answer.
        short(nr::EXIT_GROUP, [0]).ok();
    }
    let value = Value::of(answer.as_ref().copied().map_err(clone));
    state.answers.push(answer);
    value
}

/// `clone`, `fork` and `clone3`, which come back twice.
fn is_fork(name: &str) -> bool {
    matches!(signed(name), 56 | 57 | 435)
}

fn clone(error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(-1))
}

/// By the 32-bit gate, which sees the low half of everything.
fn narrow(number: i64, values: [usize; 6]) -> io::Result<usize> {
    let low = |value: usize| u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    let number = low(usize::try_from(number).unwrap_or(0));
    let answer = arch::int80(number, &values.map(low));
    usize::try_from(answer).map_err(|_negative| io::Error::from_raw_os_error(-answer))
}

fn operand(word: &str, state: &mut State) -> io::Result<usize> {
    let unread = || io::Error::from(io::ErrorKind::InvalidInput);
    let here = wide(-100);
    match word {
        "me" => return usize::try_from(std::process::id()).map_err(io::Error::other),
        "kid" | "kidfd" => return a_child(word == "kidfd", state),
        _ => {}
    }
    match word.split_once(':') {
        Some(("s", text)) => state.buffer(&[text.as_bytes(), b"\0"].concat(), 0),
        Some(("b", hex)) => state.buffer(&bytes(hex).ok_or_else(unread)?, 256),
        Some(("z", len)) => state.buffer(&[], len.parse().map_err(io::Error::other)?),
        Some(("w", words)) => {
            let words: io::Result<Vec<usize>> =
                words.split(',').map(|word| operand(word, state)).collect();
            let bytes: Vec<u8> = words?.iter().flat_map(|word| word.to_ne_bytes()).collect();
            state.buffer(&bytes, 0)
        }
        Some(("p", rest)) => {
            let (flags, path) = rest.split_once(':').ok_or_else(unread)?;
            let path = room(&[path.as_bytes(), b"\0"].concat(), 0)?;
            short(nr::OPENAT, [here, path, wide(signed(flags)), 0o644])
        }
        Some(("f", rest)) => {
            let (flags, place) = rest.split_once(':').ok_or_else(unread)?;
            let fd = operand(&format!("${place}"), state)?;
            let path = room(format!("/proc/self/fd/{fd}\0").as_bytes(), 0)?;
            short(nr::OPENAT, [here, path, wide(signed(flags)), 0])
        }
        Some(("k", rest)) => {
            let mut numbers = [0; 3];
            for (slot, word) in numbers.iter_mut().zip(rest.split(':')) {
                *slot = wide(signed(word));
            }
            short(nr::SOCKET, numbers)
        }
        Some((place, offset)) => {
            let place = place.strip_prefix('@').ok_or_else(unread)?;
            let place: usize = place.parse().map_err(io::Error::other)?;
            let address = *state.buffers.get(place).ok_or_else(unread)?;
            let offset: usize = offset.parse().map_err(io::Error::other)?;
            let bytes = kept(address.saturating_add(offset), 4);
            Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
        }
        None => match word.split_at_checked(1).ok_or_else(unread)? {
            ("$", place) => {
                let place: usize = place.parse().map_err(io::Error::other)?;
                let answer = state.answers.get(place).ok_or_else(unread)?;
                answer.as_ref().copied().map_err(clone)
            }
            ("&", place) => {
                let place: usize = place.parse().map_err(io::Error::other)?;
                state.buffers.get(place).copied().ok_or_else(unread)
            }
            _ => Ok(wide(signed(word))),
        },
    }
}

fn room(bytes: &[u8], len: usize) -> io::Result<usize> {
    keep(bytes, len).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// A child that waits until the sequence is over: its pid, or a pidfd of it.
fn a_child(by_descriptor: bool, state: &mut State) -> io::Result<usize> {
    let pid = child(|| drop(short::<0>(nr::PAUSE, [])))?;
    let pid = usize::try_from(pid).map_err(io::Error::other)?;
    state.children.push(pid);
    if by_descriptor { short(nr::PIDFD_OPEN, [pid, 0]) } else { Ok(pid) }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The register that holds a number.
fn wide(number: i64) -> usize {
    usize::from_ne_bytes(number.to_ne_bytes())
}

/// A number as it is written, hexadecimal up to 64 bits wide.
fn signed(text: &str) -> i64 {
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map(u64::cast_signed).unwrap_or(0),
        None => digits.parse().unwrap_or(0),
    };
    if minus { number.wrapping_neg() } else { number }
}

/// `frame NUMBER A B`: a call whose registers come from a signal frame that the program wrote.
pub(crate) fn frame(arguments: &[OsString]) -> Value {
    let number = |at: usize| {
        let text = arguments.get(at).map_or("0".into(), |word: &OsString| word.to_string_lossy());
        signed(&text).cast_unsigned()
    };
    let answer = crate::sys::chosen_by_a_handler(number(0), number(1), number(2));
    match i32::try_from(answer) {
        Ok(errno @ -4095..0) => Value::errno(-errno),
        Ok(_) | Err(_) => answer.into(),
    }
}

/// `vsyscall`: what the fixed page answers, where it does.
pub(crate) fn vsyscall(_: &[OsString]) -> Value {
    arch::vsyscall_time().into()
}

/// `race MORE FIRST SECOND`: opens a path for writing while a thread rewrites it from one to the
/// other; how often that worked.
pub(crate) fn race(arguments: &[OsString]) -> Value {
    let [turns, first, second] = arguments else { return false.into() };
    let len = first.len().max(second.len()) + 1;
    let texts = [first, second].map(|path| {
        let mut text = path.as_bytes().to_vec();
        text.resize(len, 0);
        text
    });
    let path: std::sync::Arc<Vec<std::sync::atomic::AtomicU8>> =
        std::sync::Arc::new(texts[0].iter().map(|byte| (*byte).into()).collect());
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let rewriter = std::thread::spawn({
        let (path, over) = (path.clone(), over.clone());
        move || {
            while !over.load(relaxed) {
                for text in &texts {
                    path.iter().zip(text).for_each(|(slot, byte)| slot.store(*byte, relaxed));
                }
            }
        }
    });
    let mut opened = 0u32;
    for _ in 0..crate::number(turns) {
        let flags = 1 | 0o4_000 | 0o400;
        let fd = short(nr::OPENAT, [wide(-100), path.as_ptr().addr(), flags, 0]);
        opened += u32::from(fd.is_ok());
        fd.map(|fd| short(3, [fd])).ok();
    }
    over.store(true, relaxed);
    rewriter.join().ok();
    opened.into()
}
