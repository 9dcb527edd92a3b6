//! The policy tables as data, the levels, and the identity of programs.
#![expect(clippy::unwrap_used, reason = "a test's own helpers fail the test")]

use std::collections::BTreeSet;

use postern_seccomp::{Arch, Errno, Error, Level, Policy, Program, Rule, program};

const LEVELS: [Level; 3] = [Level::Strict, Level::Default, Level::Compat];

fn policies() -> impl Iterator<Item = (Level, Policy)> {
    LEVELS.into_iter().map(|level| (level, level.policy(Arch::X86_64).unwrap()))
}

/// Rules of `default` that a stricter one of `strict` always precedes.
fn is_overridden(level: Level, rule: &Rule) -> bool {
    let by_strict = ["get_mempolicy", "socket"];
    level == Level::Strict && by_strict.contains(&rule.call)
}

#[test]
fn every_line_has_a_reason_and_can_decide() {
    for (level, policy) in policies() {
        let rules: Vec<_> = policy.rules().collect();
        for (index, rule) in rules.iter().enumerate() {
            assert!(rule.reason.len() > 10, "{level} {}: no reason", rule.call);
            let hidden = rules[..index].iter().any(|earlier| {
                earlier.call == rule.call
                    && earlier.conditions.iter().all(|test| rule.conditions.contains(test))
            });
            assert!(
                !hidden || is_overridden(level, rule),
                "{level} {}: an earlier rule always decides",
                rule.call
            );
        }
        for guard in policy.guards() {
            assert!(guard.reason.len() > 10, "{}: no reason", guard.name);
        }
    }
}

#[test]
fn table_is_ascending_and_names_are_unique() {
    let calls: Vec<_> = Arch::X86_64.calls().collect();
    for pair in calls.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{pair:?}");
    }
    for (number, name) in calls {
        assert_eq!(Arch::X86_64.call_number(name), Some(number), "{name}");
        assert_eq!(Arch::X86_64.call_name(number), Some(name), "{number}");
    }
    assert_eq!(Arch::X86_64.call_number("no_such_call"), None);
    assert_eq!(Arch::X86_64.call_name(337), None);
}

/// Compares the numbers of the named calls with libc's, and gives the names back.
macro_rules! same_as_libc {
    ($($name:ident: $constant:ident),* $(,)?) => {{
        $(assert_eq!(
            Arch::X86_64.call_number(stringify!($name)).map(i64::from),
            Some(libc::$constant),
            stringify!($name)
        );)*
        [$(stringify!($name)),*]
    }};
}

/// Calls that libc has no constant for.
const UNKNOWN_TO_LIBC: [&str; 16] = [
    "cachestat",
    "create_module",
    "file_getattr",
    "file_setattr",
    "getxattrat",
    "io_pgetevents",
    "listmount",
    "listns",
    "listxattrat",
    "lsm_get_self_attr",
    "lsm_list_modules",
    "lsm_set_self_attr",
    "open_tree_attr",
    "removexattrat",
    "setxattrat",
    "statmount",
];

