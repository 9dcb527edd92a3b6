//! The policies of the levels and the guards they share; one file for each list of rules.

use crate::action::{Action, Errno};
use crate::arch::Arch;
use crate::condition::{Argument, Condition, Test};
use crate::policy::{Guard, Guards, Policy, Rule};

mod compat;
mod default;
mod strict;

/// The policy of [`Level::Compat`](crate::Level::Compat).
pub(crate) const fn compat(arch: Arch) -> Policy {
    Policy { arch, guards: GUARDS, groups: &[compat::RULES] }
}

/// The policy of [`Level::Default`](crate::Level::Default).
pub(crate) const fn default(arch: Arch) -> Policy {
    Policy { arch, guards: GUARDS, groups: default::GROUPS }
}

/// The policy of [`Level::Strict`](crate::Level::Strict).
pub(crate) const fn strict(arch: Arch) -> Policy {
    Policy { arch, guards: GUARDS, groups: strict::GROUPS }
}

/// The guards of every level.
pub(crate) const GUARDS: Guards = Guards {
    foreign_abi: Guard {
        name: "foreign ABI",
        action: Action::KillProcess,
        reason: "other ABIs number calls differently, so the table would judge the wrong call",
    },
    x32: Guard {
        name: "x32",
        action: ENOSYS,
        reason: "x32 reaches the same calls under other numbers and few kernels offer it",
    },
    unreviewed: Guard {
        name: "unreviewed number",
        action: ENOSYS,
        reason: "a kernel newer than the table must not give the guest more than the table does",
    },
};

const EPERM: Action = Action::Errno(Errno::EPERM);
const EINVAL: Action = Action::Errno(Errno::EINVAL);
const ENOSYS: Action = Action::Errno(Errno::ENOSYS);
const ENOPROTOOPT: Action = Action::Errno(Errno::ENOPROTOOPT);
const EPROTONOSUPPORT: Action = Action::Errno(Errno::EPROTONOSUPPORT);
const EOPNOTSUPP: Action = Action::Errno(Errno::EOPNOTSUPP);
const EAFNOSUPPORT: Action = Action::Errno(Errno::EAFNOSUPPORT);

const RLIMIT_CORE: u32 = 4;
const AF_NETLINK: u32 = 16;

const fn arg(argument: Argument, test: Test) -> Condition {
    Condition { argument, test }
}

const fn always(call: &'static str, action: Action, reason: &'static str) -> Rule {
    when(call, &[], action, reason)
}

const fn when(
    call: &'static str,
    conditions: &'static [Condition],
    action: Action,
    reason: &'static str,
) -> Rule {
    Rule { call, conditions, action, reason }
}
