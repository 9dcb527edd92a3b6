//! Texts: each refusal is one sentence with a place, the same in both formats.

use super::{ProfileFileError, SandboxProfile, sentence};

/// A text and the whole sentence.
type Row = (&'static str, &'static str);

const TOML: &[Row] = &[
    ("nproc = 1\n", "profile:1:1: unknown key `nproc`; did you mean `limits.nproc`?"),
    ("a = 1", "profile:1:1: unknown key `a`; the keys there are ALL"),
    ("\nhostnam = \"a\"", "profile:2:1: unknown key `hostnam`; did you mean `hostname`?"),
    ("tmp-bytes = 1", "profile:1:1: unknown key `tmp-bytes`; did you mean `tmp_bytes`?"),
    (
        "[limits]\nnofiles = -1\n",
        "profile:2:1: unknown key `limits.nofiles`; did you mean `limits.nofile`?",
    ),
    ("[limits]\nproc = -1\n", "profile:2:1: unknown key `limits.proc`; did you mean `proc`?"),
    (
        "limits.hostname = 'a'",
        "profile:1:8: unknown key `limits.hostname`; did you mean `hostname`?",
    ),
    (
        "mounts = [{ bind = { source = '/a', target = '/b', ro = true } }]",
        "profile:1:52: unknown key `mounts[0].bind.ro`; the keys there are `source`, `target`, `access`, `missing`",
    ),
    (
        "mounts = [{ bind = { source = '/a', target = '/b', acces = true } }]",
        "profile:1:52: unknown key `mounts[0].bind.acces`; did you mean `mounts[0].bind.access`?",
    ),
    (
        "mounts = [{ tmpfs = { } }]",
        "profile:1:21: the key `mounts[0].tmpfs.target` is missing; it expects an absolute path in the guest, e.g. \"/scratch\"",
    ),
    (
        "mounts = [{ tmpf = { } }]",
        "profile:1:13: unknown key `mounts[0].tmpf`; did you mean `mounts[0].tmpfs`?",
    ),
    (
        "mounts = [{ tmpfs = { }, bind = {} }]",
        "profile:1:11: mounts[0]: found a table with 2 keys, expects a table with one of `bind`, `tmpfs`, `dir`, `symlink`, `file`, e.g. { dir = { target = \"/data\" } }",
    ),
    (
        "mounts = [{ tmpfs = { target = '/a', mode = '0755' } }]",
        "profile:1:45: mounts[0].tmpfs.mode: found the text \"0755\", expects permission bits, as a number, e.g. 0o700",
    ),
    (
        "workspace = 'owned'",
        "profile:1:13: workspace: found the text \"owned\", expects a table with `owned` or `directory`, e.g. { directory = { path = \"/srv/job\" } }",
    ),
    (
        "workspace.owned = 1",
        "profile:1:19: workspace.owned: found the number 1, expects a table, e.g. { size_bytes = 1073741824 }",
    ),
    (
        "workspace = '/srv/job'",
        "profile:1:13: workspace: found the text \"/srv/job\", expects a table with `owned` or `directory`, e.g. { directory = { path = \"/srv/job\" } }",
    ),
    (
        "workspace.path = '/srv/job'",
        "profile:1:11: unknown key `workspace.path`; did you mean `workspace.directory.path`?",
    ),
    (
        "workspace.directory = { path = '/srv/job', access = 'share' }",
        "profile:1:53: workspace.directory.access: unknown word \"share\"; did you mean \"shared\"? The words are \"as_is\", \"shared\", \"mapped\"",
    ),
    (
        "proc = 'masked_'",
        "profile:1:8: proc: unknown word \"masked_\"; did you mean \"masked\"? The words are \"read_only\", \"minimal\", \"masked\", \"none\"",
    ),
    (
        "proc = 'full'",
        "profile:1:8: proc: unknown word \"full\"; the words are \"read_only\", \"minimal\", \"masked\", \"none\"",
    ),
    (
        "proc = 1",
        "profile:1:8: proc: found the number 1, expects \"read_only\", \"minimal\", \"masked\" or \"none\", e.g. \"minimal\"",
    ),
    (
        "proc = { masked = {} }",
        "profile:1:8: proc: found a table, expects \"read_only\", \"minimal\", \"masked\" or \"none\", e.g. \"minimal\"",
    ),
    (
        "seccomp = 'of'",
        "profile:1:11: seccomp: unknown word \"of\"; did you mean \"off\"? The words are \"strict\", \"default\", \"compat\", \"off\"",
    ),
    (
        "\n\ntmp_bytes = \"64M\"\n",
        "profile:3:13: tmp_bytes: found the text \"64M\", expects a number of bytes, e.g. 67108864",
    ),
    (
        "tmp_bytes = 1.5",
        "profile:1:13: tmp_bytes: found the number 1.5, expects a number of bytes, e.g. 67108864",
    ),
    (
        "tmp_bytes = -1",
        "profile:1:13: tmp_bytes: found the number -1, expects a number of bytes, e.g. 67108864",
    ),
    (
        "tmp_bytes = 99999999999999999999999999999999999999999999999999",
        "profile:1:13: tmp_bytes: found the number 1e50, expects a number of bytes, e.g. 67108864",
    ),
    (
        "hostname = 1",
        "profile:1:12: hostname: found the number 1, expects a text of 1 to 64 bytes, e.g. \"box\"",
    ),
    (
        "hostname = 1979-05-27",
        "profile:1:12: hostname: found the date 1979-05-27, expects a text of 1 to 64 bytes, e.g. \"box\"",
    ),
    (
        "hostname = true",
        "profile:1:12: hostname: found true, expects a text of 1 to 64 bytes, e.g. \"box\"",
    ),
    (
        "env = ['A=b']",
        "profile:1:7: env: found a list, expects a table of texts, e.g. { TZ = \"UTC\" }",
    ),
    ("env.TZ = 1", "profile:1:10: env.TZ: found the number 1, expects a text, e.g. \"UTC\""),
    (
        "ro_binds = '/a'",
        "profile:1:12: ro_binds: found the text \"/a\", expects a list of binds, each SOURCE or SOURCE:TARGET, e.g. [\"/srv/data:/data\"]",
    ),
    (
        "ro_binds = ['/a', 1]",
        "profile:1:19: ro_binds[1]: found the number 1, expects a bind, SOURCE or SOURCE:TARGET, e.g. \"/srv/data:/data\"",
    ),
    (
        "ro_binds = ['/a', '/a:/b:/c']",
        "profile:1:19: ro_binds[1]: a bind has one colon at most; write a colon within a path as \\:",
    ),
    (
        "venv = ['/a']",
        "profile:1:8: venv: found a list, expects an absolute path on the host, e.g. \"/opt/analysis-env\"",
    ),
    (
        "limits = 5",
        "profile:1:10: limits: found the number 5, expects a table, e.g. { nproc = 64 }",
    ),
    (
        "limits.nproc = 'many'",
        "profile:1:16: limits.nproc: found the text \"many\", expects a number of processes and threads, or \"unlimited\", e.g. 64",
    ),
    (
        "limits.nproc = -1",
        "profile:1:16: limits.nproc: found the number -1, expects a number of processes and threads, or \"unlimited\", e.g. 64",
    ),
    (
        "pty_max = 5000000000",
        "profile:1:11: pty_max: found the number 5000000000, expects a number of pseudo-terminals, 0 to 1048576, e.g. 4",
    ),
    (
        "= 1\n",
        "profile:1:1: not TOML: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`",
    ),
    ("hostname = 'a'\nhostname = 'b'\n", "profile:2:1: not TOML: duplicate key"),
    (
        "hostname = ''\n",
        "profile:1:12: hostname: is 0 bytes long; 1 to 64 are allowed [hostname-length]",
    ),
    ("tmp_bytes = 0\n", "profile:1:13: tmp_bytes: 0 is less than 4096 [too-small]"),
    ("\n[limits]\nnproc = 0\n", "profile:3:9: limits.nproc: 0 is less than 1 [too-small]"),
    (
        "\n\nmounts = [{ dir = { target = '/a' } }, { tmpfs = { target = '/a', size_bytes = 1 } }]\n",
        "profile:3:80: mounts[1].size_bytes: 1 is less than 4096 [too-small]",
    ),
    (
        "workspace.owned.size_bytes = 1\n",
        "profile:1:30: workspace.size_bytes: 1 is less than 4096 [too-small]",
    ),
    (
        "ro_binds = ['/a', 'b']\n",
        "profile:1:19: ro_binds[1].source: b is relative; write an absolute path [path-relative]",
    ),
    (
        "root = 'host_view'\nrootfs = '/a'",
        "profile:2:10: rootfs: a rootfs and `root = \"host_view\"` exclude one another [rootfs-with-host-view]",
    ),
];