#[test]
fn rule_numbers_are_those_of_libc() {
    let checked = same_as_libc! {
        _sysctl: SYS__sysctl, acct: SYS_acct, add_key: SYS_add_key, adjtimex: SYS_adjtimex,
        bpf: SYS_bpf, chmod: SYS_chmod, chroot: SYS_chroot, clock_adjtime: SYS_clock_adjtime,
        clock_settime: SYS_clock_settime, clone: SYS_clone, clone3: SYS_clone3, creat: SYS_creat,
        delete_module: SYS_delete_module, fanotify_init: SYS_fanotify_init,
        fanotify_mark: SYS_fanotify_mark, fchmod: SYS_fchmod, fchmodat: SYS_fchmodat,
        fchmodat2: SYS_fchmodat2, fcntl: SYS_fcntl, finit_module: SYS_finit_module,
        fsconfig: SYS_fsconfig, fsmount: SYS_fsmount, fsopen: SYS_fsopen, fspick: SYS_fspick,
        get_mempolicy: SYS_get_mempolicy, get_robust_list: SYS_get_robust_list,
        getsockopt: SYS_getsockopt, init_module: SYS_init_module, io_cancel: SYS_io_cancel,
        io_destroy: SYS_io_destroy, io_getevents: SYS_io_getevents, io_setup: SYS_io_setup,
        io_submit: SYS_io_submit, io_uring_enter: SYS_io_uring_enter,
        io_uring_register: SYS_io_uring_register, io_uring_setup: SYS_io_uring_setup,
        ioctl: SYS_ioctl, ioperm: SYS_ioperm, iopl: SYS_iopl, ioprio_set: SYS_ioprio_set,
        kcmp: SYS_kcmp, kexec_file_load: SYS_kexec_file_load, kexec_load: SYS_kexec_load,
        keyctl: SYS_keyctl, lookup_dcookie: SYS_lookup_dcookie, mbind: SYS_mbind,
        memfd_secret: SYS_memfd_secret, migrate_pages: SYS_migrate_pages, mkdir: SYS_mkdir,
        mkdirat: SYS_mkdirat, mknod: SYS_mknod, mknodat: SYS_mknodat, modify_ldt: SYS_modify_ldt,
        mount: SYS_mount, mount_setattr: SYS_mount_setattr, move_mount: SYS_move_mount,
        move_pages: SYS_move_pages, mq_getsetattr: SYS_mq_getsetattr, mq_notify: SYS_mq_notify,
        mq_open: SYS_mq_open, mq_timedreceive: SYS_mq_timedreceive,
        mq_timedsend: SYS_mq_timedsend, mq_unlink: SYS_mq_unlink, msgctl: SYS_msgctl,
        msgget: SYS_msgget, msgrcv: SYS_msgrcv, msgsnd: SYS_msgsnd,
        name_to_handle_at: SYS_name_to_handle_at, nfsservctl: SYS_nfsservctl, open: SYS_open,
        open_by_handle_at: SYS_open_by_handle_at, open_tree: SYS_open_tree, openat: SYS_openat,
        openat2: SYS_openat2, perf_event_open: SYS_perf_event_open, personality: SYS_personality,
        pidfd_getfd: SYS_pidfd_getfd, pivot_root: SYS_pivot_root, prctl: SYS_prctl,
        prlimit64: SYS_prlimit64, process_madvise: SYS_process_madvise,
        process_mrelease: SYS_process_mrelease, process_vm_readv: SYS_process_vm_readv,
        process_vm_writev: SYS_process_vm_writev, ptrace: SYS_ptrace, quotactl: SYS_quotactl,
        quotactl_fd: SYS_quotactl_fd, reboot: SYS_reboot, recvfrom: SYS_recvfrom,
        recvmmsg: SYS_recvmmsg, recvmsg: SYS_recvmsg, remap_file_pages: SYS_remap_file_pages,
        renameat2: SYS_renameat2,
        request_key: SYS_request_key, sched_setattr: SYS_sched_setattr,
        sched_setparam: SYS_sched_setparam, sched_setscheduler: SYS_sched_setscheduler,
        seccomp: SYS_seccomp, semctl: SYS_semctl, semget: SYS_semget, semop: SYS_semop,
        semtimedop: SYS_semtimedop, sendfile: SYS_sendfile, sendmmsg: SYS_sendmmsg,
        sendmsg: SYS_sendmsg, sendto: SYS_sendto, set_mempolicy: SYS_set_mempolicy,
        set_mempolicy_home_node: SYS_set_mempolicy_home_node, setdomainname: SYS_setdomainname,
        sethostname: SYS_sethostname, setns: SYS_setns, setrlimit: SYS_setrlimit,
        setsockopt: SYS_setsockopt, settimeofday: SYS_settimeofday, shmat: SYS_shmat,
        shmctl: SYS_shmctl, shmdt: SYS_shmdt, shmget: SYS_shmget, socket: SYS_socket,
        socketpair: SYS_socketpair, splice: SYS_splice, swapoff: SYS_swapoff, swapon: SYS_swapon,
        sync: SYS_sync, syncfs: SYS_syncfs, sysfs: SYS_sysfs, syslog: SYS_syslog, tee: SYS_tee,
        umount2: SYS_umount2, unshare: SYS_unshare, uselib: SYS_uselib,
        userfaultfd: SYS_userfaultfd, ustat: SYS_ustat, vhangup: SYS_vhangup,
        vmsplice: SYS_vmsplice,
    };
    let checked: BTreeSet<_> = checked.into_iter().chain(UNKNOWN_TO_LIBC).collect();
    for (level, policy) in policies() {
        for rule in policy.rules() {
            assert!(checked.contains(rule.call), "{level}: {} is not in a list above", rule.call);
        }
    }
    let errors = [
        (Errno::EPERM, libc::EPERM),
        (Errno::EINVAL, libc::EINVAL),
        (Errno::ENOSYS, libc::ENOSYS),
        (Errno::ENOPROTOOPT, libc::ENOPROTOOPT),
        (Errno::EPROTONOSUPPORT, libc::EPROTONOSUPPORT),
        (Errno::EOPNOTSUPP, libc::EOPNOTSUPP),
        (Errno::EAFNOSUPPORT, libc::EAFNOSUPPORT),
    ];
    for (ours, theirs) in errors {
        assert_eq!(i64::from(ours.number()), i64::from(theirs), "{ours}");
    }
}

