//! Profiles as TOML and JSON text; an unknown key is an error, and no default is guessed from one.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{SandboxProfile, check};
use crate::error::Refusal;

/// Why a profile file is not a profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProfileFileError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The name ends neither in `.toml` nor in `.json`.
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// Not TOML, an unknown key, or a value of the wrong kind.
    Toml {
        /// The file, if the text came from one.
        path: Option<PathBuf>,
        /// Line, counted from 1, where the parser knows it.
        line: Option<usize>,
        /// What the parser said; names the key.
        source: Box<toml::de::Error>,
    },
    /// Not JSON, an unknown key, or a value of the wrong kind.
    Json {
        /// The file, if the text came from one.
        path: Option<PathBuf>,
        /// Line, counted from 1.
        line: usize,
        /// What the parser said; names the key.
        source: serde_json::Error,
    },
    /// Well-formed, but a rule refuses it.
    Refused {
        /// The file, if the text came from one.
        path: Option<PathBuf>,
        /// The rule.
        source: Box<Refusal>,
    },
}

impl ProfileFileError {
    /// The same error, with the file that the text came from.
    fn of_file(self, file: &Path) -> Self {
        let path = Some(file.to_owned());
        match self {
            Self::Toml { line, source, .. } => Self::Toml { path, line, source },
            Self::Json { line, source, .. } => Self::Json { path, line, source },
            Self::Refused { source, .. } => Self::Refused { path, source },
            other @ (Self::Read { .. } | Self::Extension { .. }) => other,
        }
    }
}

/// `FILE:LINE: `, as far as both are known.
fn place(f: &mut fmt::Formatter<'_>, path: Option<&PathBuf>, line: Option<usize>) -> fmt::Result {
    match path {
        Some(path) => write!(f, "{}", path.display())?,
        None => f.write_str("profile")?,
    }
    if let Some(line) = line {
        write!(f, ":{line}")?;
    }
    f.write_str(": ")
}

impl fmt::Display for ProfileFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Extension { path } => {
                write!(f, "{}: a profile file ends in .toml or .json", path.display())
            }
            Self::Toml { path, line, source } => {
                place(f, path.as_ref(), *line)?;
                f.write_str(source.message())
            }
            Self::Json { path, line, source } => {
                place(f, path.as_ref(), Some(*line))?;
                write!(f, "{source}")
            }
            Self::Refused { path, source } => {
                place(f, path.as_ref(), None)?;
                write!(f, "{source}")
            }
        }
    }
}

impl core::error::Error for ProfileFileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Extension { .. } => None,
            Self::Toml { source, .. } => Some(source.as_ref()),
            Self::Json { source, .. } => Some(source),
            Self::Refused { source, .. } => Some(source.as_ref()),
        }
    }
}

/// The rules that need no machine.
fn checked(profile: SandboxProfile) -> Result<SandboxProfile, ProfileFileError> {
    let refused = |source| ProfileFileError::Refused { path: None, source: Box::new(source) };
    check(&profile).map_err(refused)?;
    Ok(profile)
}

impl SandboxProfile {
    /// Reads a profile from TOML text; what it does not name keeps its default.
    ///
    /// # Errors
    ///
    /// [`ProfileFileError::Toml`] or [`ProfileFileError::Refused`].
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileFileError> {
        checked(toml::from_str(text).map_err(|source: toml::de::Error| {
            let line = source
                .span()
                .and_then(|span| text.get(..span.start))
                .map(|before| before.matches('\n').count() + 1);
            ProfileFileError::Toml { path: None, line, source: Box::new(source) }
        })?)
    }

    /// Reads a profile from JSON text; what it does not name keeps its default.
    ///
    /// # Errors
    ///
    /// [`ProfileFileError::Json`] or [`ProfileFileError::Refused`].
    pub fn from_json_str(text: &str) -> Result<Self, ProfileFileError> {
        checked(serde_json::from_str(text).map_err(|source: serde_json::Error| {
            ProfileFileError::Json { path: None, line: source.line(), source }
        })?)
    }

    /// Reads a profile from a file that ends in `.toml` or `.json`.
    ///
    /// # Errors
    ///
    /// Any [`ProfileFileError`]; each names the file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ProfileFileError> {
        let path = path.as_ref();
        let parse = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::from_toml_str,
            Some("json") => Self::from_json_str,
            Some(_) | None => return Err(ProfileFileError::Extension { path: path.to_owned() }),
        };
        let read = |source| ProfileFileError::Read { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(read)?;
        parse(&text).map_err(|error| error.of_file(path))
    }
}

#[cfg(test)]
mod tests {
    use super::{ProfileFileError, SandboxProfile};