const JSON: &[Row] = &[
    ("{\n\"nproc\": 1\n}", "profile:2:1: unknown key `nproc`; did you mean `limits.nproc`?"),
    (
        "{\"tmp_bytes\":\n \"64M\"}",
        "profile:2:2: tmp_bytes: found the text \"64M\", expects a number of bytes, e.g. 67108864",
    ),
    (
        "{\"workspace\":1}",
        "profile:1:14: workspace: found the number 1, expects a table with `owned` or `directory`, e.g. {\"directory\":{\"path\":\"/srv/job\"}}",
    ),
    ("[1]", "profile:1:1: found a list, expects a table of keys, e.g. {\"hostname\":\"box\"}"),
    ("3", "profile:1:1: found the number 3, expects a table of keys, e.g. {\"hostname\":\"box\"}"),
    ("{\"hostname\": \"\\ud800\"}", "profile:1:14: not JSON: unexpected end of hex escape"),
    (
        "{\"hostname\": \"a\",\n\"hostname\": 1}",
        "profile:2:1: the key `hostname` comes twice in one table; keep one",
    ),
    (
        "{\"env\": {\"A\": \"a\",\n\"A\": \"b\"}}",
        "profile:2:1: the key `A` comes twice in one table; keep one",
    ),
    ("{\"hostname\": nul}", "profile:1:17: not JSON: expected ident"),
    (
        "{\"hostname\": null}",
        "profile:1:14: hostname: found null, expects a text of 1 to 64 bytes, e.g. \"box\"",
    ),
    ("{\"venv\": null}", "accepted"),
    (
        "{\"hostname\": \"\\u001b[31m\"}",
        "profile:1:14: hostname: holds '\\u{1b}' [hostname-character]",
    ),
    ("{\"\\u001b[31m\": 1}", "profile:1:2: unknown key `\\u{1b}[31m`; the keys there are ALL"),
    (
        "{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
        "profile:1:14: nested more than 8 deep, which no profile is",
    ),
    (
        "{\"mounts\": [{\"tmpfs\": {\"target\": \"/a\", \"mode\": \"0o700\"}}]}",
        "profile:1:48: mounts[0].tmpfs.mode: found the text \"0o700\", expects permission bits, as a number, e.g. 448",
    ),
    ("{", "profile:1:1: not JSON: EOF while parsing an object"),
];

/// Reads a text of one format.
type Read = fn(&str) -> Result<SandboxProfile, ProfileFileError>;

#[test]
fn each_wrong_text_gets_its_sentence() {
    let formats = [
        (TOML, SandboxProfile::from_toml_str as Read),
        (JSON, SandboxProfile::from_json_str as Read),
    ];
    let rows = formats.iter().flat_map(|(rows, read)| rows.iter().map(move |row| (row, read)));
    let told = rows.map(|((text, words), read)| (*text, sentence(read(text)), *words));
    let wrong: Vec<_> = told.filter(|(_, told, words)| told != words).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
