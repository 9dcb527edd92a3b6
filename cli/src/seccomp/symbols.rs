//! Arguments of a call from words: numbers as in C and the constants that rules are about.

/// The number that a word means; a negative one as the register holds it.
///
/// `13`, `0xd`, `015`, `0o15`, `0b1101`, `-1`, a name of the table, or several joined by `|`.
pub(super) fn number(word: &str) -> Option<u64> {
    word.split('|').map(|part| one(part.trim())).try_fold(0, |all, part| Some(all | part?))
}

fn one(word: &str) -> Option<u64> {
    if let Some((_, value)) = NAMES.iter().find(|(name, _)| *name == word) {
        return Some(*value);
    }
    if let Some(rest) = word.strip_prefix('-') {
        return digits(rest).map(u64::wrapping_neg);
    }
    digits(word)
}

fn digits(word: &str) -> Option<u64> {
    // `from_str_radix` would take a sign of its own.
    let plain = |digits: &str, radix| {
        let is_bare = digits.chars().all(|digit| digit.is_digit(radix));
        is_bare.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
    };
    let lower = word.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let marked =
        prefixes.iter().find_map(|(mark, radix)| Some((lower.strip_prefix(mark)?, *radix)));
    match (marked, lower.strip_prefix('0').filter(|rest| !rest.is_empty())) {
        (Some((digits, radix)), _) => plain(digits, radix),
        (None, Some(octal)) => plain(octal, 8),
        (None, None) => plain(&lower, 10),
    }
}

macro_rules! names {
    ($($name:ident = $value:literal),* $(,)?) => {
        /// Constants of the rules, and what stands beside them in a call.
        const NAMES: &[(&str, u64)] = &[$((stringify!($name), $value)),*];

        #[test]
        fn constants_are_those_of_libc() {
            $(assert_eq!(i128::from($value), i128::from(libc::$name), stringify!($name));)*
        }
    };
}

names! {
    AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17, AF_ALG = 38,
    AF_VSOCK = 40, AF_XDP = 44, SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_SEQPACKET = 5,
    SOCK_NONBLOCK = 0x800, SOCK_CLOEXEC = 0x8_0000, IPPROTO_TCP = 6, IPPROTO_UDP = 17,
    IPPROTO_SCTP = 132, IPPROTO_MPTCP = 262, NETLINK_ROUTE = 0, NETLINK_AUDIT = 9,
    NETLINK_NETFILTER = 12, SOL_SOCKET = 1, SOL_TCP = 6, SOL_UDP = 17, SOL_ALG = 279, SOL_TLS = 282,
    SO_PASSPIDFD = 76, SO_PEERPIDFD = 77, TCP_ULP = 31, UDP_ENCAP = 100, MSG_OOB = 1,
    CLONE_VM = 0x100, CLONE_VFORK = 0x4000, CLONE_THREAD = 0x1_0000, CLONE_NEWNS = 0x2_0000,
    CLONE_NEWCGROUP = 0x200_0000, CLONE_NEWUTS = 0x400_0000, CLONE_NEWIPC = 0x800_0000,
    CLONE_NEWUSER = 0x1000_0000, CLONE_NEWPID = 0x2000_0000, CLONE_NEWNET = 0x4000_0000,
    SIGCHLD = 17, O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0o100, O_EXCL = 0o200,
    O_TRUNC = 0o1000, O_APPEND = 0o2000, O_DIRECTORY = 0o200_000, O_CLOEXEC = 0o2_000_000,
    O_TMPFILE = 0o20_200_000, S_ISUID = 0o4000, S_ISGID = 0o2000, S_IFCHR = 0o20_000,
    S_IFBLK = 0o60_000, S_IFIFO = 0o10_000, S_IFREG = 0o100_000, TIOCSTI = 0x5412,
    TIOCLINUX = 0x541c, TIOCCONS = 0x541d, TIOCSETD = 0x5423, TIOCSCTTY = 0x540e,
    FICLONE = 0x4004_9409, FS_IOC_SETFLAGS = 0x4008_6602, F_SETLEASE = 1024, F_NOTIFY = 1026,
    PR_SET_MM = 35, PR_SCHED_CORE = 62, PR_SET_PTRACER = 0x5961_6d61, PR_SET_SECCOMP = 22,
    RLIMIT_CORE = 4, RLIMIT_NOFILE = 7, SECCOMP_SET_MODE_FILTER = 1,
    SECCOMP_FILTER_FLAG_NEW_LISTENER = 8, ADDR_NO_RANDOMIZE = 0x4_0000,
    READ_IMPLIES_EXEC = 0x40_0000,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbers() {
        let table = [
            ("13", Some(13)),
            ("0xD", Some(13)),
            ("015", Some(13)),
            ("0o15", Some(13)),
            ("0b1101", Some(13)),
            ("0", Some(0)),
            ("-1", Some(u64::MAX)),
            ("-100", Some(u64::MAX - 99)),
            ("AF_VSOCK", Some(40)),
            ("O_CREAT|O_WRONLY", Some(0o101)),
            ("CLONE_NEWUSER | 0x11", Some(0x1000_0011)),
            ("0xffffffffffffffff", Some(u64::MAX)),
            ("0x1ffffffffffffffff", None),
            ("08", None),
            ("", None),
            ("|", None),
            ("+1", None),
            ("--1", None),
            ("af_vsock", None),
            ("AF_NONE", None),
        ];
        for (word, expected) in table {
            assert_eq!(number(word), expected, "{word:?}");
        }
    }
}
