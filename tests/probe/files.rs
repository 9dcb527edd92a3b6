//! Questions about files and mounts: what is there, and what can be opened.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::json::Value;
use crate::sys;

const O_PATH: i32 = 0o10_000_000;
const O_NONBLOCK: i32 = 0o4_000;
const O_NOCTTY: i32 = 0o400;
const STATFS: i64 = 137;
/// Files larger than this are no place where a test hides a canary.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

fn bytes(text: &OsStr) -> Value {
    text.as_bytes().to_vec().into()
}

/// `read PATH...`: the contents of each, or the errno.
pub(crate) fn read(paths: &[OsString]) -> Value {
    each(paths, |path| {
        let mut contents = Vec::new();
        opened(path, OpenOptions::new().read(true))
            .and_then(|file| file.take(SEARCHED_BYTES_MAX).read_to_end(&mut contents))
            .map(|_| contents)
    })
}

/// `open r|w|c|p PATH...`: whether each opens for reading, writing, exclusive creation, or as a
/// bare path.
pub(crate) fn open(arguments: &[OsString]) -> Value {
    let Some((mode, paths)) = arguments.split_first() else { return false.into() };
    let mut options = OpenOptions::new();
    match mode.as_bytes() {
        b"w" => options.write(true),
        b"c" => options.write(true).create_new(true),
        b"p" => options.read(true).custom_flags(O_PATH),
        _ => options.read(true),
    };
    each(paths, |path| opened(path, &mut options).map(|_| true))
}

/// Opens without waiting for the other end of a FIFO and without taking a terminal.
fn opened(path: &OsStr, options: &mut OpenOptions) -> io::Result<File> {
    options.clone().custom_flags(O_NONBLOCK | O_NOCTTY).open(path)
}

fn each<T: Into<Value>>(paths: &[OsString], mut act: impl FnMut(&OsStr) -> io::Result<T>) -> Value {
    let answers = paths.iter().map(|path| (path.as_bytes().to_vec(), Value::of(act(path))));
    Value::Map(answers.collect())
}

/// `list PATH...`: the entries of each directory.
pub(crate) fn list(paths: &[OsString]) -> Value {
    each(paths, |path| {
        let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        let mut entries = entries.collect::<io::Result<Vec<PathBuf>>>()?;
        entries.sort();
        entries.iter().map(|entry| describe(entry)).collect::<io::Result<Vec<Value>>>()
    })
}

fn describe(path: &Path) -> io::Result<Value> {
    let found = fs::symlink_metadata(path)?;
    let kind = found.file_type();
    let kinds = [
        (kind.is_dir(), "dir"),
        (kind.is_file(), "file"),
        (kind.is_symlink(), "link"),
        (kind.is_char_device(), "char"),
        (kind.is_block_device(), "block"),
        (kind.is_fifo(), "fifo"),
        (kind.is_socket(), "socket"),
    ];
    let kind = kinds.iter().find(|(is, _)| *is).map_or("unknown", |(_, name)| name);
    let link = fs::read_link(path).map(OsString::from).unwrap_or_default();
    Ok(Value::map([
        ("name", bytes(path.file_name().unwrap_or_default())),
        ("kind", kind.into()),
        ("mode", (found.mode() & 0o7777).into()),
        ("uid", found.uid().into()),
        ("gid", found.gid().into()),
        ("device", found.rdev().into()),
        ("link", bytes(&link)),
    ]))
}

/// `namespaces`: what each link of `/proc/self/ns` says.
pub(crate) fn namespaces(_: &[OsString]) -> Value {
    let entries = fs::read_dir("/proc/self/ns").map(|entries| {
        let links = entries.flatten().map(|entry| {
            let link = fs::read_link(entry.path()).map(|link| link.into_os_string().into_vec());
            (entry.file_name().into_vec(), Value::of(link))
        });
        Value::Map(links.collect())
    });
    Value::of(entries)
}

/// `mounts`: the lines of `/proc/self/mountinfo`, by column.
pub(crate) fn mounts(_: &[OsString]) -> Value {
    let lines = fs::read("/proc/self/mountinfo").map(|text| {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(mount).collect::<Vec<Value>>()
    });
    Value::of(lines)
}

