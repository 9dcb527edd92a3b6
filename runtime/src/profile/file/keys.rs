//! Every key of a profile file, with what it expects and an example: for errors and for the guide.

/// One key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Tables joined by dots; `[]` is any entry of a list, `NAME` any name.
    pub(super) path: &'static str,
    /// What its value is, in words that follow "expects".
    pub(super) expects: &'static str,
    /// A value, as TOML.
    pub(super) example: &'static str,
}

impl Key {
    /// Whether its value is one of a few words.
    pub(super) fn is_word(&self) -> bool {
        self.expects.starts_with('"')
    }
}

const fn key(path: &'static str, expects: &'static str, example: &'static str) -> Key {
    Key { path, expects, example }
}

const ON_HOST: &str = "an absolute path on the host";
const IN_GUEST: &str = "an absolute path in the guest";
const BINDS: &str = "a list of binds, each SOURCE or SOURCE:TARGET";
const BIND: &str = "a bind, SOURCE or SOURCE:TARGET";
const INODES: &str = "a number of inodes";
const BYTES: &str = "a number of bytes";
const MODE: &str = "permission bits, as a number";
const INNER_ID: &str = "an id, a number from 0 to 4294967294";
const OUTER_ID: &str = "an id, a number from 1 to 4294967294";
const POLICY: &str = r#"'{"own":{"mismatch_action":"allow","match_action":{"errno":1},"filter":[{"syscall":"ptrace"}]}}'"#;
const OWN_OR_SHARED: &str = "\"own\" or \"shared\"";

