//! The policy tables as data, the levels, and the identity of programs.

use postern_seccomp::{Arch, Errno, Error, Level, Program, program};

#[test]
fn every_line_has_a_reason_and_can_decide() {
    let policy = Level::Compat.policy(Arch::X86_64).unwrap();
    let rules: Vec<_> = policy.rules().collect();
    for (index, rule) in rules.iter().enumerate() {
        assert!(rule.reason.len() > 10, "{}: no reason", rule.call);
        let hidden = rules[..index].iter().any(|earlier| {
            earlier.call == rule.call
                && earlier.conditions.iter().all(|test| rule.conditions.contains(test))
        });
        assert!(!hidden, "{}: an earlier rule always decides", rule.call);
    }
    for guard in policy.guards() {
        assert!(guard.reason.len() > 10, "{}: no reason", guard.name);
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

#[test]
fn rule_numbers_are_those_of_libc() {
    let checked = same_as_libc! {
        unshare: SYS_unshare, setns: SYS_setns, clone: SYS_clone, clone3: SYS_clone3,
        mount: SYS_mount, umount2: SYS_umount2, pivot_root: SYS_pivot_root, chroot: SYS_chroot,
        open_tree: SYS_open_tree, move_mount: SYS_move_mount, fsopen: SYS_fsopen,
        fsconfig: SYS_fsconfig, fsmount: SYS_fsmount, fspick: SYS_fspick,
        mount_setattr: SYS_mount_setattr, add_key: SYS_add_key, keyctl: SYS_keyctl,
        request_key: SYS_request_key, ptrace: SYS_ptrace, perf_event_open: SYS_perf_event_open,
        move_pages: SYS_move_pages, migrate_pages: SYS_migrate_pages, mbind: SYS_mbind,
        get_mempolicy: SYS_get_mempolicy, set_mempolicy: SYS_set_mempolicy, bpf: SYS_bpf,
        init_module: SYS_init_module, finit_module: SYS_finit_module,
        delete_module: SYS_delete_module, kexec_load: SYS_kexec_load,
        kexec_file_load: SYS_kexec_file_load, reboot: SYS_reboot, swapon: SYS_swapon,
        swapoff: SYS_swapoff, syslog: SYS_syslog, acct: SYS_acct, quotactl: SYS_quotactl,
        uselib: SYS_uselib, io_uring_setup: SYS_io_uring_setup,
        io_uring_enter: SYS_io_uring_enter, io_uring_register: SYS_io_uring_register,
        ioctl: SYS_ioctl, setrlimit: SYS_setrlimit, prlimit64: SYS_prlimit64, socket: SYS_socket,
    };
    for rule in Level::Compat.policy(Arch::X86_64).unwrap().rules() {
        assert!(checked.contains(&rule.call), "{} is not in the list above", rule.call);
    }
    let errors = [
        (Errno::Eperm, libc::EPERM),
        (Errno::Enosys, libc::ENOSYS),
        (Errno::Eafnosupport, libc::EAFNOSUPPORT),
    ];
    for (ours, theirs) in errors {
        assert_eq!(i64::from(ours.number()), i64::from(theirs), "{ours}");
    }
}

#[test]
fn lines_read_well() {
    let policy = Level::Compat.policy(Arch::X86_64).unwrap();
    let line = |call: &str| {
        let rule = policy.rules().find(|rule| rule.call == call).unwrap();
        let conditions: Vec<_> = rule.conditions.iter().map(ToString::to_string).collect();
        format!("{call}({}): {}", conditions.join(", "), rule.action)
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
        assert_eq!(line(call), expected);
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
            format!("unknown seccomp level {name:?}; one of: compat off")
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
    // FNV-1a 64 of these eight bytes, from another implementation.
    assert_eq!(Program::from_bytes(b"postern!").unwrap().digest(), 0x80f8_ecf9_9b9a_86d5);
}

#[test]
fn torn_programs_are_refused() {
    for bytes in [0, 1, 7, 9, 4097 * 8] {
        let refused = Program::from_bytes(&vec![0; bytes]);
        assert_eq!(refused, Err(Error::TornProgram { bytes }));
    }
    assert_eq!(Program::from_bytes(&vec![0; 4096 * 8]).map(|program| program.len()), Ok(4096));
}
