//! The table of keys: each example is read at its place, and each list of words is the real one.

use toml::{Table, Value};

use super::{ProfileFileError, SandboxProfile};
use crate::profile::file::keys::{KEYS, Key, find, nearest_key, nearest_word};

/// An example of the table.
fn example(key: &Key) -> Value {
    let mut table: Table = format!("value = {}", key.example).parse().unwrap();
    table.remove("value").unwrap()
}

/// A file that sets one key to its example, within the examples of the tables around it.
pub(super) fn file(key: &Key) -> String {
    let (mut path, mut value) = (key.path, example(key));
    while !path.is_empty() {
        if let Some(list) = path.strip_suffix("[]") {
            (path, value) = (list, Value::Array(vec![value]));
            continue;
        }
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        // These hold one key, which is the one at hand.
        let is_choice = ["", "workspace", "mounts[]"].contains(&parent);
        let mut table = match find(parent).filter(|_| !is_choice).map(example) {
            Some(Value::Table(table)) => table,
            _ => Table::new(),
        };
        table.insert(name.to_owned(), value);
        (path, value) = (parent, Value::Table(table));
    }
    toml::to_string(&value).unwrap()
}

/// The keys that can be set one by one.
fn plain(key: &&Key) -> bool {
    !key.path.contains("[]") && key.path != "workspace.directory.access"
}

#[test]
fn every_example_is_read_as_a_file_and_as_an_option() {
    for key in &KEYS {
        let text = file(key);
        SandboxProfile::from_toml_str(&text).unwrap_or_else(|error| panic!("{text}{error}"));
    }
    for key in KEYS.iter().filter(plain) {
        let mut profile = SandboxProfile::default();
        profile.set(key.path, key.example).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn each_list_of_words_is_the_real_one() {
    let words = KEYS.iter().filter(|key| key.is_word());
    for key in words.clone().filter(plain) {
        let listed: Vec<_> = key.expects.split('"').skip(1).step_by(2).collect();
        match SandboxProfile::default().set(key.path, "no such word") {
            Err(ProfileFileError::UnknownWord { allowed, .. }) => assert_eq!(allowed, listed),
            other => panic!("{}: {other:?}", key.path),
        }
    }
    assert_eq!(words.count(), 17);
}

#[test]
fn the_nearest_name_is_the_one_that_was_meant() {
    let rows = [
        ("", "nproc", Some("limits.nproc")),
        ("", "hostnam", Some("hostname")),
        ("", "HostName", Some("hostname")),
        ("", "tmp-bytes", Some("tmp_bytes")),
        ("", "SHM-BYTES", Some("shm_bytes")),
        ("", "robinds", Some("ro_binds")),
        ("", "size_bytes", Some("workspace.owned.size_bytes")),
        ("", "uts", Some("namespaces.uts")),
        ("", "memory", None),
        ("", "x", None),
        ("", "", None),
        ("limits", "nprocs", Some("limits.nproc")),
        ("limits", "hostname", Some("hostname")),
        ("mounts[3].tmpfs", "size", None),
        ("mounts[3].tmpfs", "size_byte", Some("mounts[3].tmpfs.size_bytes")),
        ("mounts[3].bind", "ro", None),
        ("mounts[3]", "symlnk", Some("mounts[3].symlink")),
        ("workspace", "path", Some("workspace.directory.path")),
    ];
    for (table, name, nearest) in rows {
        assert_eq!(nearest_key(table, name).as_deref(), nearest, "{table} {name}");
    }
    let words = ["read_only", "minimal", "masked", "none"];
    let rows = [("masked_", Some("masked")), ("read-only", Some("read_only")), ("full", None)];
    for (word, nearest) in rows {
        assert_eq!(nearest_word(word, &words), nearest, "{word}");
    }
}
