//! One key of a profile from two words of a command line; reads no file.

use super::error::{Notation, Place, ProfileFileError};
use super::node::{DEPTH_MAX, Node, Value};
use super::read::Names;
use super::{json, profile, toml, write};
use crate::profile::{SandboxProfile, check};

/// One list of all fields, so that one can be moved by its name; a field that is not in it does
/// not compile.
macro_rules! fields {
    ($($field:ident)*) => {
        pub(super) const FIELDS: Names = &[$(stringify!($field)),*];

        /// Exchanges one field of two profiles; nothing happens to a name that is no field.
        fn swap(one: &mut SandboxProfile, other: &mut SandboxProfile, name: &str) {
            let SandboxProfile { $($field),* } = one;
            match name {
                $(stringify!($field) => core::mem::swap($field, &mut other.$field),)*
                _ => {}
            }
        }
    };
}

fields! {
    workspace root rootfs python venv ro_binds required_ro_binds rw_binds mounts stubs env etc proc
    loopback namespaces seccomp seccomp_policy landlock tmp_bytes tmp_inodes shm_bytes shm_inodes pty_max limits cgroup guest_uid
    guest_gid host_uid host_gid hostname cwd shared_uid shared_groups oom_score_adj
}

impl SandboxProfile {
    /// Sets one key, as an option on a command line does: `set("limits.nproc", "64")`.
    ///
    /// The key is the path of a file's tables, joined by dots; what follows `env.` is the name of
    /// a variable, dots and all. The value is a TOML value; one that is none, and does not begin
    /// like a quoted text, list or table, is taken as a text: `set("hostname", "box")`. A list or
    /// table replaces the one before; a key within a table leaves its other keys alone.
    ///
    /// ```
    /// use postern::SandboxProfile;
    ///
    /// let mut profile = SandboxProfile::default();
    /// profile.set("limits.nproc", "64")?;
    /// profile.set("ro_binds", r#"["/srv/data:/data"]"#)?;
    /// profile.set("env.TZ", "UTC")?;
    /// assert_eq!((profile.limits.nproc, profile.limits.nofile), (Some(64), 1024));
    /// # Ok::<(), postern::profile::ProfileFileError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What a file with this key would be refused for, with no place; the profile is then as it
    /// was before.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ProfileFileError> {
        let names = names(key);
        let Some(name) = names.first().copied() else { return Ok(()) };
        if names.len() > DEPTH_MAX {
            return Err(ProfileFileError::TooDeep { place: Place::default(), limit: DEPTH_MAX });
        }
        let mut changed = self.clone();
        // A profile of this field alone: what no file can say in another one is in nobody's way.
        let mut only = Self::default();
        swap(&mut changed, &mut only, name);
        let mut tree = if names.len() > 1 && FIELDS.contains(&name) {
            json::tree(&write::json(&only)?)?
        } else {
            Node::empty()
        };
        choose(&mut tree, &names);
        tree.put(&names, parse(value)?);
        let mut read = profile(&tree, Notation::Toml, |_| Place::default())?;
        swap(&mut changed, &mut read, name);
        let refused = |refusal| super::refused(refusal, None, "");
        check(&changed).map_err(refused)?;
        *self = changed;
        Ok(())
    }
}

/// The names of a dotted key.
fn names(key: &str) -> Vec<&str> {
    match key.split_once('.') {
        Some(("env", variable)) => vec!["env", variable],
        Some(_) | None => key.split('.').collect(),
    }
}

/// A workspace is of one kind: a key of the other kind begins that one.
fn choose(tree: &mut Node, names: &[&str]) {
    if let ["workspace", kind, ..] = names
        && tree.get("workspace").is_some_and(|workspace| workspace.get(kind).is_none())
    {
        tree.put(&["workspace"], Node::empty());
    }
}

/// A TOML value, or the text itself.
fn parse(text: &str) -> Result<Node, ProfileFileError> {
    let is_marked = text.trim_start().starts_with(['"', '\'', '[', '{']);
    match toml::value(text.trim()) {
        Err(_) if !is_marked => Ok(Node { at: 0, value: Value::Text(text.to_owned()) }),
        result => result,
    }
}