    #[test]
    fn what_is_not_a_profile_is_told_with_its_place() {
        let rows = [
            ("an unknown key", "nproc = 1\n", "profile:1: unknown field `nproc`"),
            ("a wrong kind", "\n\ntmp_bytes = \"64M\"\n", "profile:3: invalid type: string"),
            ("a negative number", "[limits]\nnofile = -1\n", "profile:2: invalid value: integer"),
            (
                "a negative optional limit",
                "[limits]\nnproc = -1\n",
                "profile:2: invalid value: integer `-1`",
            ),
            ("a word for a limit", "[limits]\nnproc = \"many\"\n", "profile:2: invalid value"),
            ("an unknown key inside", "[namespaces]\nuser = \"own\"\n", "profile:2: unknown field"),
            ("an unknown word", "proc = \"full\"\n", "profile:1: unknown variant `full`"),
            ("an unknown level", "seccomp = \"tight\"\n", "profile:1: unknown seccomp level"),
            ("a wrong bind", "\nro_binds = [\"/a:/b:/c\"]\n", "profile:2: a bind has one colon"),
            (
                "an unknown key of a mount",
                "[[mounts]]\nbind = { source = \"/a\", target = \"/b\", ro = true }\n",
                "profile:2: unexpected keys in table: ro",
            ),
            ("no TOML", "= 1\n", "profile:1: "),
            ("a broken rule", "hostname = \"\"\n", "profile: hostname: is 0 bytes long"),
        ];
        for (name, text, words) in rows {
            let error = SandboxProfile::from_toml_str(text).expect_err(name).to_string();
            assert!(error.starts_with(words), "{name}: {error}");
        }
        let json = SandboxProfile::from_json_str("{\n\"nproc\": 1\n}").expect_err("json");
        assert!(json.to_string().starts_with("profile:2: unknown field `nproc`"), "{json}");
        let file = SandboxProfile::from_file("/nonexistent/profile.toml").expect_err("file");
        assert!(matches!(file, ProfileFileError::Read { .. }), "{file}");
        let extension = SandboxProfile::from_file("/nonexistent/profile.yaml").expect_err("yaml");
        assert!(matches!(extension, ProfileFileError::Extension { .. }), "{extension}");
    }

    /// Every field, none at its default.
    const EVERYTHING: &str = r#"
root = "host_view"
python = "pypy3"
venv = "/venv"
ro_binds = ["/a", "/b:/c"]
required_ro_binds = ['/d\:d:/e']
rw_binds = ["/f"]
stubs = ["/stubs"]
etc = "none"
proc = "masked"
loopback = "down"
seccomp = "off"
tmp_bytes = 8192
tmp_inodes = 8
shm_bytes = 4096
shm_inodes = 9
pty_max = 0
guest_uid = 0
guest_gid = 7
host_uid = 5
host_gid = 6
hostname = "h"
cwd = "/c"
shared_groups = "refuse"
oom_score_adj = 0

[workspace.directory]
path = "/w"
access = "shared"

[[mounts]]
bind = { source = "/g", target = "/h", access = "read_write", missing = "skip" }

[[mounts]]
tmpfs = { target = "/i", size_bytes = 4096, inodes = 5, mode = 0o700 }

[[mounts]]
dir = { target = "/j", mode = 0o700 }

[[mounts]]
symlink = { target = "/k", to = "j" }

[[mounts]]
file = { target = "/l", contents = "text", mode = 0o600 }

[env]
A = "b"

[namespaces]
pid = "shared"
net = "shared"
ipc = "shared"
uts = "shared"
cgroup = "shared"

[limits]
nproc = "unlimited"
nofile = 9
fsize_bytes = 1
memlock_bytes = 0
sigpending = 0
msgqueue_bytes = 0
stack_bytes = "unlimited"
address_space_bytes = 65536
cpu_seconds = 1
"#;

    #[test]
    fn profiles_survive_both_formats() {
        let profile = SandboxProfile::from_toml_str(EVERYTHING).unwrap();
        assert_eq!((profile.guest_uid, profile.guest_gid), (None, Some(7)));
        assert_eq!(profile.limits.nproc, None);
        for profile in [profile, SandboxProfile::default()] {
            let text = toml::to_string(&profile).unwrap();
            assert_eq!(SandboxProfile::from_toml_str(&text).unwrap(), profile, "{text}");
            let text = serde_json::to_string(&profile).unwrap();
            assert_eq!(SandboxProfile::from_json_str(&text).unwrap(), profile, "{text}");
        }
    }

    #[test]
    fn the_example_leaves_no_field_at_its_default() {
        let all = |profile: &SandboxProfile| serde_json::to_value(profile).unwrap();
        let profile = SandboxProfile::from_toml_str(EVERYTHING).unwrap();
        let (changed, default) = (all(&profile), all(&SandboxProfile::default()));
        let fields = changed.as_object().unwrap();
        let same: Vec<_> =
            fields.iter().filter(|(name, value)| default.get(name) == Some(value)).collect();
        // `rootfs` is not among them: it excludes the host view.
        assert_eq!((same.as_slice(), fields.len()), (&[][..], 29), "{fields:?}");
    }
}
