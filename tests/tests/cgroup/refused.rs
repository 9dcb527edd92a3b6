//! Hosts, and places on a host, where no run can have a group: in words that say what to do.

#![expect(clippy::disallowed_methods, reason = "a test starts the command that it is about")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use postern::check::{self, Name, Status};
use postern::error::{Error, LaunchError, Refusal};
use postern::plan::CgroupResource;
use postern::profile::{Cgroup, CgroupNeed};
use postern::{CgroupGap, LimitHit, Sandbox};

use crate::stage::{Stage, profile, shell};

/// The command: beside the copies that the runner made, or where cargo puts it.
pub(crate) fn postern() -> PathBuf {
    let copies = std::env::var_os("POSTERN_TEST_BIN_DIR").map(PathBuf::from);
    let built = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let path = copies.unwrap_or_else(built).join("postern");
    assert!(path.exists(), "{} is not built: cargo build -p postern-cli", path.display());
    path
}

fn memory() -> Cgroup {
    Cgroup { memory_bytes: Some(64 << 20), ..Cgroup::default() }
}

fn refusal(limits: Cgroup) -> (CgroupResource, CgroupGap, String) {
    let limits = Cgroup { need: CgroupNeed::Require, ..limits };
    match Sandbox::builder(profile(limits)).build() {
        Err(Error::Refused(Refusal::CgroupUnavailable { limit, gap })) => {
            let words = Refusal::CgroupUnavailable { limit, gap: gap.clone() }.to_string();
            (limit, gap, words)
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Nothing is delegated: what is required is refused, what is wished for is reported.
pub(crate) fn here() {
    let (limit, gap, words) = refusal(memory());
    assert_eq!(limit, CgroupResource::Memory);
    assert!(words.contains(gap.reason()) && words.contains(gap.fix()), "{words}");
    assert!(words.starts_with("cgroup.memory_bytes: "), "{words}");
    let sandbox = Sandbox::builder(profile(memory())).build().unwrap();
    let result = shell(&sandbox, "exit 0");
    assert_eq!(result.oom, LimitHit::Unavailable(gap.reason()));
    let enforcement = &result.enforcement;
    assert_eq!((enforcement.cgroup.as_ref(), enforcement.cgroup_gaps.len()), (None, 2));
    let quota = enforcement.quotas.iter().find(|quota| quota.name == "memory").unwrap();
    assert_eq!((quota.limit, quota.gap), (Some(64 << 20), Some(gap.reason())));
    drop(sandbox);
    let report = check::run(&profile(memory()));
    assert!(report.ok, "{:?}", report.failure);
    for name in [Name::Cgroup, Name::Memory] {
        let found = report.findings.iter().find(|finding| finding.name == name).unwrap();
        assert_eq!(found.status, Status::Weaker, "{found:?}");
        assert_eq!(found.fix.as_deref(), Some(gap.fix()), "{found:?}");
    }
}

/// A group with processes in it gives no controller to others: never moved unasked.
pub(crate) fn in_the_way(stage: &Stage) {
    let service = stage.parent.join("service");
    let (_, gap, words) = refusal(Cgroup { parent: Some(service), ..memory() });
    // Without its controllers delegated, a user may not even write there.
    let is_told = matches!(gap, CgroupGap::ServiceInside { .. } | CgroupGap::NotWritable { .. });
    assert!(is_told && words.contains(gap.fix()), "{words}");
}

fn rows(stage: &Stage) -> [(Cgroup, CgroupResource, bool); 3] {
    let disks = Cgroup { io_weight: Some(50), ..Cgroup::default() };
    let nowhere = Cgroup { parent: Some(stage.parent.join("missing")), ..memory() };
    let elsewhere = Cgroup { parent: Some("/usr".into()), ..memory() };
    [
        (disks, CgroupResource::IoWeight, true),
        (nowhere, CgroupResource::Memory, false),
        (elsewhere, CgroupResource::Memory, false),
    ]
}

/// The controller of disks is not delegated there; the others are.
pub(crate) fn required(stage: &Stage) {
    for (limits, resource, lacks_controller) in rows(stage) {
        let (limit, gap, words) = refusal(limits);
        assert_eq!(limit, resource, "{words}");
        let is_controller = matches!(gap, CgroupGap::NoController { .. });
        assert_eq!(is_controller, lacks_controller, "{words}");
    }
    let both = Cgroup { io_weight: Some(50), ..memory() };
    let sandbox = Sandbox::builder(profile(both)).build().unwrap();
    let enforcement = sandbox.verify().unwrap();
    let gaps: Vec<_> = enforcement.cgroup_gaps.iter().map(|(limit, _)| limit.resource).collect();
    assert_eq!(gaps, [CgroupResource::IoWeight]);
    assert!(enforcement.cgroup.is_some());
}

/// A service that may no longer write to the group above both is told what is the matter; root may
/// write anywhere.
pub(crate) fn cut_off(stage: &Stage) {
    let limits = Cgroup { need: CgroupNeed::Require, ..memory() };
    let sandbox = Sandbox::builder(profile(limits)).build().unwrap();
    let members = stage.parent.join("cgroup.procs");
    let mode = |mode| fs::set_permissions(&members, Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    let (met, refused) = (sandbox.run(["true"]), refusal_of(memory()));
    mode(0o644);
    if rustix::process::geteuid().is_root() {
        assert!(met.unwrap().ok() && refused.is_none());
        return;
    }
    let Err(Error::Launch(LaunchError::Step(failure))) = met else { panic!("{met:?}") };
    assert_eq!(failure.cause.map(|cause| cause.name), Some("cgroup-apart"), "{failure}");
    // A sandbox that is built only now does not come so far.
    assert!(matches!(refused, Some(CgroupGap::NotWritable { .. } | CgroupGap::Apart { .. })));
    assert!(sandbox.run(["true"]).unwrap().ok());
}

fn refusal_of(limits: Cgroup) -> Option<CgroupGap> {
    let limits = Cgroup { need: CgroupNeed::Require, ..limits };
    match Sandbox::builder(profile(limits)).build() {
        Err(Error::Refused(Refusal::CgroupUnavailable { gap, .. })) => Some(gap),
        Ok(_) | Err(_) => None,
    }
}

/// The command's options do the same, and its JSON has the verdict.
pub(crate) fn command(_: &Stage) {
    let mut command = Command::new(postern());
    command.args(["run", "--json", "--memory", "48M", "--cpus", "0.9", "--pids", "40"]);
    command.args(["--stdin", "null", "--", "sh", "-c", "tail /dev/zero"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["oom"], true, "{object}");
    assert_eq!(object["pids_limit"], false, "{object}");
    assert!(object["usage"]["cgroup"]["user_ms"].is_number(), "{object}");
    assert_eq!(output.status.code(), Some(137));
}
