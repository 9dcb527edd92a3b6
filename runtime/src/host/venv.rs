//! Reads `pyvenv.cfg`, as `site.py` does; knows nothing of where the interpreter is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What `pyvenv.cfg` of a virtual environment says.
///
/// See [site](https://docs.python.org/3/library/site.html).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VenvConfig {
    /// `home`: the directory of the interpreter that the environment was made from, if it is an
    /// absolute path. From its parent the interpreter finds its standard library.
    pub home: Option<PathBuf>,
    /// The first two numbers of `version` or `version_info`.
    pub version: Option<(u8, u8)>,
}

impl VenvConfig {
    /// The settings in the text of a file; a line that is none is passed over.
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut config = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some(equals) = line.iter().position(|byte| *byte == b'=') else { continue };
            let (key, value) = line.split_at(equals);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            match key.trim_ascii() {
                b"home" if value.first() == Some(&b'/') && config.home.is_none() => {
                    config.home = Some(OsString::from_vec(value.to_vec()).into());
                }
                b"version" | b"version_info" => {
                    config.version = config.version.or_else(|| version(value));
                }
                _ => {}
            }
        }
        config
    }
}

/// The version in an interpreter's file name, such as `python3.11` or `pypy3.10`.
pub(crate) fn named_version(name: &OsStr) -> Option<(u8, u8)> {
    let name = name.as_bytes();
    version(name.strip_prefix(b"python").or_else(|| name.strip_prefix(b"pypy"))?)
}

/// Two numbers with a dot between them, whatever comes after.
fn version(text: &[u8]) -> Option<(u8, u8)> {
    let text = core::str::from_utf8(text).ok()?;
    let (major, rest) = text.split_once('.')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::{VenvConfig, named_version};

    #[test]
    fn settings_are_read_as_each_tool_writes_them() {
        let rows = [
            ("home = /usr/bin\nversion = 3.11.2\n", Some("/usr/bin"), Some((3, 11))),
            (
                "home=/opt/a b/bin\r\nversion_info = 3.12.5.final.0",
                Some("/opt/a b/bin"),
                Some((3, 12)),
            ),
            ("uv = 0.4.1\nversion_info = 3.13.0rc1\n", None, Some((3, 13))),
            ("home = bin\nversion = three\n", None, None),
            ("# home\n\nhome\n = /x\nversion = 3\n", None, None),
            ("home = /a\nhome = /b\nversion = 3.300\n", Some("/a"), None),
            ("", None, None),
        ];
        for (text, home, version) in rows {
            let config = VenvConfig::parse(text.as_bytes());
            assert_eq!(
                (config.home.as_deref(), config.version),
                (home.map(Path::new), version),
                "{text:?}"
            );
        }
    }

    #[test]
    fn versions_are_in_file_names() {
        let rows = [
            ("python3.11", Some((3, 11))),
            ("python3.13t", Some((3, 13))),
            ("pypy3.10", Some((3, 10))),
            ("python2.7", Some((2, 7))),
            ("python3", None),
            ("python", None),
            ("ipython3.11", None),
            ("python3.", None),
        ];
        for (name, version) in rows {
            assert_eq!(named_version(OsStr::new(name)), version, "{name}");
        }
    }
}
