//! What a finding is, and the closed list of them; judges nothing.

use core::fmt;

use serde::{Serialize, Serializer};

/// How a wall stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// As the profile asks, by what the kernel says or by a step without which nothing launches.
    Enforced,
    /// Something holds, and less than on the best host.
    Weaker,
    /// Not as the profile asks. One such finding, and the report as a whole is not ok.
    Failed,
    /// The profile, or this version, does not use it.
    NotUsed,
    /// Nothing could be seen, mostly because nothing was launched.
    Unknown,
}

impl Status {
    /// One word for it, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Weaker => "weaker",
            Self::Failed => "failed",
            Self::NotUsed => "not-used",
            Self::Unknown => "unknown",
        }
    }
}

/// One enum, one table of its names.
macro_rules! names {
    ($($variant:ident $name:literal $meaning:literal),* $(,)?) => {
        /// What a finding is about. Its name is stable; later versions may add some.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Name {
            $(#[doc = $meaning] $variant,)*
        }

        impl Name {
            /// Every one, in the order of a report.
            pub const ALL: &'static [Name] = &[$(Name::$variant),*];

            /// The name in reports and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

names! {
    Launch "launch" "Whether a sandbox for the profile can be launched and verified.",
    Program "program" "Whether a program runs in it.",
    Kernel "kernel" "Release and architecture.",
    NamespaceUser "namespace-user" "Ids and capabilities of the run's own.",
    NamespaceMount "namespace-mount" "A mount tree of the run's own.",
    NamespacePid "namespace-pid" "Processes of the run alone.",
    NamespaceNet "namespace-net" "A network of the run's own.",
    NamespaceIpc "namespace-ipc" "System V IPC and message queues of the run's own.",
    NamespaceUts "namespace-uts" "A hostname of the run's own.",
    NamespaceCgroup "namespace-cgroup" "A view of control groups of the run's own.",
    KernelUid "kernel-uid" "The guest's uid and gid as the host's kernel sees them.",
    Groups "groups" "Supplementary groups of the service that the guest keeps.",
    Root "root" "Whether the root is read-only.",
    Mounts "mounts" "Every mount: which can be written to, and set-id bits.",
    Proc "proc" "What the guest's `/proc` is.",
    Capabilities "capabilities" "All five capability sets.",
    Securebits "securebits" "Whether exec or a change of uid could give a capability back.",
    NoNewPrivs "no-new-privs" "Whether set-id programs give privileges.",
    Seccomp "seccomp" "The system-call filter.",
    Landlock "landlock" "The kernel's Landlock, a second wall around files, sockets and signals.",
    RlimitCore "rlimit-core" "Core dumps.",
    RlimitNofile "rlimit-nofile" "Open descriptors of one process.",
    RlimitFsize "rlimit-fsize" "Bytes of one file.",
    RlimitMemlock "rlimit-memlock" "Bytes of locked memory.",
    RlimitSigpending "rlimit-sigpending" "Queued signals.",
    RlimitMsgqueue "rlimit-msgqueue" "Bytes in POSIX message queues.",
    RlimitNproc "rlimit-nproc" "Processes and threads, and what they are counted by.",
    RlimitAs "rlimit-as" "Bytes of one process's address space.",
    RlimitStack "rlimit-stack" "Bytes of one process's stack.",
    RlimitCpu "rlimit-cpu" "Seconds of processor time of one process.",
    LimitUserNamespaces "limit-user-namespaces" "User namespaces that a guest can make: none.",
    LimitInotify "limit-inotify" "Inotify instances and watches of all runs of a sandbox.",
    LimitIpc "limit-ipc" "System V and POSIX IPC objects of one run.",
    Cgroup "cgroup" "A control group of each run's own.",
    Memory "memory" "Memory of a run as a whole.",
    Cpu "cpu" "Processor time of a run as a whole.",
    Pids "pids" "Processes and threads of a run as a whole.",
    Workspace "workspace" "Whether the workspace is bounded.",
    Launcher "launcher" "Where the launcher's executable comes from.",
    Loopback "loopback" "Whether 127.0.0.1 works in the run's own network.",
    Interpreter "interpreter" "The profile's Python, and its version.",
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about.
    pub name: Name,
    /// How that stands.
    pub status: Status,
    /// What was seen.
    pub detail: String,
    /// Why it is not better; `None` where nothing is to be explained.
    pub why: Option<String>,
    /// What to do about it, as text to paste or a sentence.
    pub fix: Option<String>,
}

/// Every finding there is, each unknown until something is said about it.
#[derive(Debug)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn new() -> Findings {
        let unknown = |name: &Name| Finding {
            name: *name,
            status: Status::Unknown,
            detail: "not seen: nothing was launched".to_owned(),
            why: None,
            fix: None,
        };
        Findings(Name::ALL.iter().map(unknown).collect())
    }

    /// Says it; what was said before about it is gone.
    pub(super) fn say(&mut self, name: Name, status: Status, detail: impl Into<String>) {
        self.put(Finding { name, status, detail: detail.into(), why: None, fix: None });
    }

    /// [`Findings::say`], with the reason and what to do.
    pub(super) fn explain(
        &mut self,
        name: Name,
        (status, detail): (Status, String),
        why: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let (why, fix) = (Some(why.into()), Some(fix.into()));
        self.put(Finding { name, status, detail, why, fix });
    }

    fn put(&mut self, finding: Finding) {
        if let Some(place) = self.0.iter_mut().find(|other| other.name == finding.name) {
            *place = finding;
        }
    }

    pub(super) fn any_failed(&self) -> bool {
        self.0.iter().any(|finding| finding.status == Status::Failed)
    }

    pub(super) fn status_of(&self, name: Name) -> Option<Status> {
        self.0.iter().find(|finding| finding.name == name).map(|finding| finding.status)
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_plain_and_each_is_another() {
        let names: BTreeSet<_> = Name::ALL.iter().map(|name| name.as_str()).collect();
        assert_eq!(names.len(), Name::ALL.len());
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(names.iter().all(|name| name.chars().all(is_plain)), "{names:?}");
    }

    #[test]
    fn a_status_is_written_as_it_is_named() {
        use Status::{Enforced, Failed, NotUsed, Unknown, Weaker};
        for status in [Enforced, Weaker, Failed, NotUsed, Unknown] {
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("\"{}\"", status.name()));
        }
    }
}
