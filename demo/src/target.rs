//! What the script aims at, and what the host sees happen to it: a file with a secret, a port that
//! listens, the kernel's core pattern. It judges nothing.

use std::fs;
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::DemoError;

/// Which program is started for a core dump, as root: the classic way out of a container.
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// The stubs of the guest: file names and contents.
const STUBS: [(&str, &str); 2] = [
    ("penguins_pb2.py", include_str!("../guest/stubs/penguins_pb2.py")),
    ("penguins_pb2_grpc.py", include_str!("../guest/stubs/penguins_pb2_grpc.py")),
];

/// The targets of one run, gone when dropped.
#[derive(Debug)]
pub(crate) struct Target {
    directory: TempDir,
    listener: TcpListener,
    core_pattern: Option<Vec<u8>>,
    /// In the secret file and among the arguments of the guest's processes, and nowhere else.
    pub(crate) token: String,
}

impl Target {
    /// Sets them up. The secret file is one that every local user may read and write: it is not
    /// its mode that keeps the guest away.
    pub(crate) fn new() -> Result<Target, DemoError> {
        let token = token().map_err(DemoError::file("read", Path::new("/dev/urandom")))?;
        let open = fs::Permissions::from_mode(0o755);
        let directory = tempfile::Builder::new()
            .prefix("postern-demo-")
            .permissions(open)
            .tempdir()
            .map_err(DemoError::file("make a directory in", &std::env::temp_dir()))?;
        let loopback = Path::new("127.0.0.1");
        let listener =
            TcpListener::bind("127.0.0.1:0").map_err(DemoError::file("listen on", loopback))?;
        listener.set_nonblocking(true).map_err(DemoError::file("listen on", loopback))?;
        let core_pattern = fs::read(CORE_PATTERN).ok();
        let target = Target { directory, listener, core_pattern, token };
        write(&target.canary(), target.secret().as_bytes(), 0o666)?;
        let stubs = target.stubs();
        fs::create_dir(&stubs).map_err(DemoError::file("make", &stubs))?;
        let all = fs::set_permissions(&stubs, fs::Permissions::from_mode(0o755));
        all.map_err(DemoError::file("open", &stubs))?;
        for (name, text) in STUBS {
            write(&stubs.join(name), text.as_bytes(), 0o644)?;
        }
        Ok(target)
    }

    /// The file with the secret.
    pub(crate) fn canary(&self) -> PathBuf {
        self.directory.path().join("secret")
    }

    /// The directory of the guest's stubs.
    pub(crate) fn stubs(&self) -> PathBuf {
        self.directory.path().join("stubs")
    }

    /// What the secret file holds. It is not the token, which the guest is given.
    fn secret(&self) -> String {
        self.token.chars().rev().collect()
    }

    /// The port on which the host listens.
    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |address| address.port())
    }

    /// Whether the secret is in something that came from the guest.
    pub(crate) fn is_told(&self, bytes: &[u8]) -> bool {
        let secret = self.secret();
        bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
    }

    /// Whether the secret file holds what it held.
    pub(crate) fn is_untouched(&self) -> bool {
        fs::read(self.canary()).is_ok_and(|bytes| bytes == self.secret().as_bytes())
    }

    /// How many connections have come.
    pub(crate) fn connections(&self) -> u64 {
        let mut count = 0;
        while self.listener.accept().is_ok() {
            count += 1;
        }
        count
    }

    /// Whether the kernel's core pattern is what it was; another one is put right again, where we may.
    pub(crate) fn is_core_pattern_kept(&self) -> bool {
        let now = fs::read(CORE_PATTERN).ok();
        let is_kept = now == self.core_pattern;
        if let (false, Some(before)) = (is_kept, &self.core_pattern) {
            fs::write(CORE_PATTERN, before).ok();
        }
        is_kept
    }
}

/// A file with these permission bits, whatever our umask.
fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), DemoError> {
    fs::write(path, bytes).map_err(DemoError::file("write", path))?;
    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.map_err(DemoError::file("open", path))
}

/// 32 hexadecimal digits that nobody can guess.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// Each fact that holds a verdict can be otherwise.
    #[test]
    fn the_host_sees_what_is_done_to_its_targets() {
        let target = Target::new().unwrap();
        assert!(target.is_untouched() && target.is_core_pattern_kept());
        assert_eq!(target.connections(), 0);
        assert!(!target.is_told(target.token.as_bytes()), "the token is no secret");

        let secret = fs::read(target.canary()).unwrap();
        assert!(target.is_told(&[b"{", &secret[..], b"}"].concat()));
        fs::write(target.canary(), "the guest was here").unwrap();
        assert!(!target.is_untouched());
        let _stream = TcpStream::connect(("127.0.0.1", target.port())).unwrap();
        assert_eq!(target.connections(), 1);
    }
}
