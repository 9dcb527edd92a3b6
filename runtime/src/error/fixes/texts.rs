//! The texts of every cause's fixes: one function a cause, one table. Decides nothing.

use std::path::Path;

use super::{Fix, Place, apparmor};

/// A cause's name and what to paste for this executable.
type Row = (&'static str, fn(&Path) -> Vec<Fix>);

pub(super) const TABLE: [Row; 22] = [
    ("user-namespaces-limited", |_| user_namespaces_limited()),
    ("process-limit", |_| process_limit()),
    ("chroot", |_| chroot()),
    ("unprivileged-userns-clone", |_| {
        vec![sysctl("lets every user make user namespaces", "kernel.unprivileged_userns_clone", 1)]
    }),
    ("outer-seccomp", |_| outer_seccomp()),
    ("apparmor-userns", apparmor_userns),
    ("cgroup-apart", |_| delegation()),
    ("namespaces-refused", |_| namespaces_refused()),
    ("proc-read-only", |_| proc_read_only()),
    ("proc-masked", |_| proc_masked()),
    ("memfd-noexec", |_| memfd_noexec()),
    ("exec-forbidden", |_| vec![installed_launcher(), private_directory()]),
    ("source-missing", |_| {
        vec![Fix::new(
            Place::Profile,
            "names only paths that stay; a list of optional paths passes over what is missing",
            "ro_binds = [\"/path/that/may/be/missing\"]",
        )]
    }),
    ("source-swapped", |_| {
        vec![Fix::new(
            Place::Host,
            "keeps others from writing to the directories that lead to the path",
            "chmod go-w /each/directory/of/the/path",
        )]
    }),
    ("workspace-file-system", |_| {
        vec![Fix::new(
            Place::Profile,
            "gives the guest the owner's own ids, which it then shares with its other processes",
            "workspace.directory = { path = \"/the/workspace\", access = \"as_is\" }\n\
             host_uid = 1000 # the directory's owner\nhost_gid = 1000 # and group",
        )]
    }),
    ("old-kernel", |_| old_kernel()),
    ("mount-forbidden", |_| mount_forbidden()),
    ("keyring-quota", |_| {
        vec![sysctl("lets every user have more keys", "kernel.keys.maxkeys", 2000)]
    }),
    ("landlock-layers", |_| {
        vec![Fix::new(
            Place::Profile,
            "does without Landlock; the mounts and the filter hold as before",
            "landlock = \"off\"",
        )]
    }),
    ("too-many-runs", |_| {
        vec![Fix::new(
            Place::Service,
            "a second sandbox keeps as many runs again",
            "Sandbox::builder(profile).build()?",
        )]
    }),
    ("descriptor-limit", |_| descriptor_limit()),
    ("memory", |_| memory()),
];

/// One setting of the kernel, for good.
fn sysctl(what: &str, name: &str, value: u64) -> Fix {
    const FILE: &str = "/etc/sysctl.d/60-postern.conf";
    Fix::new(Place::Host, what, format!("{name} = {value}\n"))
        .in_file(FILE, format!("sysctl -p {FILE}"))
}

/// A control group for the service to make others in.
pub(super) fn delegation() -> Vec<Fix> {
    vec![
        unit(
            "gives the service a control group to make others in, and puts it in a leaf of that",
            "Delegate=yes\nDelegateSubgroup=service",
        ),
        Fix::new(
            Place::Docker,
            "gives the container's root a writable view of its own control groups",
            "--privileged --cgroupns=private",
        ),
        Fix::new(
            Place::Profile,
            "lets the service be moved to a leaf where it is alone in its delegated group",
            "cgroup.service = \"move\"",
        ),
    ]
}

/// Lines of the service's unit.
fn unit(what: &str, lines: &str) -> Fix {
    Fix::new(Place::Systemd, what, format!("[Service]\n{lines}")).in_file(
        "/etc/systemd/system/SERVICE.service.d/postern.conf",
        "systemctl daemon-reload && systemctl restart SERVICE",
    )
}

/// Lines of a container's `securityContext`, beneath lines of the pod.
fn pod(what: &str, pod: &[&str], context: &[&str]) -> Fix {
    let mut text = String::from("spec:\n");
    for line in pod {
        text.extend(["  ", line, "\n"]);
    }
    text.push_str("  containers:\n    - name: NAME\n      securityContext:\n");
    for line in context {
        text.extend(["        ", line, "\n"]);
    }
    Fix::new(Place::Kubernetes, what, text)
}

fn docker(what: &str, flags: &str) -> Fix {
    Fix::new(Place::Docker, what, flags)
}

const SECCOMP: [&str; 2] = ["seccompProfile:", "  type: Unconfined"];
const APPARMOR: [&str; 2] = ["appArmorProfile:", "  type: Unconfined"];
const UNMASKED: &str = "procMount: Unmasked";
/// `procMount: Unmasked` is accepted only with a user namespace of the pod's own.
const OWN_USERS: &str = "hostUsers: false";

fn user_namespaces_limited() -> Vec<Fix> {
    vec![sysctl(
        "lets this machine have user namespaces; where it is a container's own limit, set it in \
         the container",
        "user.max_user_namespaces",
        15_000,
    )]
}

fn process_limit() -> Vec<Fix> {
    vec![
        unit("lets the service have more processes", "TasksMax=8192\nLimitNPROC=8192\n"),
        docker("lets the container have more processes", "--pids-limit 8192 --ulimit nproc=8192"),
        Fix::new(
            Place::Service,
            "starts it with a higher limit",
            "prlimit --nproc=8192 -- SERVICE",
        ),
        sysctl("lets the machine have more processes", "kernel.threads-max", 65_536),
    ]
}

fn descriptor_limit() -> Vec<Fix> {
    vec![
        unit("lets the service have more descriptors", "LimitNOFILE=65536\n"),
        docker("lets the container have more descriptors", "--ulimit nofile=65536"),
        fewer_runs("descriptors, four or five a run"),
        sysctl("lets the machine have more descriptors", "fs.file-max", 1_000_000),
    ]
}

fn memory() -> Vec<Fix> {
    vec![
        unit("lets the service have more memory", "MemoryMax=4G\n"),
        docker("lets the container have more memory", "--memory 4g"),
        fewer_runs("memory"),
    ]
}

fn fewer_runs(what: &str) -> Fix {
    Fix::new(
        Place::Service,
        &format!("bounds how many runs want {what} at once; the others wait for their turn"),
        "Sandbox::builder(profile).ceiling(Ceiling::new(64))",
    )
}

fn chroot() -> Vec<Fix> {
    vec![
        unit("gives the service a root of its own by pivot_root", "RootDirectory=/path/of/it\n"),
        Fix::new(
            Place::Service,
            "starts it with that root in a mount namespace of its own",
            "unshare --mount sh -c 'mount --rbind ROOT ROOT && cd ROOT && mkdir -p .old && \
             pivot_root . .old && umount -l /.old && exec SERVICE'",
        ),
    ]
}

fn outer_seccomp() -> Vec<Fix> {
    let what = "takes the engine's filter from the service, and what would fail next: its AppArmor \
                profile and the masks over /proc; every guest still runs under postern's own filter";
    let context = [SECCOMP[0], SECCOMP[1], APPARMOR[0], APPARMOR[1], UNMASKED];
    vec![
        docker(
            what,
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt \
             systempaths=unconfined",
        ),
        pod(what, &[OWN_USERS], &context),
        unit(
            "takes the unit's filter from the service",
            "RestrictNamespaces=no\nSystemCallFilter=\n",
        ),
    ]
}

fn apparmor_userns(executable: &Path) -> Vec<Fix> {
    let everybody =
        "gives up the restriction for every program of this machine; prefer the profile";
    vec![
        apparmor::userns(executable),
        sysctl(everybody, "kernel.apparmor_restrict_unprivileged_userns", 0),
    ]
}

fn namespaces_refused() -> Vec<Fix> {
    vec![
        unit("lets the service make namespaces", "RestrictNamespaces=no\nRootDirectory=\n"),
        docker(
            "takes the security modules from the service",
            "--security-opt apparmor=unconfined --security-opt label=disable",
        ),
        pod("takes AppArmor from the service", &[], &APPARMOR),
    ]
}

fn proc_read_only() -> Vec<Fix> {
    vec![
        Fix::new(
            Place::Host,
            "makes /proc writable where the service is",
            "mount -o remount,rw /proc",
        ),
        docker("leaves /proc as the kernel has it", "--security-opt systempaths=unconfined"),
        pod("leaves /proc as the kernel has it", &[OWN_USERS], &[UNMASKED]),
    ]
}

fn proc_masked() -> Vec<Fix> {
    let what = "uncovers /proc for the service; guests still get a read-only, masked one";
    vec![
        Fix::new(Place::Profile, "gives guests no /proc at all", "proc = \"none\""),
        docker(what, "--security-opt systempaths=unconfined"),
        pod(what, &[OWN_USERS], &[UNMASKED]),
        unit(
            what,
            "ProtectKernelTunables=no\nProtectKernelLogs=no\nProtectControlGroups=no\n\
             ProtectProc=default\nProcSubset=all\n",
        ),
    ]
}

fn memfd_noexec() -> Vec<Fix> {
    vec![
        sysctl(
            "lets a memfd that asks for it be executed, as the launcher's does",
            "vm.memfd_noexec",
            1,
        ),
        installed_launcher(),
    ]
}

fn installed_launcher() -> Fix {
    Fix::new(
        Place::Service,
        "starts the launcher from a file that only root can change and a rule can name: the bytes \
         of this version, owned by root, mode 755",
        "POSTERN_LAUNCHER=/usr/local/libexec/postern-launcher",
    )
}

fn private_directory() -> Fix {
    Fix::new(
        Place::Service,
        "lets the launcher be started from a directory that is not mounted noexec",
        "TMPDIR=/path/that/allows/exec",
    )
}

fn old_kernel() -> Vec<Fix> {
    let what = "lets the mount calls of Linux 5.12 through, if a filter and not the kernel is old";
    vec![
        Fix::new(Place::Host, "is what postern needs", "Linux 5.12 or later"),
        docker(what, "--security-opt seccomp=unconfined"),
        pod(what, &[], &SECCOMP),
    ]
}

fn mount_forbidden() -> Vec<Fix> {
    vec![
        docker(
            "takes the engine's AppArmor profile, or SELinux's label, from the service",
            "--security-opt apparmor=unconfined --security-opt label=disable",
        ),
        pod("takes the engine's AppArmor profile from the service", &[], &APPARMOR),
        unit("takes the unit's AppArmor profile from the service", "AppArmorProfile=\n"),
    ]
}

/// For uid 0 without what it takes to give the guest another id.
pub(super) fn map_capabilities() -> Vec<Fix> {
    let what = "lets the service give its guests another uid than its own";
    let capabilities = ["capabilities:", "  add: [SETUID, SETGID, SETFCAP]"];
    vec![
        docker(what, "--cap-add SETUID --cap-add SETGID --cap-add SETFCAP"),
        pod(what, &[], &capabilities),
        unit(what, "CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_SETFCAP\n"),
        Fix::new(
            Place::Service,
            "starts it as a user of its own, whose uid its guests then share",
            "setpriv --reuid UID --regid GID --clear-groups -- SERVICE",
        ),
    ]
}
