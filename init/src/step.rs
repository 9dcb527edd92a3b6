//! The names of everything that can fail between the launcher's start and the guest's exec.
//!
//! A failure crosses processes as a number; the words stay here and in the library.

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $call:literal, $what:literal;)*) => {
        /// One step of a launch.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Step { $(#[doc = $what] $name = $code,)* }

        impl Step {
            /// Every step, in the order of their numbers.
            pub const ALL: &'static [Step] = &[$(Step::$name,)*];

            /// The step with this number, if there is one.
            #[must_use]
            pub const fn from_code(code: u32) -> Option<Step> {
                match code { $($code => Some(Step::$name),)* _ => None }
            }

            /// The number that crosses from the launcher to the library.
            #[must_use]
            pub const fn code(self) -> u32 {
                match self { $(Step::$name => $code,)* }
            }

            /// The system call that the step is about.
            #[must_use]
            pub const fn call(self) -> &'static str {
                match self { $(Step::$name => $call,)* }
            }

            /// What the step does, to follow "cannot".
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Step::$name => $what,)* }
            }
        }
    };
}

steps! {
    // The launcher, once.
    Memory = 1, "mmap", "get working memory";
    Descriptors = 2, "dup3", "arrange descriptors";
    Signals = 3, "rt_sigaction", "reset signals";
    CloneLauncher = 95, "clone", "create the launcher";
    Umask = 96, "umask", "set the file-creation mask";
    Session = 4, "setsid", "start a new session";
    ReceiveSetup = 5, "recvmsg", "receive the plan";
    DecodeSetup = 6, "-", "understand the plan";
    OpenHostProc = 7, "openat", "open the host's /proc";
    Propagation = 8, "mount", "make mounts private";
    MakeRoot = 9, "fsmount", "make the root file system";
    PivotRoot = 10, "pivot_root", "change the root";
    DetachHost = 11, "umount2", "detach the host's file systems";
    DropGroups = 12, "setgroups", "drop supplementary groups";
    KeepCapabilities = 13, "prctl", "keep capabilities across the change of ids";
    TakeIds = 14, "setresuid", "take the sandbox's kernel ids";
    ReduceCapabilities = 15, "capset", "give up capabilities the launcher does not need";
    LauncherDumpable = 16, "prctl", "let the launcher write its children's id maps";
    Keyring = 17, "keyctl", "join an empty session keyring";
    LauncherLimits = 18, "write", "lower limits in the launcher's user namespace";
    RaiseDescriptors = 19, "prlimit64", "raise the launcher's own descriptor limit";
    Export = 20, "openat", "open a directory for the host";
    // Mount operations, in the launcher and in each run.
    OpenSource = 30, "openat2", "open the source of a bind";
    SourceChanged = 31, "statx", "find the source of a bind as it was when the plan was made";
    CloneSource = 32, "open_tree", "clone the source of a bind";
    MountFlags = 33, "mount_setattr", "set mount flags";
    CreateTarget = 34, "mkdirat", "create a mount point";
    OpenTarget = 35, "openat2", "open a mount point";
    AttachMount = 36, "move_mount", "attach a mount";
    MakeTmpfs = 37, "fsmount", "make a tmpfs";
    MakeProc = 38, "fsmount", "make a procfs";
    MakeDevpts = 39, "fsmount", "make a devpts";
    WriteFile = 40, "write", "write a file of the root";
    MakeLink = 41, "symlinkat", "make a symbolic link";
    MakeDirectory = 42, "mkdirat", "make a directory";
    Mask = 43, "mount", "mask a file";
    RunDirectory = 44, "open_tree", "bind the run's own directory";
    MapOwner = 45, "mount_setattr", "have the guest's files be the owner's";
    // Namespaces made ahead.
    AheadIds = 50, "setresuid", "become the owner of the namespaces made ahead";
    AheadNamespaces = 51, "unshare", "make namespaces ahead";
    StartMaker = 55, "clone", "start making namespaces ahead";
    JoinMaker = 56, "setns", "join the namespaces made ahead";
    Hostname = 52, "sethostname", "set the hostname";
    AheadLimits = 53, "write", "lower ipc limits";
    Loopback = 54, "ioctl", "bring the loopback interface up";
    // The launcher, per run.
    ReceiveRequest = 60, "recvmsg", "receive a run";
    DecodeRequest = 61, "-", "understand a run";
    TooManyRuns = 62, "-", "keep one more run";
    PidNamespaceBusy = 63, "-", "start a second run in a shared pid namespace";
    CloneRun = 64, "clone3", "create the run's namespaces";
    CloneIntoGroup = 67, "clone3", "create the run in its control group";
    Processors = 66, "sched_setaffinity", "give a run every processor";
    SendHandle = 65, "sendmsg", "hand over the run's pidfd";
    // PID 1 of a run, before the guest.
    HostGone = 70, "ppoll", "find the host alive";
    OpenSelf = 94, "openat", "open its own directory in /proc";
    DenySetgroups = 71, "write", "forbid setgroups";
    WriteUidMap = 72, "write", "write the uid map";
    WriteGidMap = 73, "write", "write the gid map";
    OomScore = 74, "write", "raise the oom score";
    BecomeGuest = 75, "setresuid", "become the guest's ids";
    CheckMap = 76, "read", "find the id map that was written";
    HideGroup = 97, "unshare", "hide the control groups above the run's own";
    RunLimits = 77, "write", "lower limits in the run's user namespace";
    WorkingDirectory = 78, "chdir", "enter the working directory";
    BoundingSet = 79, "prctl", "empty the bounding set";
    Securebits = 80, "prctl", "lock the securebits";
    AmbientSet = 81, "prctl", "empty the ambient set";
    CapabilitySets = 82, "capset", "empty the capability sets";
    NoNewPrivs = 83, "prctl", "set no_new_privs";
    NonDumpable = 84, "prctl", "make PID 1 non-dumpable";
    Rlimit = 85, "prlimit64", "set a resource limit";
    LandlockRuleset = 110, "landlock_create_ruleset", "make the Landlock ruleset";
    LandlockPlace = 111, "openat2", "open a place of the Landlock ruleset";
    LandlockRule = 112, "landlock_add_rule", "add a place to the Landlock ruleset";
    LandlockDomain = 113, "landlock_restrict_self", "enter the Landlock domain";
    Filter = 86, "seccomp", "install the system-call filter";
    Terminal = 98, "ioctl", "make the guest's terminal";
    Attest = 87, "recvmsg", "wait for the host's inspection";
    SignalFd = 88, "signalfd4", "watch for signals";
    ForkGuest = 89, "clone", "create the guest's process";
    GuestSetup = 90, "setsid", "prepare the guest's process";
    GuestRlimit = 91, "prlimit64", "set a resource limit of the guest";
    GuestFilter = 99, "seccomp", "install the profile's own system-call policy";
    Exec = 92, "execve", "start the program";
    Supervise = 93, "ppoll", "watch the guest";
}

#[cfg(test)]
mod tests {
    use super::Step;

    #[test]
    fn every_code_leads_back_to_its_step() {
        for step in Step::ALL {
            assert_eq!(Step::from_code(step.code()), Some(*step));
        }
        assert_eq!(Step::from_code(0), None);
    }
}
