//! Whether a level of the filter lets a guest set a file's set-uid and set-gid bits; asks the policy
//! and keeps no list of levels.

use postern_seccomp::{Action, Arch, Call, Level};

/// Every call that can set such a bit, and where its mode is; other arguments as in a call that
/// makes a file.
const CALLS: [(&str, [u64; 6], usize); 9] = [
    ("chmod", [0; 6], 1),
    ("fchmod", [0; 6], 1),
    ("fchmodat", [0; 6], 2),
    ("fchmodat2", [0; 6], 2),
    ("open", [0, CREATE, 0, 0, 0, 0], 2),
    ("openat", [0, 0, CREATE, 0, 0, 0], 3),
    ("creat", [0; 6], 1),
    ("mknod", [0; 6], 1),
    ("mknodat", [0; 6], 2),
];
const CREATE: u64 = 0o101;

/// Set-uid and set-gid on an executable regular file.
const MODES: [u64; 2] = [0o104_755, 0o102_755];

/// Whether no such bit can be set at this level. `openat2`, whose mode a filter cannot see, is one
/// more call that must be refused.
pub(super) fn are_kept_away(level: Level) -> bool {
    let Some((arch, policy)) =
        Arch::native().ok().and_then(|arch| Some((arch, level.policy(arch)?)))
    else {
        return false;
    };
    let refused = |name, arguments| {
        let number = arch.call_number(name);
        // A call that this processor does not have cannot be made.
        number.is_none_or(|number| {
            policy.evaluate(&Call::native(arch, number, arguments)) != Action::Allow
        })
    };
    let mut attempts = CALLS.iter().flat_map(|(name, arguments, at)| {
        MODES.map(|mode| {
            let mut arguments = *arguments;
            if let Some(place) = arguments.get_mut(*at) {
                *place = mode;
            }
            (*name, arguments)
        })
    });
    attempts.all(|(name, arguments)| refused(name, arguments)) && refused("openat2", [0; 6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_compat_nor_no_filter_at_all_keeps_them_away() {
        for level in [Level::Compat, Level::Off] {
            assert!(!are_kept_away(level), "{level}");
        }
    }
}
