//! Files: what is no file is refused without a wait, and no size or nesting does harm.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{ProfileFileError, SandboxProfile};
use crate::profile::PROFILE_BYTES_MAX;
use crate::profile::file::open::bounded;

/// A directory of this test's own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("profile-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn refused(path: &Path) -> ProfileFileError {
    let begin = Instant::now();
    let error = SandboxProfile::from_file(path).expect_err(&path.display().to_string());
    assert!(begin.elapsed() < Duration::from_secs(5), "{error}");
    error
}

#[test]
fn what_is_no_readable_file_is_told_at_once() {
    let directory = Directory::new("kinds");
    let own = |name: &str| directory.0.join(name);
    std::fs::create_dir(own("directory.toml")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, own("fifo.json"), fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(own("socket.toml")).unwrap();
    symlink("loop.toml", own("loop.toml")).unwrap();
    symlink("/dev/null", own("device.toml")).unwrap();
    symlink(own("fifo.json"), own("link.toml")).unwrap();
    let big = std::fs::File::create(own("big.toml")).unwrap();
    big.set_len(10 << 20).unwrap();
    directory.file("no.yaml", "");
    directory.file("latin1.toml", b"hostname = 'a'\n# \xe9\n");
    directory.file("utf16.json", b"\xff\xfe{\0}\0");
    let rows = [
        ("directory.toml", ": is a directory; a profile is read from a regular file"),
        ("fifo.json", ": is a pipe; a profile is read from a regular file"),
        ("link.toml", ": is a pipe; a profile is read from a regular file"),
        ("socket.toml", ": is a socket; a profile is read from a regular file"),
        ("device.toml", ": is a device; a profile is read from a regular file"),
        ("loop.toml", ": its symbolic links lead in a circle"),
        ("none.toml", ": no such file; check the path"),
        ("no.yaml/a.toml", ": Not a directory (os error 20)"),
        ("no.yaml", ": a profile file ends in .toml or .json"),
        ("big.toml", ": has 10485760 bytes; a profile file has 1048576 at most"),
        ("latin1.toml", ":2:3: not UTF-8; save the file as UTF-8 text"),
        ("utf16.json", ":1:1: not UTF-8; save the file as UTF-8 text"),
    ];
    for (name, words) in rows {
        let path = own(name);
        assert_eq!(refused(&path).to_string(), format!("{}{words}", path.display()));
    }
}

#[test]
fn a_file_that_may_not_be_read_names_the_reader() {
    let directory = Directory::new("closed");
    let path = directory.file("closed.toml", "");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    let uid = rustix::process::geteuid();
    // Root reads it all the same; the words are then tried on the kernel's answer alone.
    let error = SandboxProfile::from_file(&path).err().unwrap_or_else(|| ProfileFileError::Read {
        path: path.clone(),
        source: std::io::Error::from(rustix::io::Errno::ACCESS),
    });
    let words = format!(": uid {} may not read it; ", uid.as_raw());
    assert!(error.to_string().contains(&words), "{error}");
}

#[test]
fn an_empty_file_is_the_default_profile() {
    let directory = Directory::new("empty");
    for (name, contents) in [
        ("a.toml", ""),
        ("b.json", ""),
        ("c.json", " \n"),
        ("d.toml", "\u{feff}"),
        ("e.json", "\u{feff}{}"),
        ("f.toml", "# nothing\n"),
    ] {
        let path = directory.file(name, contents);
        assert_eq!(SandboxProfile::from_file(path).unwrap(), SandboxProfile::default(), "{name}");
    }
}

#[test]
fn a_file_of_the_largest_size_is_read_and_one_byte_more_is_not() {
    let directory = Directory::new("size");
    let limit = usize::try_from(PROFILE_BYTES_MAX).unwrap();
    let text = format!("hostname = 'a'\n#{}", " ".repeat(limit - 16));
    assert_eq!(text.len(), limit);
    let path = directory.file("a.toml", &text);
    assert_eq!(SandboxProfile::from_file(&path).unwrap().hostname, "a");
    let path = directory.file("b.toml", text + " ");
    let error = refused(&path);
    assert!(
        matches!(error, ProfileFileError::TooLarge { bytes, limit, .. } if bytes == limit + 1),
        "{error}"
    );
}

#[test]
fn no_more_is_read_than_the_limit_and_one_byte() {
    match bounded(Path::new("endless.toml"), std::io::repeat(b'#')) {
        Err(ProfileFileError::TooLarge { bytes, .. }) => assert_eq!(bytes, PROFILE_BYTES_MAX + 1),
        other => panic!("{:?}", other.map(|bytes| bytes.len())),
    }
}

#[test]
fn deep_nesting_is_refused_on_a_small_stack() {
    let limit = usize::try_from(PROFILE_BYTES_MAX).unwrap();
    let half = limit / 2 - 8;
    let rows = [
        ("lists.json", format!("{{\"a\":{}{}}}", "[".repeat(half), "]".repeat(half))),
        ("open.json", "[".repeat(limit)),
        ("tables.json", "{\"a\":".repeat(limit / 5)),
        ("lists.toml", format!("a = {}{}", "[".repeat(half), "]".repeat(half))),
        ("open.toml", format!("a = {}", "[".repeat(limit - 4))),
        ("tables.toml", format!("a = {}", "{a=".repeat(limit / 3 - 2))),
        ("dots.toml", format!("{}a = 1", "a.".repeat(half))),
        ("mixed.toml", {
            let table = format!("{{ {}a = ", "a.".repeat(77));
            format!(
                "[{}a]\n{}a = {}1{}",
                "a.".repeat(77),
                "a.".repeat(77),
                table.repeat(79),
                "}".repeat(79)
            )
        }),
        ("header.toml", format!("[{}a]", "a.".repeat(half))),
        ("value-dots.toml", format!("a = {{ {}a = 1 }}", "a.".repeat(half - 8))),
    ];
    let directory = Directory::new("deep");
    for (name, text) in rows {
        let path = directory.file(name, text);
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let read = thread.spawn(move || refused(&path).to_string()).unwrap();
        let words = read.join().unwrap();
        assert!(words.contains(name) && words.len() < 400, "{words}");
    }
}

#[test]
fn many_keys_take_no_long_time() {
    let limit = usize::try_from(PROFILE_BYTES_MAX).unwrap();
    let lines = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for index in 0.. {
            let line = line(index);
            if text.len() + line.len() > limit {
                break;
            }
            text.push_str(&line);
        }
        text
    };
    let rows = [
        ("env.toml", lines(&|index| format!("env.A{index} = 'b'\n"))),
        ("tables.toml", lines(&|index| format!("[a{index}]\n"))),
        ("mounts.toml", lines(&|index| format!("[[mounts]]\ndir.target = '/a{index}'\n"))),
        ("words.toml", format!("{} = 1", "a".repeat(limit - 4))),
        ("broken.toml", "=\n".repeat(limit / 2)),
        ("word.json", format!("{{\"proc\": \"{}\"}}", "a".repeat(limit - 12))),
        ("list.json", format!("{{\"stubs\": [{}1]}}", "\"/a\",".repeat(limit / 5 - 8))),
    ];
    let directory = Directory::new("many");
    for (name, text) in rows {
        let path = directory.file(name, text);
        let begin = Instant::now();
        drop(SandboxProfile::from_file(path));
        assert!(begin.elapsed() < Duration::from_secs(20), "{name}: {:?}", begin.elapsed());
    }
}
