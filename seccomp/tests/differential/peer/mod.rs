//! Level `compat` against the filter of the PyPI package `postern` 0.5.0: the list of differences
//! is closed. `POSTERN_PEER_BLOB` names the package's `_seccomp.bpf`; the file is not kept here.

use postern_seccomp::{Action, Arch, Call, Errno, Level, Program, simulate};

use super::{Tally, policy, samples, say};

mod foreign;

/// The SHA-256 of the blob in the wheel of 0.5.0.
const PEER_DIGEST: &str = "212af7866a5e543e6ed3516b538e944e012c879c698d9bd8b941d1c6bc0850a2";

const ALLOW: u32 = Action::Allow.word();
const EPERM: u32 = Action::Errno(Errno::EPERM).word();
const ENOSYS: u32 = Action::Errno(Errno::ENOSYS).word();
const EAFNOSUPPORT: u32 = Action::Errno(Errno::EAFNOSUPPORT).word();
const SUCCEED: u32 = Action::Succeed.word();
const KILL_PROCESS: u32 = Action::KillProcess.word();
const KILL_THREAD: u32 = Action::KillThread.word();

/// One way in which the two filters differ: where, the peer's answer, ours.
struct Difference {
    name: &'static str,
    place: fn(&Call) -> bool,
    peer: u32,
    ours: u32,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "netlink beyond routing",
        place: |call| native(call, 41) && low(call, 0) == 16 && low(call, 2) != 0,
        peer: ALLOW,
        ours: EAFNOSUPPORT,
    },
    Difference {
        name: "setrlimit of the core limit",
        place: |call| native(call, 160) && low(call, 0) == 4 && call.arguments[1] != 0,
        peer: ALLOW,
        ours: SUCCEED,
    },
    Difference {
        name: "prlimit64 of the core limit",
        place: |call| native(call, 302) && low(call, 1) == 4 && call.arguments[2] != 0,
        peer: ALLOW,
        ours: SUCCEED,
    },
    Difference {
        name: "numbers never given out",
        place: |call| is_native(call) && (337..=423).contains(&call.number),
        peer: ALLOW,
        ours: ENOSYS,
    },
    Difference {
        name: "numbers above the ceiling",
        place: |call| is_native(call) && call.number > 471 && !has_x32_bit(call),
        peer: ALLOW,
        ours: ENOSYS,
    },
    Difference {
        name: "x32 calls open in the peer",
        place: |call| is_native(call) && has_x32_bit(call) && call.number != u32::MAX,
        peer: ALLOW,
        ours: ENOSYS,
    },
    Difference {
        name: "x32 calls refused in the peer",
        place: |call| is_native(call) && has_x32_bit(call),
        peer: EPERM,
        ours: ENOSYS,
    },
    Difference {
        name: "open calls of the ABIs the peer covers",
        place: is_covered_foreign,
        peer: ALLOW,
        ours: KILL_PROCESS,
    },
    Difference {
        name: "refused calls of the ABIs the peer covers",
        place: is_covered_foreign,
        peer: EPERM,
        ours: KILL_PROCESS,
    },
    Difference {
        name: "absent calls of the ABIs the peer covers",
        place: is_covered_foreign,
        peer: ENOSYS,
        ours: KILL_PROCESS,
    },
    Difference {
        name: "ABIs the peer does not know",
        place: |call| !is_native(call) && !is_covered_foreign(call),
        peer: KILL_THREAD,
        ours: KILL_PROCESS,
    },
];

fn is_native(call: &Call) -> bool {
    call.arch == Arch::X86_64.audit()
}

fn native(call: &Call, number: u32) -> bool {
    is_native(call) && call.number == number
}

fn has_x32_bit(call: &Call) -> bool {
    call.number & 0x4000_0000 != 0
}

/// i386, arm and aarch64.
fn is_covered_foreign(call: &Call) -> bool {
    [0x4000_0003, 0x4000_0028, 0xc000_00b7].contains(&call.arch)
}

fn low(call: &Call, argument: usize) -> u64 {
    call.arguments[argument] & u64::from(u32::MAX)
}

/// The peer's program, or a line that says that it was skipped.
fn peer() -> Option<Program> {
    let Some(path) = std::env::var_os("POSTERN_PEER_BLOB") else {
        say("skipped: POSTERN_PEER_BLOB not set");
        return None;
    };
    let peer = Program::from_bytes(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(peer.digest().to_string(), PEER_DIGEST, "not the blob of 0.5.0");
    Some(peer)
}

#[test]
fn differences_are_the_documented_ones() {
    let Some(peer) = peer() else { return };
    let ours = policy(Level::Compat).assemble().unwrap();
    let mut tally = Tally::default();
    for call in samples::of_policy(policy(Level::Compat)).chain(samples::foreign()) {
        let answers = (simulate(&peer, &call).unwrap(), simulate(&ours, &call).unwrap());
        let rows: Vec<_> = DIFFERENCES
            .iter()
            .filter(|row| (row.place)(&call) && answers == (row.peer, row.ours))
            .collect();
        match (answers.0 == answers.1, rows.as_slice()) {
            (true, []) => tally.equal(),
            (false, [row]) => tally.explained(row.name),
            _ => panic!("peer and ours {answers:x?}, {} rows: {call:x?}", rows.len()),
        }
    }
    let names: Vec<_> = DIFFERENCES.iter().map(|row| row.name).collect();
    tally.finish("the peer's blob, compat", &names);
}
