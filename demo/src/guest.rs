//! The run itself: the profile, the hatch, the script, and the facts that the host gathers around
//! it. Whether a wall held is judged elsewhere.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use postern::hatch::GrpcHatch;
use postern::plan::{MountOp, Plan};
use postern::profile::Limits;
use postern::{Command, Enforcement, ProcResult, Sandbox, SandboxProfile, WorkspaceDir};
use postern_proto::penguins::{DESCRIPTORS, penguins_server::PenguinsServer};
use serde::de::DeserializeOwned;

use crate::cache::Ready;
use crate::census::{self, Census};
use crate::error::DemoError;
use crate::judge::{Claims, Seen, Shown, harmless, judge};
use crate::python::LINES_MAX;
use crate::report::{Answer, Milliseconds, Report, Verdict, Walls};
use crate::service::PenguinTable;
use crate::target::Target;
use crate::{data, milliseconds};

/// What a guest does here that no one trusts.
const SCRIPT: &str = include_str!("../guest/analyse.py");
/// The one method that it may call.
const ALLOWED: &str = "/penguins.Penguins/Rows";

/// Processes that the guest may have: enough for the numeric libraries' threads.
const NPROC: u16 = 256;
/// How many a bomb makes that nothing stops: it must not take the host along.
const FORKS_MAX: u16 = 4 * NPROC;
const TIMEOUT: Duration = Duration::from_secs(120);

/// The most that is taken of one file that the guest left.
const FILE_BYTES_MAX: u64 = 4 << 20;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// What the guest left in its workspace.
struct Left {
    result: Vec<u8>,
    plot: Vec<u8>,
    attempts: Vec<u8>,
}

/// Runs the script once and reports on it.
pub(crate) fn run(ready: &Ready, out: &Path) -> Result<Report, DemoError> {
    let start = Instant::now();
    let (target, table) = (Target::new()?, PenguinTable::new(ready.database()));
    let hatch = GrpcHatch::allowing([ALLOWED])
        .descriptors(DESCRIPTORS)
        .add_service(PenguinsServer::new(table.clone()))
        .build()?;
    let profile = SandboxProfile::builder()
        .venv(ready.venv())
        .stubs([target.stubs()])
        .limits(Limits { nproc: Some(NPROC.into()), ..Limits::default() })
        .build()?;
    let sandbox = Sandbox::builder(profile).hatch(hatch.clone()).build()?;
    let enforcement = sandbox.verify()?;
    let sandbox_stood = start.elapsed();

    let before = data::count(&ready.database())?;
    let homes = homes();
    let facts = facts(&target, &ready.database(), &homes);
    let census =
        Census::begin(&target.token).map_err(DemoError::file("count", "/proc".as_ref()))?;
    let command = Command::python(SCRIPT).script_name("analyse.py").arg(facts).timeout(TIMEOUT);
    let result = sandbox.run(command)?;
    let processes = [census.end(), census::count(&target.token)];
    if !result.ok() {
        return Err(ended_badly(&result));
    }
    let left = Left::read(sandbox.workspace())?;

    let seen = Seen {
        refused: hatch.refused(),
        removals: table.remove_calls(),
        rows: [before, data::count(&ready.database())?],
        connections: target.connections(),
        has_own_network: enforcement.namespaces.net,
        is_secret_told: left.tells(&target, &result),
        is_secret_kept: target.is_untouched(),
        shown: shown(sandbox.plan(), &target, &ready.database()),
        homes: shown_of(sandbox.plan(), &homes),
        is_core_pattern_kept: target.is_core_pattern_kept(),
        seccomp: enforcement.seccomp.to_string(),
        processes,
        nproc: NPROC.into(),
    };
    let mut report = report(&left, &seen, &enforcement)?;
    (report.plot, report.result) = left.keep(out)?;
    report.ms.sandbox = milliseconds(sandbox_stood);
    report.ms.guest = milliseconds(result.duration());
    Ok(report)
}

/// Directories of the host's people that are worth a look.
fn homes() -> Vec<String> {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1 && home.starts_with('/'));
    let mut homes: Vec<_> = ["/root".to_owned()].into_iter().chain(home).collect();
    homes.dedup();
    homes
}

/// What the script is to aim at, as its argument.
fn facts(target: &Target, database: &Path, homes: &[String]) -> String {
    serde_json::json!({
        "token": target.token,
        "canary": target.canary(),
        "database": database,
        "port": target.port(),
        "homes": homes,
        "forks": FORKS_MAX,
    })
    .to_string()
}

