//! The policies of the levels and the guards they share; one file for each list of rules.

use crate::action::{Action, Errno};
use crate::arch::Arch;
use crate::condition::Condition;
use crate::policy::{Guard, Guards, Policy, Rule};

mod compat;

/// The policy of [`Level::Compat`](crate::Level::Compat).
pub(crate) const fn compat(arch: Arch) -> Policy {
    Policy { arch, guards: GUARDS, rules: compat::RULES }
}

const GUARDS: Guards = Guards {
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

const EPERM: Action = Action::Errno(Errno::Eperm);
const ENOSYS: Action = Action::Errno(Errno::Enosys);
const EAFNOSUPPORT: Action = Action::Errno(Errno::Eafnosupport);

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
