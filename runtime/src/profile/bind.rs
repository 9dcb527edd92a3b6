//! Binds and the ordered mount list of a profile, and the `SOURCE:TARGET` notation; opens nothing.

use core::fmt;
use core::str::FromStr;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A host path and the place where the guest sees it, bound recursively.
///
/// In files and on command lines it is written `SOURCE` (same path inside) or `SOURCE:TARGET`;
/// `\:` is a colon and `\\` a backslash within a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the guest.
    pub target: PathBuf,
}

impl Bind {
    /// Binds `source` at `target`.
    pub fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        Self { source: source.into(), target: target.into() }
    }

    /// Binds a path at its own place.
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let source = path.into();
        Self { target: source.clone(), source }
    }
}

impl<S: Into<PathBuf>, T: Into<PathBuf>> From<(S, T)> for Bind {
    fn from((source, target): (S, T)) -> Self {
        Self::new(source, target)
    }
}

/// Why a text is not a [`Bind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindSyntaxError {
    /// The source or the target is empty.
    Empty,
    /// More than one colon that is not escaped.
    Colons,
    /// A backslash before anything but a colon or a backslash.
    Escape,
}

impl fmt::Display for BindSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a bind is SOURCE or SOURCE:TARGET, neither of them empty",
            Self::Colons => "a bind has one colon at most; write a colon within a path as \\:",
            Self::Escape => "a backslash in a bind stands before a colon or a backslash",
        })
    }
}

impl core::error::Error for BindSyntaxError {}

/// The notation as bytes, since paths are.
impl TryFrom<&OsStr> for Bind {
    type Error = BindSyntaxError;

    fn try_from(text: &OsStr) -> Result<Self, BindSyntaxError> {
        let mut source = None;
        let mut part = Vec::new();
        let mut bytes = text.as_bytes().iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => match bytes.next() {
                    Some(escaped @ (b':' | b'\\')) => part.push(escaped),
                    Some(_) | None => return Err(BindSyntaxError::Escape),
                },
                b':' if source.is_some() => return Err(BindSyntaxError::Colons),
                b':' => source = Some(core::mem::take(&mut part)),
                other => part.push(other),
            }
        }
        if part.is_empty() || source.as_ref().is_some_and(Vec::is_empty) {
            return Err(BindSyntaxError::Empty);
        }
        let part = OsString::from_vec(part);
        Ok(match source {
            Some(source) => Self::new(OsString::from_vec(source), part),
            None => Self::same(part),
        })
    }
}

impl FromStr for Bind {
    type Err = BindSyntaxError;

    fn from_str(text: &str) -> Result<Self, BindSyntaxError> {
        Self::try_from(OsStr::new(text))
    }
}

/// One half of a bind, escaped.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:")
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.source))?;
        if self.target != self.source {
            write!(f, ":{}", escaped(&self.target))?;
        }
        Ok(())
    }
}

impl Serialize for Bind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.source.to_str().is_none() || self.target.to_str().is_none() {
            return Err(S::Error::custom("a bind that is not UTF-8 cannot be written to a file"));
        }
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// What a missing source means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The launch is refused.
    #[default]
    Refuse,
    /// The entry is passed over.
    Skip,
}

/// Whether a bind of the ordered list may be written through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BindAccess {
    /// No.
    #[default]
    ReadOnly,
    /// Yes, where permission bits allow it.
    ReadWrite,
}