/// In the order of [`SandboxProfile`](crate::profile::SandboxProfile)'s fields.
pub(super) const KEYS: [Key; 90] = [
    key(
        "workspace",
        "a table with `owned` or `directory`",
        "{ directory = { path = \"/srv/job\" } }",
    ),
    key("workspace.owned", "a table", "{ size_bytes = 1073741824 }"),
    key("workspace.owned.size_bytes", BYTES, "1073741824"),
    key("workspace.owned.inodes", INODES, "65536"),
    key("workspace.directory", "a table", "{ path = \"/srv/job\" }"),
    key("workspace.directory.path", ON_HOST, "\"/srv/job\""),
    key("workspace.directory.access", "\"as_is\", \"shared\" or \"mapped\"", "\"mapped\""),
    key("root", "\"curated\" or \"host_view\"", "\"host_view\""),
    key("rootfs", ON_HOST, "\"/srv/images/debian\""),
    key("python", "a name or an absolute path in the guest", "\"python3.12\""),
    key("venv", ON_HOST, "\"/opt/analysis-env\""),
    key("ro_binds", BINDS, "[\"/srv/data:/data\"]"),
    key("ro_binds[]", BIND, "\"/srv/data:/data\""),
    key("required_ro_binds", BINDS, "[\"/srv/models\"]"),
    key("required_ro_binds[]", BIND, "\"/srv/models\""),
    key("rw_binds", BINDS, "[\"/srv/out:/out\"]"),
    key("rw_binds[]", BIND, "\"/srv/out:/out\""),
    key("mounts", "a list of mounts", "[{ tmpfs = { target = \"/scratch\" } }]"),
    key(
        "mounts[]",
        "a table with one of `bind`, `tmpfs`, `dir`, `symlink`, `file`",
        "{ dir = { target = \"/data\" } }",
    ),
    key("mounts[].bind", "a table", "{ source = \"/srv/data\", target = \"/data\" }"),
    key("mounts[].bind.source", ON_HOST, "\"/srv/data\""),
    key("mounts[].bind.target", IN_GUEST, "\"/data\""),
    key("mounts[].bind.access", "\"read_only\" or \"read_write\"", "\"read_write\""),
    key("mounts[].bind.missing", "\"refuse\" or \"skip\"", "\"skip\""),
    key("mounts[].tmpfs", "a table", "{ target = \"/scratch\" }"),
    key("mounts[].tmpfs.target", IN_GUEST, "\"/scratch\""),
    key("mounts[].tmpfs.size_bytes", BYTES, "67108864"),
    key("mounts[].tmpfs.inodes", INODES, "16384"),
    key("mounts[].tmpfs.mode", MODE, "0o700"),
    key("mounts[].dir", "a table", "{ target = \"/data\" }"),
    key("mounts[].dir.target", IN_GUEST, "\"/data\""),
    key("mounts[].dir.mode", MODE, "0o750"),
    key("mounts[].symlink", "a table", "{ target = \"/data\", to = \"workspace/data\" }"),
    key("mounts[].symlink.target", IN_GUEST, "\"/data\""),
    key("mounts[].symlink.to", "a text, what the link says", "\"workspace/data\""),
    key("mounts[].file", "a table", "{ target = \"/etc/motd\", contents = \"hello\\n\" }"),
    key("mounts[].file.target", IN_GUEST, "\"/etc/motd\""),
    key("mounts[].file.contents", "a text", "\"hello\\n\""),
    key("mounts[].file.mode", MODE, "0o600"),
    key("stubs", "a list of absolute paths on the host", "[\"/srv/stubs\"]"),
    key("stubs[]", ON_HOST, "\"/srv/stubs\""),
    key("env", "a table of texts", "{ TZ = \"UTC\" }"),
    key("env.NAME", "a text", "\"UTC\""),
    key("etc", "\"generated\" or \"none\"", "\"none\""),
    key("proc", "\"read_only\", \"minimal\", \"masked\" or \"none\"", "\"minimal\""),
    key("loopback", "\"up\" or \"down\"", "\"down\""),
    key("namespaces", "a table", "{ net = \"shared\" }"),
    key("namespaces.pid", OWN_OR_SHARED, "\"shared\""),
    key("namespaces.net", OWN_OR_SHARED, "\"shared\""),
    key("namespaces.ipc", OWN_OR_SHARED, "\"shared\""),
    key("namespaces.uts", OWN_OR_SHARED, "\"shared\""),
    key("namespaces.cgroup", OWN_OR_SHARED, "\"shared\""),
    key("seccomp", "\"strict\", \"default\", \"compat\" or \"off\"", "\"strict\""),
    key("seccomp_policy", "a text, a policy in JSON", POLICY),
    key("landlock", "one of \"off\" and \"use\", or a table with `require`", "\"use\""),
    key("landlock.require", "an ABI, a number from 2 to 6", "6"),
    key("tmp_bytes", BYTES, "67108864"),
    key("tmp_inodes", INODES, "16384"),
    key("shm_bytes", BYTES, "67108864"),
    key("shm_inodes", INODES, "16384"),
    key("pty_max", "a number of pseudo-terminals, 0 to 1048576", "4"),
    key("limits", "a table", "{ nproc = 64 }"),
    key("limits.nproc", "a number of processes and threads, or \"unlimited\"", "64"),
    key("limits.nofile", "a number of descriptors", "1024"),
    key("limits.fsize_bytes", BYTES, "1073741824"),
    key("limits.memlock_bytes", BYTES, "65536"),
    key("limits.sigpending", "a number of signals", "1024"),
    key("limits.msgqueue_bytes", BYTES, "262144"),
    key("limits.stack_bytes", "a number of bytes, or \"unlimited\"", "8388608"),
    key("limits.address_space_bytes", "a number of bytes, or \"unlimited\"", "4294967296"),
    key("limits.cpu_seconds", "a number of seconds, or \"unlimited\"", "60"),
    key("cgroup", "a table", "{ memory_bytes = 536870912 }"),
    key("cgroup.need", "\"use\" or \"require\"", "\"require\""),
    key("cgroup.parent", ON_HOST, "\"/sys/fs/cgroup/sandboxes\""),
    key("cgroup.service", "\"stay\" or \"move\"", "\"move\""),
    key("cgroup.memory_bytes", BYTES, "536870912"),
    key("cgroup.swap_bytes", BYTES, "0"),
    key("cgroup.pids", "a number of processes and threads", "64"),
    key("cgroup.cpu_millis", "a number of thousandths of a processor", "1500"),
    key("cgroup.cpu_weight", "a weight, a number from 1 to 10000", "50"),
    key("cgroup.io_weight", "a weight, a number from 1 to 10000", "50"),
    key("guest_uid", INNER_ID, "1000"),
    key("guest_gid", INNER_ID, "1000"),
    key("host_uid", OUTER_ID, "1500"),
    key("host_gid", OUTER_ID, "1500"),
    key("hostname", "a text of 1 to 64 bytes", "\"box\""),
    key("cwd", IN_GUEST, "\"/tmp\""),
    key("shared_uid", "\"report\" or \"refuse\"", "\"refuse\""),
    key("shared_groups", "\"report\" or \"refuse\"", "\"refuse\""),
    key("oom_score_adj", "a number from 0 to 1000", "500"),
];

