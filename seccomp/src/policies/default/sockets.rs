//! Socket families and protocols by an allow-list, and options that reach past the network.

use crate::condition::Argument::{A0, A1, A2, A3};
use crate::condition::Condition;
use crate::condition::Test::{HasAny, Is, IsNot, MaskedIs, MaskedIsNot};
use crate::policies::{
    AF_NETLINK, EAFNOSUPPORT, ENOPROTOOPT, EOPNOTSUPP, EPERM, EPROTONOSUPPORT, arg, when,
};
use crate::policy::Rule;

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const NETLINK_ROUTE: u32 = 0;
/// The type proper; above it are `SOCK_NONBLOCK` and `SOCK_CLOEXEC`.
const SOCK_TYPE_MASK: u32 = 0xf;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const IPPROTO_IP: u32 = 0;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;

const SOL_SOCKET: u32 = 1;
const SO_PASSPIDFD: u32 = 76;
const SO_PEERPIDFD: u32 = 77;
const SOL_TCP: u32 = 6;
const TCP_ULP: u32 = 31;
const SOL_UDP: u32 = 17;
const UDP_ENCAP: u32 = 100;
const SOL_ALG: u32 = 279;
const SOL_TLS: u32 = 282;
const MSG_OOB: u32 = 1;

/// Two requests, and four.
const PAIR: u32 = !1;
const QUARTET: u32 = !3;
/// `SIOCGIFBR` and `SIOCSIFBR`.
const OLD_BRIDGE: u32 = 0x8940;
/// `SIOCGIFVLAN` and `SIOCSIFVLAN`.
const VLAN: u32 = 0x8982;
/// `SIOCBRADDBR` to `SIOCBRDELIF`.
const BRIDGE: u32 = 0x89a0;

const KIND: &str = "streams and datagrams only; raw and packet sockets see and forge traffic";
const PROTOCOL: &str = "TCP and UDP only; SCTP, SMC, MPTCP, L2TP and others are code of their own";
const MODULE: &str =
    "loads a module of the kernel for anyone who asks: privileges are looked at after that";
const OUT_OF_BAND: &str = "out-of-band data, rarely used and a source of use-after-free";

const fn has_kind_other_than(kind: u32) -> Condition {
    arg(A1, MaskedIsNot { mask: SOCK_TYPE_MASK, value: kind })
}

pub(super) const RULES: &[Rule] = &[
    when(
        "socket",
        &[
            arg(A0, IsNot(AF_UNIX)),
            arg(A0, IsNot(AF_INET)),
            arg(A0, IsNot(AF_INET6)),
            arg(A0, IsNot(AF_NETLINK)),
        ],
        EAFNOSUPPORT,
        "an allow-list: vsock leaves every network namespace, and rare families have rare bugs",
    ),
    when(
        "socket",
        &[arg(A0, Is(AF_NETLINK)), arg(A2, IsNot(NETLINK_ROUTE))],
        EAFNOSUPPORT,
        "routing answers getifaddrs; the other protocols reach drivers, audit, xfrm and nftables",
    ),
    when(
        "socket",
        &[arg(A0, Is(AF_INET)), has_kind_other_than(SOCK_STREAM), has_kind_other_than(SOCK_DGRAM)],
        EAFNOSUPPORT,
        KIND,
    ),
    when(
        "socket",
        &[arg(A0, Is(AF_INET6)), has_kind_other_than(SOCK_STREAM), has_kind_other_than(SOCK_DGRAM)],
        EAFNOSUPPORT,
        KIND,
    ),
    when(
        "socket",
        &[
            arg(A0, Is(AF_INET)),
            arg(A2, IsNot(IPPROTO_IP)),
            arg(A2, IsNot(IPPROTO_TCP)),
            arg(A2, IsNot(IPPROTO_UDP)),
        ],
        EPROTONOSUPPORT,
        PROTOCOL,
    ),
    when(
        "socket",
        &[
            arg(A0, Is(AF_INET6)),
            arg(A2, IsNot(IPPROTO_IP)),
            arg(A2, IsNot(IPPROTO_TCP)),
            arg(A2, IsNot(IPPROTO_UDP)),
        ],
        EPROTONOSUPPORT,
        PROTOCOL,
    ),
    when(
        "socketpair",
        &[arg(A0, IsNot(AF_UNIX))],
        EAFNOSUPPORT,
        "no other family that is let through has pairs",
    ),
    // A descriptor of a host process, through a hatch.
    when(
        "getsockopt",
        &[arg(A1, Is(SOL_SOCKET)), arg(A2, Is(SO_PEERPIDFD))],
        ENOPROTOOPT,
        "a descriptor of the process behind a hatch",
    ),
    when(
        "setsockopt",
        &[arg(A1, Is(SOL_SOCKET)), arg(A2, Is(SO_PASSPIDFD))],
        ENOPROTOOPT,
        "descriptors of the processes that write to a hatch",
    ),
    // Protocols on top of a socket.
    when(
        "setsockopt",
        &[arg(A1, Is(SOL_TCP)), arg(A2, Is(TCP_ULP))],
        ENOPROTOOPT,
        "TLS and ESP in the kernel have written to shared pages; libraries use their own",
    ),
    when(
        "setsockopt",
        &[arg(A1, Is(SOL_UDP)), arg(A2, Is(UDP_ENCAP))],
        ENOPROTOOPT,
        "tunnels in the kernel",
    ),
    when("setsockopt", &[arg(A1, Is(SOL_ALG))], ENOPROTOOPT, "ciphers of the kernel"),
    when("setsockopt", &[arg(A1, Is(SOL_TLS))], ENOPROTOOPT, "TLS in the kernel"),
    when("ioctl", &[arg(A1, MaskedIs { mask: PAIR, value: OLD_BRIDGE })], EPERM, MODULE),
    when("ioctl", &[arg(A1, MaskedIs { mask: PAIR, value: VLAN })], EPERM, MODULE),
    when("ioctl", &[arg(A1, MaskedIs { mask: QUARTET, value: BRIDGE })], EPERM, MODULE),
    // Out-of-band data.
    when("sendto", &[arg(A3, HasAny(MSG_OOB))], EOPNOTSUPP, OUT_OF_BAND),
    when("sendmsg", &[arg(A2, HasAny(MSG_OOB))], EOPNOTSUPP, OUT_OF_BAND),
    when("sendmmsg", &[arg(A3, HasAny(MSG_OOB))], EOPNOTSUPP, OUT_OF_BAND),
    when("recvfrom", &[arg(A3, HasAny(MSG_OOB))], EOPNOTSUPP, OUT_OF_BAND),
    when("recvmsg", &[arg(A2, HasAny(MSG_OOB))], EOPNOTSUPP, OUT_OF_BAND),
    when("recvmmsg", &[arg(A3, HasAny(MSG_OOB))], EOPNOTSUPP, OUT_OF_BAND),
];