fn ended_badly(result: &ProcResult) -> DemoError {
    let text = result.stderr_report();
    let lines: Vec<_> = text.lines().map(harmless).filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(LINES_MAX);
    let lines = lines.into_iter().skip(first).collect();
    DemoError::Guest { returncode: result.returncode(), lines }
}

fn report(left: &Left, seen: &Seen, enforcement: &Enforcement) -> Result<Report, DemoError> {
    let answer: Answer = taken("result.json", &left.result)?;
    let claims: Claims = taken("attempts.json", &left.attempts)?;
    let attempts = judge(&claims, seen);
    Ok(Report {
        held: attempts.iter().all(|attempt| attempt.verdict == Verdict::Held),
        answer,
        plot: PathBuf::new(),
        result: PathBuf::new(),
        attempts,
        sandbox: Walls {
            kernel_uid: enforcement.kernel_uid,
            shared_uid: enforcement.shared_uid,
            shared_groups: enforcement.shared_groups.clone(),
            seccomp: enforcement.seccomp.to_string(),
        },
        first_use: false,
        ms: Milliseconds::default(),
    })
}

fn taken<T: DeserializeOwned>(file: &'static str, bytes: &[u8]) -> Result<T, DemoError> {
    let what = |source: serde_json::Error| harmless(&source.to_string());
    serde_json::from_slice(bytes).map_err(|source| DemoError::Answer { file, what: what(source) })
}

impl Left {
    fn read(workspace: Option<&WorkspaceDir>) -> Result<Left, DemoError> {
        let file = |name: &'static str| {
            let failed = |source: std::io::Error| source.to_string();
            let bytes = workspace
                .ok_or_else(|| "there is no workspace".to_owned())
                .and_then(|workspace| workspace.read(name, FILE_BYTES_MAX).map_err(failed));
            bytes.map_err(|what| DemoError::Answer { file: name, what })
        };
        let left = Left {
            result: file("result.json")?,
            plot: file("plot.png")?,
            attempts: file("attempts.json")?,
        };
        match left.plot.starts_with(PNG) {
            true => Ok(left),
            false => Err(DemoError::Answer { file: "plot.png", what: "it is no PNG".to_owned() }),
        }
    }

    /// Whether the host's secret is in anything that came out.
    fn tells(&self, target: &Target, result: &ProcResult) -> bool {
        let all = [&self.result, &self.plot, &self.attempts, &result.stdout, &result.stderr];
        all.iter().any(|bytes| target.is_told(bytes))
    }

    /// Puts the plot and the answer where the caller wants them.
    fn keep(&self, out: &Path) -> Result<(PathBuf, PathBuf), DemoError> {
        std::fs::create_dir_all(out).map_err(DemoError::file("make", out))?;
        let out = std::path::absolute(out).map_err(DemoError::file("find", out))?;
        let (plot, result) = (out.join("plot.png"), out.join("result.json"));
        std::fs::write(&plot, &self.plot).map_err(DemoError::file("write", &plot))?;
        std::fs::write(&result, &self.result).map_err(DemoError::file("write", &result))?;
        Ok((plot, result))
    }
}

/// What the plan binds, and where.
fn binds(plan: &Plan) -> impl Iterator<Item = (&Path, &Path)> {
    plan.template.iter().chain(&plan.run).filter_map(|operation| {
        let MountOp::Bind { source, target, .. } = operation else { return None };
        Some((source.path.as_path(), Path::new(target.to_str().ok()?)))
    })
}

/// Which of the files that the script wants a mount of the plan shows.
fn shown(plan: &Plan, target: &Target, database: &Path) -> Shown {
    let is_whole_host = matches!(plan.template.first(), Some(MountOp::HostRoot));
    let is_shown = |path: &Path| {
        // As a plan has it. What cannot be resolved is not there to be shown.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        is_whole_host || binds(plan).any(|(source, _)| path.starts_with(source))
    };
    Shown {
        secret: is_shown(&target.canary()),
        database: is_shown(database),
        shadow: is_shown("/etc/shadow".as_ref()),
    }
}

/// The entries of each directory that are on the way to something that the plan binds.
fn shown_of(plan: &Plan, homes: &[String]) -> Vec<(String, Vec<String>)> {
    let entries = |home: &String| {
        let below = binds(plan).filter_map(|(_, target)| target.strip_prefix(home).ok());
        let first = below.filter_map(|below| below.iter().next());
        let mut entries: Vec<_> = first.map(|entry| entry.to_string_lossy().into_owned()).collect();
        entries.sort();
        entries.dedup();
        (home.clone(), entries)
    };
    homes.iter().map(entries).collect()
}