/// The table whose keys are anybody's.
const FREE_TABLE: &str = "env";

/// A path of the table above for one in a file: `mounts[3].dir` is `mounts[].dir`.
fn generic(path: &str) -> String {
    if path.strip_prefix(FREE_TABLE).is_some_and(|rest| rest.starts_with('.')) {
        return format!("{FREE_TABLE}.NAME");
    }
    let mut generic = String::new();
    let mut is_index = false;
    for character in path.chars() {
        is_index = (is_index || character == '[') && character != ']';
        if !is_index || character == '[' {
            generic.push(character);
        }
    }
    generic
}

/// The file itself.
const FILE: Key = key("", "a table of keys", "{ hostname = \"box\" }");

/// What is known about a key, by its place in a file.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    if path.is_empty() {
        return Some(&FILE);
    }
    let path = generic(path);
    KEYS.iter().find(|key| key.path == path)
}

/// The path of a key in a table; the file itself is the table without a name.
pub(super) fn join(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
}

/// The table and the name of a key.
fn split(path: &'static str) -> (&'static str, &'static str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// How many slips of the keyboard a word of this length is forgiven.
const fn slips_max(name: &str) -> usize {
    if name.len() < 2 { 0 } else { 1 + name.len() / 6 }
}

/// Slips between two words, where there are few enough.
fn slips(name: &str, other: &str) -> Option<usize> {
    // Longer ones resemble nothing, and comparing them takes time by their product.
    if name.len() > 64 {
        return None;
    }
    let plain = name.to_lowercase().replace('-', "_");
    Some(strsim::osa_distance(&plain, other)).filter(|slips| *slips <= slips_max(name))
}

/// The allowed word most like this one.
pub(super) fn nearest_word(word: &str, allowed: &[&'static str]) -> Option<&'static str> {
    let close = allowed.iter().filter_map(|other| Some((slips(word, other)?, *other)));
    close.min_by_key(|(slips, _)| *slips).map(|(_, other)| other)
}

/// Shortest name that is taken for a slip of one in another table, where any name could be meant.
const ELSEWHERE_MIN: usize = 5;

/// The key most like this one, in the same table rather than in another.
pub(super) fn nearest_key(table: &str, name: &str) -> Option<String> {
    let here = generic(table);
    let close = KEYS.iter().filter_map(|key| {
        let (table, other) = split(key.path);
        let is_elsewhere = table != here;
        let slips = slips(name, other)?;
        let is_name = !other.ends_with("[]") && other != "NAME";
        let is_likely = slips == 0 || !is_elsewhere || name.len() >= ELSEWHERE_MIN;
        (is_name && is_likely).then_some((slips, is_elsewhere, key.path, other))
    });
    let (_, is_elsewhere, path, other) = close.min_by_key(|(slips, away, ..)| (*slips, *away))?;
    Some(if is_elsewhere { path.to_owned() } else { join(table, other) })
}