/// Constants of the rules, by the conditions that show them, against libc's.
#[test]
fn constants_are_those_of_libc() {
    let table: &[(&str, i64)] = &[
        ("ioctl(arg1 == {})", libc::TIOCSTI.cast_signed()),
        ("ioctl(arg1 == {})", libc::TIOCSETD.cast_signed()),
        ("ioctl(arg1 == {})", libc::TIOCCONS.cast_signed()),
        ("ioctl(arg1 == {})", libc::FICLONE.cast_signed()),
        ("ioctl(arg1 == {})", libc::FICLONERANGE.cast_signed()),
        ("ioctl(arg1 == {})", libc::FS_IOC_SETFLAGS.cast_signed()),
        ("ioctl(arg1 == {})", libc::FS_IOC32_SETFLAGS.cast_signed()),
        ("fcntl(arg1 == {})", libc::F_SETLEASE.into()),
        ("fcntl(arg1 == {})", libc::F_NOTIFY.into()),
        ("prctl(arg0 == {})", libc::PR_SET_MM.into()),
        ("prctl(arg0 == {})", libc::PR_SCHED_CORE.into()),
        ("prctl(arg0 == {})", libc::PR_SET_PTRACER.into()),
        ("getsockopt(arg1 == 0x1, arg2 == {})", libc::SO_PEERPIDFD.into()),
        ("setsockopt(arg1 == 0x1, arg2 == {})", libc::SO_PASSPIDFD.into()),
        ("setsockopt(arg1 == 0x6, arg2 == {})", libc::TCP_ULP.into()),
        ("setsockopt(arg1 == {})", libc::SOL_ALG.into()),
        ("setsockopt(arg1 == {})", libc::SOL_TLS.into()),
        ("sendmsg(arg2 & {} != 0)", libc::MSG_OOB.into()),
        (
            "seccomp(arg0 == 0x1, arg1 & {} != 0)",
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER.cast_signed(),
        ),
        ("mknod(arg1 & 0xf000 == {})", libc::S_IFCHR.into()),
        ("mknod(arg1 & 0xf000 == {})", libc::S_IFBLK.into()),
        ("chmod(arg1 & {} != 0)", (libc::S_ISUID | libc::S_ISGID).into()),
        (
            "open(arg1 & {} != 0, arg2 & 0xc00 != 0)",
            (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).into(),
        ),
        (
            "clone(arg0 & {} != 0)",
            (libc::CLONE_NEWNS
                | libc::CLONE_NEWCGROUP
                | libc::CLONE_NEWUTS
                | libc::CLONE_NEWIPC
                | libc::CLONE_NEWUSER
                | libc::CLONE_NEWPID
                | libc::CLONE_NEWNET)
                .into(),
        ),
        ("setrlimit(arg0 == {}, arg1 != NULL)", libc::RLIMIT_CORE.into()),
    ];
    let policy = Level::Default.policy(Arch::X86_64).unwrap();
    let lines: BTreeSet<_> = policy.rules().map(line).collect();
    for (shape, value) in table {
        let wanted = shape.replace("{}", &format!("{value:#x}"));
        assert!(lines.contains(&wanted), "{wanted}: {lines:?}");
    }
}

/// A rule without its answer.
fn line(rule: &Rule) -> String {
    let conditions: Vec<_> = rule.conditions.iter().map(ToString::to_string).collect();
    format!("{}({})", rule.call, conditions.join(", "))
}

#[test]
fn lines_read_well() {
    let policy = Level::Compat.policy(Arch::X86_64).unwrap();
    let said = |call: &str| {
        let rule = policy.rules().find(|rule| rule.call == call).unwrap();
        format!("{}: {}", line(rule), rule.action)
    };
    let table = [
        ("ptrace", "ptrace(): EPERM"),
        ("clone3", "clone3(): ENOSYS"),
        ("clone", "clone(arg0 & 0x10000000 != 0): EPERM"),
        ("ioctl", "ioctl(arg1 == 0x5412): EPERM"),
        ("prlimit64", "prlimit64(arg1 == 0x4, arg2 != NULL): succeed"),
        ("socket", "socket(arg0 == 0x10, arg2 != 0x0): EAFNOSUPPORT"),
    ];
    for (call, expected) in table {
        assert_eq!(said(call), expected);
    }
}

#[test]
fn levels_by_name() {
    for level in Level::ALL {
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    for name in ["", "Compat", "compat ", "none"] {
        let error = name.parse::<Level>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("unknown seccomp level {name:?}; one of: strict default compat off")
        );
    }
    assert_eq!(program(Level::Off, Arch::X86_64), Ok(None));
}

#[test]
fn programs_have_an_identity() {
    let compile = || program(Level::Compat, Arch::X86_64).unwrap().unwrap();
    let compat = compile();
    assert_eq!(compat.as_bytes(), compile().as_bytes());
    assert_eq!(compat.as_bytes().len(), compat.len() * 8);
    assert_eq!(Program::from_bytes(compat.as_bytes()), Ok(compat.clone()));

    let mut changed = compat.as_bytes().to_vec();
    *changed.last_mut().unwrap() ^= 1;
    assert_ne!(Program::from_bytes(&changed).unwrap().digest(), compat.digest());
    // SHA-256 of these eight bytes, from another implementation.
    let known = "f8ff82e276615ab8104fc2490bbf2587b4843f5eac547836b3abcf661e5812b6";
    assert_eq!(Program::from_bytes(b"postern!").unwrap().digest().to_string(), known);
}

#[test]
fn torn_programs_are_refused() {
    for bytes in [0, 1, 7, 9, 4097 * 8] {
        let refused = Program::from_bytes(&vec![0; bytes]);
        assert_eq!(refused, Err(Error::TornProgram { bytes }));
    }
    assert_eq!(Program::from_bytes(&vec![0; 4096 * 8]).map(|program| program.len()), Ok(4096));
}
