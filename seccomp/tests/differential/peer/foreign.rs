//! What `compat` would answer to the peer's other ABIs if it did not refuse them whole: the same
//! rules by name, with those ABIs' own numbers. This is the proof that nothing but that refusal and
//! our additions lies between the two filters.

use postern_seccomp::{Action, Arch, Call, Condition, Level, simulate};

use super::super::{Tally, policy, samples};
use super::peer;

/// An ABI: its `AUDIT_ARCH_*` value, a bit of all its numbers, and the calls that a rule names.
struct Abi {
    name: &'static str,
    audit: u32,
    bit: u32,
    calls: &'static [(u32, &'static str)],
}

const ABIS: [Abi; 4] = [
    Abi { name: "i386", audit: 0x4000_0003, bit: 0, calls: I386 },
    Abi { name: "x32", audit: Arch::X86_64.audit(), bit: 0x4000_0000, calls: X32 },
    Abi { name: "aarch64", audit: 0xc000_00b7, bit: 0, calls: AARCH64 },
    Abi { name: "arm", audit: 0x4000_0028, bit: 0, calls: ARM },
];

#[rustfmt::skip]
const I386: &[(u32, &str)] = &[
    (21, "mount"), (26, "ptrace"), (51, "acct"), (52, "umount2"), (54, "ioctl"), (61, "chroot"),
    (86, "uselib"), (87, "swapon"), (88, "reboot"), (103, "syslog"), (115, "swapoff"),
    (120, "clone"), (128, "init_module"), (129, "delete_module"), (131, "quotactl"),
    (217, "pivot_root"), (274, "mbind"), (275, "get_mempolicy"), (276, "set_mempolicy"),
    (283, "kexec_load"), (286, "add_key"), (287, "request_key"), (288, "keyctl"),
    (294, "migrate_pages"), (310, "unshare"), (317, "move_pages"), (336, "perf_event_open"),
    (346, "setns"), (350, "finit_module"), (357, "bpf"), (425, "io_uring_setup"),
    (426, "io_uring_enter"), (427, "io_uring_register"), (428, "open_tree"), (429, "move_mount"),
    (430, "fsopen"), (431, "fsconfig"), (432, "fsmount"), (433, "fspick"), (435, "clone3"),
    (442, "mount_setattr"),
];

#[rustfmt::skip]
const X32: &[(u32, &str)] = &[
    (56, "clone"), (103, "syslog"), (155, "pivot_root"), (161, "chroot"), (163, "acct"),
    (165, "mount"), (166, "umount2"), (167, "swapon"), (168, "swapoff"), (169, "reboot"),
    (175, "init_module"), (176, "delete_module"), (179, "quotactl"), (237, "mbind"),
    (238, "set_mempolicy"), (239, "get_mempolicy"), (248, "add_key"), (249, "request_key"),
    (250, "keyctl"), (256, "migrate_pages"), (272, "unshare"), (298, "perf_event_open"),
    (308, "setns"), (313, "finit_module"), (320, "kexec_file_load"), (321, "bpf"),
    (425, "io_uring_setup"), (426, "io_uring_enter"), (427, "io_uring_register"),
    (428, "open_tree"), (429, "move_mount"), (430, "fsopen"), (431, "fsconfig"), (432, "fsmount"),
    (433, "fspick"), (435, "clone3"), (442, "mount_setattr"), (514, "ioctl"), (521, "ptrace"),
    (528, "kexec_load"), (533, "move_pages"),
];

#[rustfmt::skip]
const AARCH64: &[(u32, &str)] = &[
    (29, "ioctl"), (39, "umount2"), (40, "mount"), (41, "pivot_root"), (51, "chroot"),
    (60, "quotactl"), (89, "acct"), (97, "unshare"), (104, "kexec_load"), (105, "init_module"),
    (106, "delete_module"), (116, "syslog"), (117, "ptrace"), (142, "reboot"), (217, "add_key"),
    (218, "request_key"), (219, "keyctl"), (220, "clone"), (224, "swapon"), (225, "swapoff"),
    (235, "mbind"), (236, "get_mempolicy"), (237, "set_mempolicy"), (238, "migrate_pages"),
    (239, "move_pages"), (241, "perf_event_open"), (268, "setns"), (273, "finit_module"),
    (280, "bpf"), (294, "kexec_file_load"), (425, "io_uring_setup"), (426, "io_uring_enter"),
    (427, "io_uring_register"), (428, "open_tree"), (429, "move_mount"), (430, "fsopen"),
    (431, "fsconfig"), (432, "fsmount"), (433, "fspick"), (435, "clone3"), (442, "mount_setattr"),
];

#[rustfmt::skip]
const ARM: &[(u32, &str)] = &[
    (21, "mount"), (26, "ptrace"), (51, "acct"), (52, "umount2"), (54, "ioctl"), (61, "chroot"),
    (86, "uselib"), (87, "swapon"), (88, "reboot"), (103, "syslog"), (115, "swapoff"),
    (120, "clone"), (128, "init_module"), (129, "delete_module"), (131, "quotactl"),
    (218, "pivot_root"), (309, "add_key"), (310, "request_key"), (311, "keyctl"), (319, "mbind"),
    (320, "get_mempolicy"), (321, "set_mempolicy"), (337, "unshare"), (344, "move_pages"),
    (347, "kexec_load"), (364, "perf_event_open"), (375, "setns"), (379, "finit_module"),
    (386, "bpf"), (400, "migrate_pages"), (401, "kexec_file_load"), (425, "io_uring_setup"),
    (426, "io_uring_enter"), (427, "io_uring_register"), (428, "open_tree"), (429, "move_mount"),
    (430, "fsopen"), (431, "fsconfig"), (432, "fsmount"), (433, "fspick"), (435, "clone3"),
    (442, "mount_setattr"),
];

/// The conditions of every rule of a call.
fn conditions(name: Option<&str>) -> Vec<Condition> {
    let policy = policy(Level::Compat);
    policy
        .rules()
        .filter(|rule| Some(rule.call) == name)
        .flat_map(|rule| rule.conditions)
        .copied()
        .collect()
}

fn answer(name: Option<&str>, arguments: &[u64; 6]) -> Action {
    let policy = policy(Level::Compat);
    let mut rules = policy.rules().filter(|rule| Some(rule.call) == name);
    rules
        .find(|rule| rule.conditions.iter().all(|condition| condition.holds(arguments)))
        .map_or(Action::Allow, |rule| rule.action)
}

#[test]
fn other_abis_fare_as_in_the_peer_where_they_are_not_refused() {
    let Some(peer) = peer() else { return };
    for abi in ABIS {
        let name = |number: u32| {
            let found = abi.calls.iter().find(|(other, _)| *other == number);
            found.map(|(_, name)| *name)
        };
        let mut tally = Tally::default();
        let calls = samples::native(|number| conditions(name(number)));
        for call in calls.filter(|call| call.number < 0x1000) {
            let expected = answer(name(call.number), &call.arguments);
            let call = Call { arch: abi.audit, number: call.number | abi.bit, ..call };
            assert_eq!(simulate(&peer, &call), Ok(expected.word()), "{}: {call:x?}", abi.name);
            tally.equal();
        }
        tally.finish(&format!("the peer's blob, {}", abi.name), &[]);
    }
}