/// One entry of [`SandboxProfile::mounts`](super::SandboxProfile::mounts), carried out in order.
///
/// Later entries may lie over or beneath earlier ones. A `tmpfs` is made once per sandbox: what
/// one run writes there, the next run of the same sandbox sees, as with the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MountSpec {
    /// A recursive bind of a host path.
    Bind {
        /// Absolute path on the host.
        source: PathBuf,
        /// Absolute path in the guest.
        target: PathBuf,
        /// Default read-only.
        #[serde(default)]
        access: BindAccess,
        /// Default refuse.
        #[serde(default)]
        missing: Missing,
    },
    /// A fresh tmpfs.
    Tmpfs {
        /// Absolute path in the guest.
        target: PathBuf,
        /// Bytes that it may hold; default 64 MiB.
        #[serde(default = "tmpfs_size_bytes")]
        size_bytes: u64,
        /// Inodes that it may hold; default 16,384.
        #[serde(default = "tmpfs_inodes")]
        inodes: u64,
        /// Permission bits of its root; default 0o1777.
        #[serde(default = "tmpfs_mode")]
        mode: u32,
    },
    /// A directory, and its missing parents.
    Dir {
        /// Absolute path in the guest.
        target: PathBuf,
        /// Permission bits; default 0o755.
        #[serde(default = "dir_mode")]
        mode: u32,
    },
    /// A symbolic link. An equal one that is already there is left alone.
    Symlink {
        /// Absolute path in the guest.
        target: PathBuf,
        /// What the link says.
        to: PathBuf,
    },
    /// A read-only file with fixed contents.
    File {
        /// Absolute path in the guest.
        target: PathBuf,
        /// What it holds; UTF-8 text when it comes from a profile file.
        #[serde(with = "text")]
        #[cfg_attr(any(test, feature = "schema"), schemars(with = "String"))]
        contents: Vec<u8>,
        /// Permission bits; default 0o644.
        #[serde(default = "file_mode")]
        mode: u32,
    },
}

impl MountSpec {
    /// Where the entry acts.
    pub fn target(&self) -> &Path {
        match self {
            Self::Bind { target, .. }
            | Self::Tmpfs { target, .. }
            | Self::Dir { target, .. }
            | Self::Symlink { target, .. }
            | Self::File { target, .. } => target,
        }
    }
}

/// Bytes of a listed tmpfs unless the profile says otherwise.
const fn tmpfs_size_bytes() -> u64 {
    64 << 20
}

/// Inodes of a listed tmpfs unless the profile says otherwise.
const fn tmpfs_inodes() -> u64 {
    16_384
}

/// Permission bits of a listed tmpfs unless the profile says otherwise.
const fn tmpfs_mode() -> u32 {
    0o1777
}

/// Permission bits of a listed directory unless the profile says otherwise.
const fn dir_mode() -> u32 {
    0o755
}

/// Permission bits of a listed file unless the profile says otherwise.
const fn file_mode() -> u32 {
    0o644
}

/// File contents as text.
mod text {
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        contents: &[u8],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = core::str::from_utf8(contents).map_err(S::Error::custom)?;
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        Ok(String::deserialize(deserializer)?.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::{Bind, BindSyntaxError};

    #[test]
    fn binds_are_read_and_written_back() {
        let rows = [
            ("/a", Ok(("/a", "/a")), "/a"),
            ("/a:/b", Ok(("/a", "/b")), "/a:/b"),
            ("/a:/a", Ok(("/a", "/a")), "/a"),
            (r"/a\:b", Ok(("/a:b", "/a:b")), r"/a\:b"),
            (r"/a\:b:/c\\d", Ok(("/a:b", r"/c\d")), r"/a\:b:/c\\d"),
            ("", Err(BindSyntaxError::Empty), ""),
            (":/b", Err(BindSyntaxError::Empty), ""),
            ("/a:", Err(BindSyntaxError::Empty), ""),
            ("/a:/b:ro", Err(BindSyntaxError::Colons), ""),
            (r"/a\b", Err(BindSyntaxError::Escape), ""),
            (r"/a\", Err(BindSyntaxError::Escape), ""),
        ];
        for (text, expected, written) in rows {
            let read = text.parse::<Bind>();
            assert_eq!(read, expected.map(|(source, target)| Bind::new(source, target)), "{text}");
            assert_eq!(read.map(|bind| bind.to_string()).unwrap_or_default(), written, "{text}");
        }
    }

    #[test]
    fn a_path_need_not_be_text() {
        let bind = Bind::try_from(OsStr::from_bytes(b"/\xff\\::/b")).unwrap();
        assert_eq!(bind, Bind::new(OsStr::from_bytes(b"/\xff:"), "/b"));
    }
}
