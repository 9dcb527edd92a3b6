//! What a person waits for who runs a line of Python: ours beside the Python package of the same
//! name, with the same interpreter in both guests.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use postern::{Sandbox, SandboxProfile};

use super::Setting;
use crate::measure::{Contender, Outcome, alternate, took};
use crate::remote::Remote;
use crate::report::Table;
use crate::world::{complain, process};

const SERVE: &str = include_str!("../../peer/serve.py");
const PYTHON: &str = "/usr/bin/python3";

/// `run_python("pass")` on an open sandbox, as a command, and with no sandbox at all.
pub(crate) fn python(setting: &Setting) -> Outcome<Vec<Table>> {
    let title = "run_python(\"pass\")";
    let Some(peer) = &setting.peer else {
        let mut table = Table::new(title, "us");
        table.note("SKIPPED: --peer names no directory with the Python package `postern` 0.5");
        return Ok(vec![table]);
    };
    let init = build_init(setting, peer)?;
    let mut serve = process(Path::new(PYTHON));
    serve.args(["-c", SERVE]).arg(peer).arg(init);
    let mut remote = Remote::spawn(serve)?;
    let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
    let ours = || {
        took(|| {
            let result = sandbox.run_python("pass")?;
            match result.ok() {
                true => Ok(result),
                false => Err(format!("{:?}: {}", result.ending, result.stderr_text()).into()),
            }
        })
    };
    let none = Duration::ZERO;
    let mut contenders = vec![
        remote.contender("PyPI postern 0.5 with its C init"),
        Contender::new("postern, Sandbox::run_python", none, ours),
        Contender::new("no sandbox, python3 -us -c pass", none, || {
            whole(Path::new(PYTHON), &["-us", "-c", "pass"])
        }),
    ];
    if let Some(cli) = setting.cli.as_ref().filter(|path| path.is_file()) {
        let command = || whole(cli, &["python", "-c", "pass"]);
        contenders.push(Contender::new("postern python -c pass", none, command));
    }
    let series = alternate(setting.effort, &mut contenders)?;
    drop(contenders);
    let mut table = Table::of_series(title, &series);
    if let [peer, ours, rest @ ..] = series.as_slice() {
        let ratio = peer.pairwise(ours, |peer, ours| peer / ours).p50;
        table.promise("times faster than the Python package", ratio, 3.0, 4.0);
        if let [_, cli] = rest {
            let ratio = peer.pairwise(cli, |peer, cli| peer / cli).p50;
            table.note(format!("the command, a whole process: {ratio:.1} times faster"));
        }
    }
    Ok(vec![table])
}

/// The peer's own init, made as its documentation says.
pub(super) fn build_init(setting: &Setting, peer: &Path) -> Outcome<PathBuf> {
    let init = setting.world.scratch("peer-init");
    let mut build = process(Path::new(PYTHON));
    build.args(["-m", "postern.build_init"]).arg(&init).current_dir(peer);
    let output = build.stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(init) } else { Err(complain(&output)) }
}

fn whole(program: &Path, arguments: &[&str]) -> Outcome<Duration> {
    took(|| {
        let mut command = process(program);
        let output = command.args(arguments).stdin(Stdio::null()).output()?;
        if output.status.success() { Ok(output) } else { Err(complain(&output)) }
    })
}
