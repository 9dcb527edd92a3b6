//! Which kernel uid an unprivileged service's guest gets, row by row, and why it is no own one.

use postern::host::{Host, IdRange, MapTools};
use postern::plan::{KernelId, Tier, WhyShared, resolve};
use postern::profile::SandboxProfile;

use crate::hosts::{self, Machine};

/// A name, the profile, what is different about the host, and the leased range or why there is none.
type Row = (&'static str, &'static str, fn(&mut Host), Result<(u32, u32), WhyShared>);

const fn range(first: u32, count: u32) -> IdRange {
    IdRange { first, count }
}

fn rows() -> Vec<Row> {
    [ranges(), tools(), uses()].concat()
}

/// What the files say.
fn ranges() -> Vec<Row> {
    let subuid = "/etc/subuid";
    let no_gids = WhyShared::NoRange { file: "/etc/subgid" };
    let taken = WhyShared::RangeTaken { file: subuid };
    let unmapped = WhyShared::RangeUnmapped { file: subuid };
    vec![
        ("both files and tools", "", |_| {}, Ok((100_000, 165_535))),
        ("no uids", "", |h| h.subordinate.uids.clear(), Err(WhyShared::NoRange { file: subuid })),
        ("no gids", "", |h| h.subordinate.gids.clear(), Err(no_gids)),
        (
            "fewer gids than uids",
            "",
            |h| h.subordinate.gids = vec![range(100_000, 10)],
            Ok((100_000, 100_009)),
        ),
        (
            "one id each",
            "",
            |h| {
                h.subordinate.uids = vec![range(100_000, 1)];
                h.subordinate.gids = vec![range(100_000, 1)];
            },
            Ok((100_000, 100_000)),
        ),
        (
            "a larger range too",
            "",
            |h| {
                h.subordinate.uids.insert(0, range(50_000, 10));
                h.subordinate_uids.push(range(50_000, 10));
            },
            Ok((100_000, 165_535)),
        ),
        (
            "another user's range over it",
            "",
            |h| h.subordinate_uids.push(range(165_000, 65_536)),
            Err(taken.clone()),
        ),
        (
            "another user's range over the larger one",
            "",
            |h| {
                h.subordinate.uids.push(range(300_000, 100));
                h.subordinate_uids.extend([range(300_000, 100), range(100_500, 1)]);
            },
            Ok((300_000, 300_099)),
        ),
        (
            "a range with the user's own id",
            "",
            |h| {
                h.subordinate.uids = vec![range(500, 1000)];
                h.subordinate_uids = vec![range(500, 1000)];
            },
            Err(taken.clone()),
        ),
        (
            "a range with root's id",
            "",
            |h| {
                h.subordinate.uids = vec![range(0, 10)];
                h.subordinate_uids = vec![range(0, 10)];
            },
            Err(taken),
        ),
        ("a namespace without them", "", |h| h.uids = vec![range(0, 65_536)], Err(unmapped)),
    ]
}

/// What the tools are, and who would run them.
fn tools() -> Vec<Row> {
    let powerless = WhyShared::ToolPowerless { path: "/usr/bin/newuidmap".into() };
    vec![
        (
            "no tool",
            "",
            |h| h.subordinate.tools = MapTools::Missing { program: "newgidmap" },
            Err(WhyShared::ToolMissing { program: "newgidmap" }),
        ),
        (
            "a tool without power",
            "",
            |h| {
                let path = "/usr/bin/newuidmap".into();
                h.subordinate.tools = MapTools::Powerless { path };
            },
            Err(powerless),
        ),
        (
            "no new privileges",
            "",
            |h| h.subordinate.tools = MapTools::NoNewPrivs,
            Err(WhyShared::NoNewPrivs),
        ),
        (
            "another group",
            "",
            |h| h.subordinate.tools = MapTools::OtherGroup { primary: 100 },
            Err(WhyShared::OtherGroup { primary: 100 }),
        ),
        ("no user", "", |h| h.subordinate.tools = MapTools::NoUser, Err(WhyShared::NoUser)),
    ]
}

/// What the profile wants.
fn uses() -> Vec<Row> {
    let needs = |path: &str| Err(WhyShared::Needs { path: path.into() });
    vec![
        ("its own id by name", "host_uid = 1000", |_| {}, Err(WhyShared::Named)),
        (
            "a workspace of its own",
            "workspace.directory.path = '/srv/job'",
            |_| {},
            needs("/srv/job"),
        ),
        (
            "a directory of its own to write to",
            "rw_binds = ['/srv/job']",
            |_| {},
            needs("/srv/job"),
        ),
        ("the same to read", "ro_binds = ['/srv/job']", |_| {}, Ok((100_000, 165_535))),
        (
            "a workspace that is opened",
            "workspace.directory = { path = '/srv/job', access = 'shared' }",
            |_| {},
            Ok((100_000, 165_535)),
        ),
    ]
}

fn machine(change: fn(&mut Host)) -> Machine {
    hosts::with_own_checkout().with(change)
}

#[test]
fn a_dedicated_uid_or_the_reason_why_not() {
    for (name, text, change, expected) in rows() {
        let profile = SandboxProfile::from_toml_str(text).unwrap();
        let plan = resolve(&profile, &machine(change).facts(&profile)).unwrap();
        let identity = &plan.identity;
        let found = match (identity.kernel_uid, identity.why_shared.clone()) {
            (KernelId::Leased { first, last }, None) => Ok((first, last)),
            (KernelId::Own(1000), Some(why)) => Err(why),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found, expected, "{name}");
        let is_dedicated = expected.is_ok();
        assert_eq!(identity.tier == Tier::Subordinate, is_dedicated, "{name}");
        assert_eq!(identity.shared_groups.is_empty(), is_dedicated, "{name}");
        assert_eq!(identity.map_tools.is_some(), is_dedicated, "{name}");
    }
}

/// What stands in the way is said, and what to do about it, where the profile refuses to go on.
#[test]
fn every_reason_refuses_where_the_profile_says_so() {
    for (name, text, change, expected) in rows() {
        let text = format!("shared_uid = 'refuse'\n{text}");
        let profile = SandboxProfile::from_toml_str(&text).unwrap();
        let refused = resolve(&profile, &machine(change).facts(&profile)).err();
        let words = refused.map(|refusal| refusal.to_string());
        let expected = expected.err().map(|why| {
            let (why, fix) = (why.to_string(), why.fix());
            format!("shared_uid: the guest would have the service's own kernel uid: {why}; {fix} [shared-uid]")
        });
        assert_eq!(words, expected, "{name}");
    }
}

#[test]
fn subordinate_ids_can_be_named() {
    let rows = [
        (
            "host_uid = 100007\nhost_gid = 100009",
            KernelId::Fixed(100_007),
            KernelId::Fixed(100_009),
        ),
        (
            "host_gid = 165535",
            KernelId::Leased { first: 100_000, last: 165_535 },
            KernelId::Fixed(165_535),
        ),
    ];
    for (text, uid, gid) in rows {
        let profile = SandboxProfile::from_toml_str(text).unwrap();
        let plan = resolve(&profile, &machine(|_| {}).facts(&profile)).unwrap();
        assert_eq!((plan.identity.kernel_uid, plan.identity.kernel_gid), (uid, gid), "{text}");
    }
}
