//! Texts that are no profile, each with the sentence it gets; what is read must be written back.

use super::set::FIELDS;
use super::{ProfileFileError, SandboxProfile};

mod files;
mod guide;
mod keys;
mod mutants;
mod options;
mod schema;
mod texts;
mod written;

/// Every field, none at its default.
pub(super) const EVERYTHING: &str = r#"
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
seccomp_policy = '{"a":{"mismatch_action":"allow","match_action":"trap","filter":[]}}'
landlock = { require = 6 }
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
shared_uid = "refuse"
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

[cgroup]
need = "require"
parent = "/sys/fs/cgroup/x"
service = "move"
memory_bytes = 4194304
swap_bytes = 1
pids = 2
cpu_millis = 10
cpu_weight = 1
io_weight = 10000
"#;

/// What an error says, with the names of all fields cut short.
fn sentence<T>(result: Result<T, ProfileFileError>) -> String {
    let fields = FIELDS.join("`, `");
    let words = result.err().map_or_else(|| "accepted".to_owned(), |error| error.to_string());
    words.replace(&format!("`{fields}`"), "ALL")
}
