//! The network of a run: loopback and nothing else.

use std::path::Path;

use postern::SandboxProfile;
use postern::profile::Loopback;
use postern::seccomp::Level;
use postern_tests::{Row, Watch, ask, check};
use serde_json::json;

use crate::{default_sandbox, sandbox};

#[test]
fn loopback_carries_bytes() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["loopback"]);
    assert_eq!(answer["v4"], json!("word"));
    // A kernel booted without IPv6 has no such file.
    let v6 =
        if Path::new("/proc/net/if_inet6").exists() { json!("word") } else { answer["v6"].clone() };
    assert_eq!(answer["v6"], v6);
}

#[test]
fn loopback_can_be_left_down() {
    let _watch = Watch::begin();
    let profile = SandboxProfile::builder().loopback(Loopback::Down).build().unwrap();
    let answer = ask(&sandbox(profile), &["loopback"]);
    let errno = answer["v4"]["errno"].as_i64().unwrap_or(0);
    let refused = [libc::ENETUNREACH, libc::EADDRNOTAVAIL].map(i64::from);
    assert!(refused.contains(&errno), "{answer}");
}

#[test]
fn loopback_is_the_only_interface() {
    let _watch = Watch::begin();
    let answer = ask(&default_sandbox(), &["read", "/proc/net/dev"]);
    let lines = answer["/proc/net/dev"].as_str().unwrap().lines().skip(2);
    let names: Vec<_> = lines.filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    assert_eq!(names, ["lo"]);
}

#[test]
fn netlink_answers_about_routes_only() {
    let _watch = Watch::begin();
    let sandbox = default_sandbox();
    let route: [Row<'_>; 1] = [("route", &["syscall", "41", "16", "3", "0"], "", json!(3))];
    check(&sandbox, &route);
    for protocol in 1..32 {
        let answer = ask(&sandbox, &["syscall", "41", "16", "3", &protocol.to_string()]);
        assert_eq!(answer, json!({ "errno": libc::EAFNOSUPPORT }), "protocol {protocol}");
    }
}

#[test]
fn no_packet_socket_and_no_raw_socket() {
    let _watch = Watch::begin();
    // The filter does not know the families; behind it the capability is missing.
    for (level, errno) in [(Level::Default, libc::EAFNOSUPPORT), (Level::Compat, libc::EPERM)] {
        let refused = json!({ "errno": errno });
        let rows: [Row<'_>; 3] = [
            ("packet", &["syscall", "41", "17", "3", "768"], "", refused.clone()),
            ("raw IPv4", &["syscall", "41", "2", "3", "1"], "", refused.clone()),
            ("raw IPv6", &["syscall", "41", "10", "3", "58"], "", refused),
        ];
        check(&sandbox(SandboxProfile::builder().seccomp(level).build().unwrap()), &rows);
    }
}
