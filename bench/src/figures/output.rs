//! What a guest's output costs its reader, beside a pipe without a sandbox.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use postern::Sandbox;

use super::Setting;
use crate::measure::{Contender, Outcome, alternate, took};
use crate::report::Table;

/// Bytes of one sample.
const BYTES: usize = 256 << 20;
/// Writes so many zeros, in pieces that no pipe holds.
const WRITER: [&str; 5] = ["/usr/bin/dd", "if=/dev/zero", "bs=256K", "count=1024", "status=none"];
/// Starts a program in a session of its own.
const SESSION: [&str; 1] = ["/usr/bin/setsid"];
/// As much as a pipe holds.
const CHUNK: usize = 64 << 10;

pub(crate) fn output(setting: &Setting) -> Outcome<Vec<Table>> {
    let sandbox = setting.world.sandbox()?;
    let pause = Duration::ZERO;
    let mut contenders = [
        Contender::new("a plain pipe, another session", pause, || took(|| plain(&SESSION))),
        Contender::new("a plain pipe, the same session", pause, || took(|| plain(&[]))),
        Contender::new("postern, take_stdout", pause, || took(|| taken(&sandbox))),
        Contender::new("postern, next_chunk", pause, || took(|| chunks(&sandbox))),
    ];
    let series = alternate(setting.effort, &mut contenders)?;
    let mut table = Table::of_series("256 MiB through stdout", &series);
    if let [plain, _, _, chunks] = series.as_slice() {
        let ratio = plain.pairwise(chunks, |plain, chunks| plain / chunks).p50;
        table.promise("times the rate of a plain pipe", ratio, 0.9, 1.0);
    }
    Ok(vec![table])
}

/// A guest has a session of its own; on a kernel that shares processors out by session another one
/// would have less to wait for.
#[expect(clippy::disallowed_methods, reason = "a program without a sandbox")]
fn plain(starter: &[&str]) -> Outcome<()> {
    let words: Vec<&str> = starter.iter().chain(&WRITER).copied().collect();
    let (program, arguments) = words.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    let command = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let stdout = child.stdout.take().ok_or("no pipe")?;
    is_whole(read(stdout)?)?;
    child.wait()?;
    Ok(())
}

fn taken(sandbox: &Sandbox) -> Outcome<()> {
    let mut process = sandbox.start(WRITER)?;
    let stdout = process.take_stdout().ok_or("no pipe")?;
    is_whole(read(stdout)?)?;
    process.wait()?;
    Ok(())
}

fn chunks(sandbox: &Sandbox) -> Outcome<()> {
    let mut process = sandbox.start(WRITER)?;
    let mut bytes = 0;
    while let Some(chunk) = process.next_chunk()? {
        bytes += chunk.bytes.len();
    }
    is_whole(bytes)?;
    process.wait()?;
    Ok(())
}

fn read(mut from: impl Read) -> Outcome<usize> {
    let (mut buffer, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(bytes),
            len => bytes += len,
        }
    }
}

fn is_whole(bytes: usize) -> Outcome<()> {
    match bytes {
        BYTES => Ok(()),
        other => Err(format!("{other} bytes of {BYTES}").into()),
    }
}
