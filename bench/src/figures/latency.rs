//! How long one launch takes: on an open sandbox, with the sandbox's own making, and as a command.

use std::cell::RefCell;
use std::process::Stdio;
use std::time::Duration;

use super::Setting;
use crate::measure::{Contender, Effort, Outcome, alternate, timed, took};
use crate::report::Table;
use crate::world::{OUR_NOOP, PEER_NOOP, complain, process, run_ours};

/// Longer than any of the work that a run leaves to be done after it.
const PACE: Duration = Duration::from_millis(5);

/// The no-op on an open sandbox, beside bubblewrap and beside no sandbox at all.
pub(crate) fn noop(setting: &Setting) -> Outcome<Vec<Table>> {
    let sandbox = setting.world.sandbox()?;
    let alone = setting.world.sandbox_without_landlock()?;
    let mut tables = Vec::new();
    let rows = [
        (Duration::ZERO, "no-op on an open sandbox, back to back", [5.0, 10.0]),
        (PACE, "no-op on an open sandbox, 5 ms apart", [8.0, 12.0]),
    ];
    for (pause, title, [must, aim]) in rows {
        let mut peer = setting.world.peer()?;
        let bare = || {
            let output = process(&setting.world.noop()).stdin(Stdio::null()).output()?;
            output.status.success().then_some(output).ok_or("the no-op failed".into())
        };
        let mut contenders = [
            Contender::new("bwrap as PyPI postern 0.5 calls it", pause, || peer.run()),
            Contender::new("postern, Sandbox::run", pause, || run_ours(&sandbox)),
            Contender::new("postern without Landlock", pause, || run_ours(&alone)),
            Contender::new("no sandbox, posix_spawn", pause, || took(bare)),
        ];
        let series = alternate(setting.effort, &mut contenders)?;
        drop(contenders);
        let mut table = Table::of_series(title, &series);
        if let [bwrap, ours, ..] = series.as_slice() {
            let ratio = bwrap.pairwise(ours, |bwrap, ours| bwrap / ours).p50;
            table.promise("times faster than bwrap", ratio, must, aim);
        }
        tables.push(table);
    }
    Ok(tables)
}

/// What a sandbox costs before its first run, and a whole one for a single run.
pub(crate) fn build(setting: &Setting) -> Outcome<Vec<Table>> {
    let world = &setting.world;
    let mut peer = world.peer()?;
    let drops = RefCell::new(Vec::new());
    let build_only = || {
        let (built, sandbox) = timed(|| world.sandbox())?;
        let (dropped, ()) = timed(|| {
            drop(sandbox);
            Ok(())
        })?;
        drops.borrow_mut().push(dropped.as_secs_f64() * 1e6);
        Ok(built)
    };
    let once = || took(|| run_ours(&world.builder(0)?.single_use(true).build()?));
    let none = Duration::ZERO;
    let mut contenders = [
        Contender::new("bwrap, one run", none, || peer.run()),
        Contender::new("postern, Sandbox::build", none, build_only),
        // The samples of the builds before it, so that no build is made for the drop alone.
        Contender::in_batches("postern, drop of the Sandbox", |_| Ok(drops.take())),
        Contender::new("postern, build, one run, drop (single_use)", none, once),
    ];
    let series = alternate(setting.effort, &mut contenders)?;
    Ok(vec![Table::of_series("making a sandbox", &series)])
}

/// Two whole processes.
pub(crate) fn cli(setting: &Setting) -> Outcome<Vec<Table>> {
    let title = "the command line: whole processes";
    let Some(cli) = setting.cli.as_ref().filter(|path| path.is_file()) else {
        let mut table = Table::new(title, "us");
        table.note("SKIPPED: no `postern` binary at the path that --cli names");
        return Ok(vec![table]);
    };
    let mut peer = setting.world.peer()?;
    let quiet = |mut command: std::process::Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = command.output()?;
        if output.status.success() { Ok(()) } else { Err(complain(&output)) }
    };
    let bind = {
        let mut bind = setting.world.noop().into_os_string();
        bind.push(format!(":{OUR_NOOP}"));
        bind
    };
    let ours = || {
        let mut command = process(cli);
        command.args(["run", "--ro-bind"]).arg(&bind).args(["--", OUR_NOOP]);
        quiet(command)
    };
    let mut contenders = [
        Contender::new("bwrap ARGUMENTS /noop", Duration::ZERO, || {
            let command = peer.command([PEER_NOOP])?;
            took(|| quiet(command))
        }),
        Contender::new("postern run -- /noop", Duration::ZERO, || took(ours)),
        Contender::new("postern --version", Duration::ZERO, || {
            let mut command = process(cli);
            command.arg("--version");
            took(|| quiet(command))
        }),
        Contender::new("bwrap --version", Duration::ZERO, || {
            let mut command = process(&setting.bwrap);
            command.arg("--version");
            took(|| quiet(command))
        }),
    ];
    let effort = Effort { batch: setting.effort.batch.div_ceil(2), ..setting.effort };
    let series = alternate(effort, &mut contenders)?;
    let mut table = Table::of_series(title, &series);
    if let [bwrap, ours, ..] = series.as_slice() {
        let ratio = bwrap.pairwise(ours, |bwrap, ours| bwrap / ours).p50;
        table.promise("times faster than the bwrap command", ratio, 2.3, 4.0);
    }
    Ok(vec![table])
}
