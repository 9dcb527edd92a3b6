//! Every rule that refuses a profile, and at least one profile for each.

use postern::host::FileFact;
use postern::plan::resolve;
use postern::profile::{ProfileFileError, SandboxProfile};

use crate::hosts::{self, Machine};
use crate::{odd_hosts, pythons};

/// A rule, the field that it names, a profile, and the host it meets.
type Row = (&'static str, &'static str, &'static str, fn() -> Machine);

/// What is wrong on every host.
const TEXT: [Row; 48] = [
    ("empty", "stubs[0]", "stubs = ['']", hosts::debian),
    ("empty", "rootfs", "rootfs = ''", hosts::debian),
    ("empty", "python", "python = ''", hosts::debian),
    ("empty", "mounts[0].to", "mounts = [{ symlink = { target = '/a', to = '' } }]", hosts::debian),
    ("nul-byte", "ro_binds[0].target", r#"ro_binds = ["/usr:/a\u0000"]"#, hosts::debian),
    ("nul-byte", "workspace", r#"workspace.directory.path = "/a\u0000""#, hosts::debian),
    ("path-relative", "ro_binds[0].target", "ro_binds = ['/usr:usr']", hosts::debian),
    ("path-relative", "stubs[1]", "stubs = ['/a', 'b']", hosts::debian),
    ("path-relative", "cwd", "cwd = 'a'", hosts::debian),
    ("path-relative", "python", "python = './python'", hosts::debian),
    ("path-dots", "rw_binds[0].target", "rw_binds = ['/usr:/a/../usr']", hosts::debian),
    ("path-dots", "mounts[0].target", "mounts = [{ dir = { target = '/./a' } }]", hosts::debian),
    ("path-dots", "venv.target", "venv = '/opt/../venv'", hosts::debian),
    ("path-too-long", "cwd", "cwd = '/LONG'", hosts::debian),
    ("target-reserved", "ro_binds[0].target", "ro_binds = ['/usr:/']", hosts::debian),
    ("target-reserved", "ro_binds[0].target", "ro_binds = ['/usr:/proc']", hosts::debian),
    ("target-reserved", "rw_binds[0].target", "rw_binds = ['/usr:/proc/sys']", hosts::debian),
    ("target-reserved", "ro_binds[0].target", "ro_binds = ['/usr:/dev/']", hosts::debian),
    ("target-reserved", "ro_binds[0].target", "ro_binds = ['/usr:/run']", hosts::debian),
    ("target-reserved", "ro_binds[0].target", "ro_binds = ['/usr:/run/postern']", hosts::debian),
    ("target-reserved", "ro_binds[0].target", "ro_binds = ['/usr:/workspace']", hosts::debian),
    (
        "target-reserved",
        "mounts[0].target",
        "mounts = [{ tmpfs = { target = '/dev/shm' } }]",
        hosts::debian,
    ),
    (
        "target-duplicate",
        "rw_binds[0]",
        "ro_binds = ['/usr:/a']\nrw_binds = ['/etc:/a/']",
        hosts::debian,
    ),
    (
        "target-duplicate",
        "required_ro_binds[0]",
        "venv = '/opt/analysis-env'\nrequired_ro_binds = ['/opt/analysis-env']",
        pythons::with_venv,
    ),
    ("stub-name", "stubs[1]", "stubs = ['/a/one.py', '/b/one.py']", hosts::debian),
    ("stub-name", "stubs[0]", "stubs = ['/']", hosts::debian),
    (
        "rootfs-with-host-view",
        "rootfs",
        "rootfs = '/opt/guest-root'\nroot = 'host_view'",
        hosts::with_rootfs,
    ),
    ("id-impossible", "guest_uid", "guest_uid = 4294967295", hosts::debian),
    ("id-impossible", "host_gid", "host_gid = 4294967295", hosts::debian),
    ("host-id-zero", "host_uid", "host_uid = 0", hosts::debian),
    ("host-id-zero", "host_gid", "host_gid = 0", hosts::debian),
    ("too-small", "limits.nofile", "limits.nofile = 0", hosts::debian),
    ("too-small", "limits.nproc", "limits.nproc = 0", hosts::debian),
    (
        "too-small",
        "limits.address_space_bytes",
        "limits.address_space_bytes = 65535",
        hosts::debian,
    ),
    ("too-small", "tmp_bytes", "tmp_bytes = 0", hosts::debian),
    ("too-small", "workspace.size_bytes", "workspace.owned.size_bytes = 0", hosts::debian),
    ("too-small", "oom_score_adj", "oom_score_adj = -1", hosts::debian),
    ("too-large", "oom_score_adj", "oom_score_adj = 1001", hosts::debian),
    ("too-large", "shm_inodes", "shm_inodes = 4294967297", hosts::debian),
    (
        "too-large",
        "mounts[0].size_bytes",
        "mounts = [{ tmpfs = { target = '/a', size_bytes = 17592186044417 } }]",
        hosts::debian,
    ),
    (
        "mode-bits",
        "mounts[0].mode",
        "mounts = [{ dir = { target = '/a', mode = 65536 } }]",
        hosts::debian,
    ),
    ("env-name", "env", "env = { '' = '' }", hosts::debian),
    ("env-name", "env", "env = { 'A=B' = '' }", hosts::debian),
    ("env-nul-byte", "env", r#"env = { A = "\u0000" }"#, hosts::debian),
    ("hostname-length", "hostname", "hostname = 'LONG'", hosts::debian),
    ("hostname-character", "hostname", r#"hostname = "a\u0000b""#, hosts::debian),
    ("policy-syntax", "seccomp_policy", "seccomp_policy = '{'", hosts::debian),
    (
        "policy-loosens",
        "seccomp_policy",
        r#"seccomp_policy = '''{"a": {"mismatch_action": "trap", "match_action": "allow",
            "filter": [{"syscall": "execve"}, {"syscall": "mount"}]}}'''"#,
        hosts::debian,
    ),
];

/// Debian with a plain file, a directory that nobody but its owner may look into, a dangling
/// link, a link to a device's place, and a bind source with a link that leaves it.
fn odd() -> Machine {
    hosts::with_models()
        .file("/srv/file")
        .fact("/srv/secret", FileFact::Unreachable { errno: libc::EACCES })
        .fact("/srv/dangling", FileFact::Dangling { link: "nowhere".into() })
        .link("/srv/models/0/out", "/srv/models/1", "/srv/models/1")
        .link("/srv/root", "/", "/usr")
        .with(|host| {
            let mut root = host.files["/usr".as_ref() as &std::path::Path].clone();
            let FileFact::Found(found) = &mut root else { panic!("{root:?}") };
            found.canonical = "/".into();
            host.files.insert("/srv/root".into(), root.clone());
            let FileFact::Found(found) = &mut root else { panic!("{root:?}") };
            found.canonical = "/proc/1".into();
            host.files.insert("/srv/process".into(), root);
        })
}

const MAPPED: &str = "workspace.directory = { path = '/srv/job', access = 'mapped' }";

/// What is wrong on this host.
const GROUP: &str = "cgroup = { need = 'require', pids = 9, io_weight = 9 }";

const HOST: [Row; 66] = [
    ("source-missing", "required_ro_binds[0].source", "required_ro_binds = ['/srv/nothing']", odd),
    ("source-missing", "rw_binds[0].source", "rw_binds = ['/srv/dangling']", odd),
    (
        "source-missing",
        "mounts[0].source",
        "mounts = [{ bind = { source = '/srv/nothing', target = '/a' } }]",
        odd,
    ),
    ("source-missing", "stubs[0]", "stubs = ['/srv/nothing']", odd),
    ("source-missing", "venv", "venv = '/srv/nothing'", odd),
    ("source-missing", "rootfs", "rootfs = '/srv/nothing'", odd),
    ("source-missing", "workspace", "workspace.directory.path = '/srv/nothing'", odd),
    ("source-unreachable", "ro_binds[0].source", "ro_binds = ['/srv/secret']", odd),
    ("source-root", "ro_binds[0].source", "ro_binds = ['/srv/root']", odd),
    ("source-root", "workspace", "workspace.directory.path = '/srv/root'", odd),
    ("source-proc", "ro_binds[0].source", "ro_binds = ['/srv/process']", odd),
    ("not-directory", "workspace", "workspace.directory.path = '/srv/file'", odd),
    ("not-directory", "rootfs", "rootfs = '/srv/file'", odd),
    ("not-directory", "cwd", "cwd = '/etc/passwd'", odd),
    ("not-directory", "cwd", "cwd = '/etc/services/a'", odd),
    ("target-missing", "ro_binds[0].target", "ro_binds = ['/srv/file:/usr/share/nothing']", odd),
    (
        "target-missing",
        "rw_binds[0].target",
        "ro_binds = ['/srv/models/0:/a']\nrw_binds = ['/srv/models/1:/a/nothing']",
        odd,
    ),
    (
        "target-missing",
        "rw_binds[0].target",
        "root = 'host_view'\nrw_binds = ['/srv/file:/srv/no']",
        hosts_view,
    ),
    ("target-kind", "ro_binds[0].target", "ro_binds = ['/srv/models/0:/etc/passwd']", odd),
    ("target-kind", "ro_binds[0].target", "ro_binds = ['/srv/file:/usr/bin']", odd),
    ("target-kind", "ro_binds[0].target", "ro_binds = ['/srv/file:/etc/hosts/a']", odd),
    (
        "target-behind-link",
        "ro_binds[1].target",
        "ro_binds = ['/srv/models/0:/a', '/srv/models/2:/a/out']",
        odd,
    ),
    (
        "target-hidden",
        "ro_binds[0].target",
        "ro_binds = ['/srv/file:/tmp/file']\nmounts = [{ tmpfs = { target = '/tmp' } }]",
        odd,
    ),
    (
        "target-taken",
        "mounts[0]",
        "mounts = [{ symlink = { target = '/bin', to = 'usr/sbin' } }]",
        odd,
    ),
    ("target-taken", "mounts[0]", "mounts = [{ file = { target = '/etc', contents = '' } }]", odd),
    ("target-not-ours", "mounts[0]", "mounts = [{ dir = { target = '/usr/share/new' } }]", odd),
    (
        "target-not-ours",
        "mounts[0]",
        "mounts = [{ file = { target = '/usr/share/new', contents = '' } }]",
        odd,
    ),
    ("cwd-missing", "cwd", "cwd = '/nowhere'", odd),
    ("cwd-missing", "cwd", "cwd = '/usr/share/nowhere'", odd),
    ("cwd-missing", "cwd", "cwd = '/tmp/nowhere'", odd),
    ("venv-without-python", "venv", "venv = '/srv/models/0'", odd),
    ("venv-python-dangling", "venv", "venv = '/opt/analysis-env'", pythons::dangling),
    (
        "venv-python-dangling",
        "venv",
        "venv = '/opt/analysis-env'\nrootfs = '/opt/guest-root'",
        pythons::dangling_in_rootfs,
    ),
    ("venv-python-hidden", "venv", "venv = '/opt/analysis-env'", pythons::alone),
    ("venv-python-hidden", "venv", "venv = '/opt/analysis-env'", pythons::in_home),
    ("venv-python-hidden", "venv", "venv = '/opt/analysis-env'", pythons::in_bare_home),
    ("venv-python-hidden", "venv", "venv = '/opt/analysis-env'", pythons::in_store),
    ("venv-python-hidden", "venv", "venv = '/opt/analysis-env'", pythons::in_tmp),
    ("venv-python-forbidden", "venv", "venv = '/opt/analysis-env'", pythons::for_root),
    ("venv-python-forbidden", "venv", "venv = '/opt/analysis-env'", pythons::closed),
    ("venv-python-forbidden", "venv", "venv = '/opt/analysis-env'", pythons::closed_venv),
    ("source-unreachable", "venv", "venv = '/opt/analysis-env'", odd_hosts::unreachable_python),
    ("usr-missing", "rootfs", "", odd_hosts::without_usr),
    ("device-missing", "root", "", odd_hosts::without_null),
    ("missing-capabilities", "host_uid", "", odd_hosts::without_capabilities),
    ("no-id-range", "host_uid", "", odd_hosts::single_id),
    ("no-id-range", "host_gid", "", odd_hosts::ids_taken),
    ("host-id-unmapped", "host_uid", "host_uid = 7", odd_hosts::single_id),
    ("host-id-not-own", "host_uid", "host_uid = 1001", hosts::desktop),
    ("host-id-not-own", "host_uid", "host_uid = 1001", hosts::with_subordinates),
    ("host-id-not-own", "host_gid", "host_uid = 100000\nhost_gid = 1000", hosts::with_subordinates),
    ("shared-uid", "shared_uid", "shared_uid = 'refuse'", hosts::desktop),
    (
        "shared-uid",
        "shared_uid",
        "shared_uid = 'refuse'\nworkspace.directory.path = '/srv/job'",
        hosts::with_own_checkout,
    ),
    ("shared-groups", "shared_groups", "shared_groups = 'refuse'", hosts::desktop),
    ("cgroup-unavailable", "cgroup.io_weight", GROUP, hosts::with_groups),
    ("landlock-too-old", "landlock", "landlock.require = 2", hosts::rootless),
    (
        "workspace-not-writable",
        "workspace",
        "workspace.directory.path = '/srv/job'",
        hosts::with_job,
    ),
    (
        "workspace-not-writable",
        "workspace",
        "workspace.directory.path = '/srv/job'\nhost_uid = 4001",
        hosts::with_job,
    ),
    (
        "workspace-not-writable",
        "workspace",
        "workspace.directory.path = '/srv/job'",
        odd_hosts::desktop_with_job,
    ),
    (
        "workspace-not-owned",
        "workspace",
        "workspace.directory = { path = '/srv/job', access = 'shared' }",
        odd_hosts::desktop_with_job,
    ),
    (
        "workspace-of-root",
        "workspace",
        "seccomp = 'compat'\n\
         workspace.directory = { path = '/srv/job', access = 'mapped' }",
        odd_hosts::roots_job,
    ),
    ("workspace-not-mappable", "workspace", MAPPED, odd_hosts::desktop_with_job),
    ("workspace-not-writable", "workspace", MAPPED, odd_hosts::read_only_job),
    (
        "source-behind-link",
        "ro_binds[0].source",
        "workspace.directory = { path = '/srv/job', access = 'shared' }\n\
         ro_binds = ['/srv/job/data:/data']",
        odd_hosts::planted_job,
    ),
    (
        "source-behind-link",
        "mounts[0].source",
        "rw_binds = ['/srv/job']\n\
         mounts = [{ bind = { source = '/srv/job/data', target = '/data' } }]",
        odd_hosts::planted_job,
    ),
    ("not-probed", "root", "", odd_hosts::unprobed),
];

/// [`odd`] with what a host view mounts on.
fn hosts_view() -> Machine {
    odd().dir("/proc").dir("/dev").dir("/run").dir("/tmp")
}

/// The rule and the field that a profile breaks, and the sentence.
fn refusal((_, _, text, machine): Row) -> (String, String, String) {
    let text = text.replace("LONG", &"x".repeat(300));
    let refusal = match SandboxProfile::from_toml_str(&text) {
        Ok(profile) => {
            let host = machine().facts(&profile);
            resolve(&profile, &host).expect_err(&text)
        }
        Err(ProfileFileError::Refused { source, .. }) => *source,
        Err(other) => panic!("{text}: {other}"),
    };
    (refusal.rule().to_owned(), refusal.field().to_string(), refusal.to_string())
}

#[test]
fn each_rule_names_itself_and_the_field() {
    let mut wrong = Vec::new();
    for row in TEXT.into_iter().chain(HOST) {
        let (rule, field, sentence) = refusal(row);
        let expected = (row.0, row.1);
        let is_framed = sentence.starts_with(&format!("{field}: "))
            && sentence.ends_with(&format!(" [{rule}]"));
        if (rule.as_str(), field.as_str()) != expected || !is_framed {
            wrong.push(format!("{:?}: {sentence}", (row.0, row.1, row.2)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_rule_is_without_a_row() {
    let words = include_str!("../../../runtime/src/error/refusal/words.rs");
    let body = words.split("fn rule").nth(1).unwrap().split("fn field").next().unwrap();
    let rules: Vec<_> = body.lines().filter_map(|line| line.trim().split('"').nth(1)).collect();
    assert!(rules.len() > 40, "{rules:?}");
    let without: Vec<_> = rules
        .into_iter()
        .filter(|rule| !TEXT.iter().chain(&HOST).any(|(name, ..)| name == rule))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn refusals_say_what_to_do() {
    let rows = [
        ("", odd_hosts::without_capabilities as fn() -> Machine, "CAP_SETGID CAP_SETFCAP"),
        ("workspace.directory.path = '/srv/job'", hosts::with_job, "also set as `host_uid`"),
        ("workspace.directory.path = '/srv/job'", odd_hosts::desktop_with_job, "chown it to 1000"),
        (
            "venv = '/opt/analysis-env'",
            pythons::alone,
            "add `required_ro_binds = [\"/opt/tools/bin/python3.12\"]`",
        ),
        (
            "venv = '/opt/analysis-env'",
            pythons::in_home,
            "/home/ada/bin/python3.12, which the guest cannot see: it was installed right into a \
             home directory; if the guest may see it, add `required_ro_binds = \
             [\"/home/ada/bin/python3.12\", \"/home/ada/lib/libpython3.12.so\", \
             \"/home/ada/lib/libpython3.12.so.1.0\", \"/home/ada/lib/python3.12\"]`",
        ),
        ("venv = '/opt/analysis-env'", pythons::in_store, "[\"/nix/store\"]"),
        ("venv = '/opt/analysis-env'", pythons::in_tmp, "[\"/tmp/python\"]"),
        ("venv = '/opt/analysis-env'", pythons::dangling, "leads to /opt/python3.12, which does"),
        (
            "venv = '/opt/analysis-env'\nrootfs = '/opt/guest-root'",
            pythons::dangling_in_rootfs,
            "/usr/bin/python3.11, which does not exist in the rootfs /opt/guest-root",
        ),
        ("venv = '/opt/analysis-env'", pythons::closed, "`chmod a+rX /opt/python3.12`"),
        ("shared_groups = 'refuse'", hosts::desktop, "groups 27 44"),
        ("ro_binds = ['/srv/root']", odd, "host_view"),
    ];
    for (text, machine, words) in rows {
        let (_, _, sentence) = refusal(("", "", text, machine));
        assert!(sentence.contains(words), "{sentence}");
    }
}

/// A profile and the host it meets.
type Allowed = (&'static str, fn() -> Machine);

/// Profiles that come close to a rule and keep it.
#[test]
fn what_is_allowed_is_planned() {
    let rows: [Allowed; 12] = [
        ("ro_binds = ['/srv/nothing', '/srv/dangling']", odd),
        ("ro_binds = ['/usr/../usr:/a']", || hosts::debian().dir("/usr/../usr")),
        ("cwd = '/usr/bin'", odd),
        ("cwd = '/tmp'", odd),
        ("cwd = '/proc/self'", odd),
        ("mounts = [{ dir = { target = '/a/b/c' } }]\ncwd = '/a/b/c'", odd),
        ("mounts = [{ symlink = { target = '/bin', to = 'usr/bin' } }]", odd),
        ("rw_binds = ['/srv/models/0:/workspace/model']", odd),
        ("host_uid = 1000\nhost_gid = 1000", hosts::desktop),
        ("workspace.directory = { path = '/srv/job', access = 'shared' }", hosts::with_job),
        ("venv = '/opt/analysis-env'\nrootfs = '/opt/guest-root'", || {
            let link = "/usr/bin/python3".into();
            hosts::with_rootfs()
                .dir("/opt/analysis-env")
                .dir("/opt/analysis-env/bin")
                .fact("/opt/analysis-env/bin/python", FileFact::Dangling { link })
        }),
        ("hostname = 'x'\nlimits.nproc = 1", odd),
    ];
    for (text, machine) in rows {
        let profile = SandboxProfile::from_toml_str(text).unwrap();
        let host = machine().facts(&profile);
        resolve(&profile, &host).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    }
}