fn mount(line: &[u8]) -> Value {
    let mut words = line.split(|byte| *byte == b' ');
    let mut next = || Value::from(words.next().unwrap_or_default().to_vec());
    let (id, parent, device) = (next(), next(), next());
    let (root, target, options) = (next(), next(), next());
    let tags: Vec<Value> = words
        .by_ref()
        .take_while(|word| *word != b"-")
        .map(|word| Value::from(word.to_vec()))
        .collect();
    let mut next = || Value::from(words.next().unwrap_or_default().to_vec());
    let (kind, source, of_superblock) = (next(), next(), next());
    Value::map([
        ("id", id),
        ("parent", parent),
        ("device", device),
        ("root", root),
        ("target", target),
        ("options", options),
        ("tags", tags.into()),
        ("kind", kind),
        ("source", source),
        ("super", of_superblock),
    ])
}

/// `statfs PATH...`: magic number, flags, size and inodes of the file system at each; needs no
/// procfs.
pub(crate) fn statfs(paths: &[OsString]) -> Value {
    each(paths, |path| {
        let path = CString::new(path.as_bytes())?;
        let [kind, block, blocks, _, _, files, _, _, _, _, flags, ..] =
            sys::words::<16>(STATFS, |buffer| [path.as_ptr().addr(), buffer, 0, 0])?;
        Ok(Value::map([
            ("kind", kind.into()),
            ("flags", flags.into()),
            ("bytes", blocks.saturating_mul(block).into()),
            ("inodes", files.into()),
        ]))
    })
}

/// `sweep ROOT`: how many files lie below, and which of them open for writing. Links are not
/// followed.
pub(crate) fn sweep(arguments: &[OsString]) -> Value {
    let mut tried = 0u32;
    let mut writable = Vec::new();
    for root in arguments {
        walk(Path::new(root), &mut |path, kind| {
            if !kind.is_dir() && !kind.is_symlink() {
                tried += 1;
                if opened(path.as_os_str(), OpenOptions::new().write(true)).is_ok() {
                    writable.push(bytes(path.as_os_str()));
                }
            }
        });
    }
    Value::map([("tried", tried.into()), ("writable", writable.into())])
}

/// `leaks TEXT ROOT...`: how many files were read, and every path whose name or contents hold the
/// text.
pub(crate) fn leaks(arguments: &[OsString]) -> Value {
    let Some((canary, roots)) = arguments.split_first() else { return false.into() };
    let holds = |text: &[u8]| text.windows(canary.len()).any(|part| part == canary.as_bytes());
    let mut read = 0u32;
    let mut found = Vec::new();
    for root in roots {
        walk(Path::new(root), &mut |path, kind| {
            let mut contents = Vec::new();
            if kind.is_file() {
                let file = opened(path.as_os_str(), OpenOptions::new().read(true));
                let len =
                    file.and_then(|file| file.take(SEARCHED_BYTES_MAX).read_to_end(&mut contents));
                read += u32::from(len.is_ok());
            }
            let link = fs::read_link(path).map(OsString::from).unwrap_or_default();
            let name = path.as_os_str().as_bytes();
            if holds(&contents) || holds(name) || holds(link.as_bytes()) {
                found.push(bytes(path.as_os_str()));
            }
        });
    }
    Value::map([("read", read.into()), ("found", found.into())])
}

/// Everything below `root`, this process's own entries of `/proc` and the threads left out: they
/// hold the question itself.
pub(crate) fn walk(root: &Path, visit: &mut dyn FnMut(&Path, fs::FileType)) {
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let skipped = path == own || path.ends_with("task") && path.starts_with("/proc");
        if skipped {
            continue;
        }
        visit(&path, kind);
        if kind.is_dir() {
            walk(&path, visit);
        }
    }
}

/// `fill PATH`: writes one file until the kernel refuses.
pub(crate) fn fill(arguments: &[OsString]) -> Value {
    let block = vec![1u8; 1 << 16];
    let mut written = 0u64;
    let mut fill = || -> io::Result<()> {
        let path = arguments.first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut file = File::create(path)?;
        loop {
            written += u64::try_from(file.write(&block)?).unwrap_or(0);
        }
    };
    let errno = refused(fill());
    Value::map([("bytes", written.into()), ("errno", errno.into())])
}

/// `fill-inodes DIRECTORY`: makes empty files until the kernel refuses.
pub(crate) fn fill_inodes(arguments: &[OsString]) -> Value {
    let mut made = 0u64;
    let mut fill = || -> io::Result<()> {
        let directory = Path::new(arguments.first().ok_or(io::ErrorKind::InvalidInput)?);
        loop {
            File::create_new(directory.join(format!("inode-{made}")))?;
            made += 1;
        }
    };
    let errno = refused(fill());
    Value::map([("files", made.into()), ("errno", errno.into())])
}

fn refused(outcome: io::Result<()>) -> i32 {
    outcome.err().and_then(|error| error.raw_os_error()).unwrap_or(-1)
}
