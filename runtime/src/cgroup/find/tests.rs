//! A made-up hierarchy in a directory, and what a search says of it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{CgroupSupport, Sight};
use crate::cgroup::{CgroupGap, Controller};
use crate::profile::{Cgroup, CgroupService};

/// A directory with groups in it, gone when dropped.
struct Made(PathBuf);

impl Made {
    /// `GROUP CONTROLLERS: MEMBERS` a line; the root of all has no `cgroup.type`.
    fn new(name: &str, groups: &[(&str, &str, &str)]) -> Made {
        let root = std::env::temp_dir().join(format!("postern-find-{name}-{}", std::process::id()));
        for (group, controllers, members) in groups {
            let group = root.join(group);
            fs::create_dir_all(&group).unwrap();
            let files = [
                ("cgroup.controllers", *controllers),
                ("cgroup.procs", members),
                ("cgroup.subtree_control", ""),
                ("cgroup.type", "domain\n"),
            ];
            let files = files.iter().filter(|(file, _)| *file != "cgroup.type" || group != root);
            files.for_each(|(file, text)| fs::write(group.join(file), text).unwrap());
        }
        Made(root)
    }

    fn sight(&self, own: &str, is_managed: bool) -> Sight {
        let mount = format!("30 23 0:26 / {} rw shared:4 - cgroup2 cgroup2 rw", self.0.display());
        Sight {
            own: own.to_owned(),
            mounts: format!("22 1 0:5 / / rw - ext4 /dev/x rw\n{mount}\n"),
            version_one: "#subsys\nmemory\t0\t9\t1\ncpu\t3\t9\t1\nblkio\t0\t1\t1\n".to_owned(),
            is_managed,
            pid: 42,
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The parent below the made-up root, or the gap's reason.
fn outcome(made: &Made, found: CgroupSupport) -> Result<(String, bool), CgroupGap> {
    match found {
        CgroupSupport::Beneath { parent, moves_service, .. } => {
            let parent = parent.strip_prefix(&made.0).unwrap_or(Path::new("?"));
            Ok((parent.display().to_string(), moves_service))
        }
        CgroupSupport::Nowhere(gap) => Err(gap),
        CgroupSupport::NotLooked => panic!("nobody looked"),
    }
}

const ALL: &str = "cpuset cpu io memory pids\n";

#[test]
fn the_delegated_group_above_the_service_is_found() {
    let groups = [
        ("", ALL, ""),
        ("x", ALL, ""),
        ("x/leaf", "", "42\n"),
        ("busy", ALL, "7\n"),
        ("busy/leaf", "", "42\n"),
        ("alone", ALL, "42\n"),
        ("crowd", ALL, "42\n43\n"),
    ];
    let made = Made::new("found", &groups);
    let at = |path: &str| made.0.join(path);
    let parent = |path| Cgroup { parent: Some(at(path)), ..Cgroup::default() };
    let found = Cgroup::default;
    let moved = || Cgroup { service: CgroupService::Move, ..Cgroup::default() };
    let inside = |group| Err(CgroupGap::ServiceInside { group: at(group) });
    let ok = |parent: &str, moves: bool| Ok((parent.to_owned(), moves));
    let (crowd, nothing) = (parent("crowd"), parent("nothing"));
    type Row<'a> = (&'a str, &'a str, Cgroup, Result<(String, bool), CgroupGap>);
    let rows: [Row<'_>; 9] = [
        ("in a leaf", "0::/x/leaf\n", found(), ok("x", false)),
        ("beside others", "0::/busy/leaf\n", found(), inside("busy")),
        ("in the root of all", "0::/\n", found(), ok("", false)),
        ("named", "0::/x/leaf\n", parent("x"), ok("x", false)),
        ("named, where the service is", "0::/alone\n", parent("alone"), inside("alone")),
        (
            "named, and left",
            "0::/alone\n",
            Cgroup { service: CgroupService::Move, ..parent("alone") },
            ok("alone", true),
        ),
        (
            "not alone there",
            "0::/crowd\n",
            Cgroup { service: CgroupService::Move, ..crowd },
            inside("crowd"),
        ),
        (
            "named, and not there",
            "0::/x/leaf\n",
            nothing,
            Err(CgroupGap::NoParent { parent: at("nothing") }),
        ),
        ("out of reach", "0::/../y\n", moved(), Err(CgroupGap::Hidden)),
    ];
    for (name, own, wanted, expected) in rows {
        let found = CgroupSupport::seen(&made.sight(own, false), &wanted);
        assert_eq!(outcome(&made, found), expected, "{name}");
    }
}

#[test]
fn a_manager_marks_what_it_delegates() {
    let made = Made::new("marked", &[("", ALL, ""), ("x", ALL, ""), ("x/leaf", "", "42\n")]);
    let sight = made.sight("0::/x/leaf\n", true);
    let not_ours = Err(CgroupGap::NotDelegated { group: made.0.join("x/leaf") });
    let found = CgroupSupport::seen(&sight, &Cgroup::default());
    assert_eq!(outcome(&made, found), not_ours);
    // A file system of the tests need not know such marks.
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(made.0.join("x"), "user.delegate", b"1", flags).is_ok() {
        let found = CgroupSupport::seen(&sight, &Cgroup::default());
        assert_eq!(outcome(&made, found), Ok(("x".to_owned(), false)));
    }
}

#[test]
fn what_is_not_given_is_not_used() {
    let made = Made::new("given", &[("", "memory pids io\n", ""), ("x", "memory io\n", "")]);
    let wanted = Cgroup { parent: Some(made.0.join("x")), ..Cgroup::default() };
    let found = CgroupSupport::seen(&made.sight("0::/x/leaf\n", false), &wanted);
    let CgroupSupport::Beneath { controllers, version_one, .. } = found else {
        panic!("{found:?}");
    };
    assert_eq!(controllers, [Controller::Memory, Controller::Io]);
    assert_eq!(version_one, [Controller::Cpu]);
}

#[test]
fn a_machine_of_version_one_is_told_plainly() {
    let made = Made::new("old", &[("", "", "")]);
    let rows = [
        ("both, the controllers in the old one", "4:memory:/\n0::/\n", true, CgroupGap::VersionOne),
        ("the old one alone", "4:memory:/\n1:name=systemd:/\n", true, CgroupGap::VersionOne),
        ("none", "", true, CgroupGap::NotMounted),
        ("not mounted", "0::/\n", false, CgroupGap::NotMounted),
    ];
    for (name, own, is_mounted, expected) in rows {
        let mut sight = made.sight(own, false);
        sight.version_one =
            "memory\t4\t1\t1\ncpu\t3\t1\t1\nblkio\t2\t1\t1\npids\t8\t1\t1\n".to_owned();
        if !is_mounted {
            sight.mounts.clear();
        }
        let found = CgroupSupport::seen(&sight, &Cgroup::default());
        assert_eq!(found, CgroupSupport::Nowhere(expected), "{name}");
    }
}
