//! A host with habits that the library must not pass on, or one on which a wall of the sandbox is
//! missing: asks the probe many questions in one run and writes the answers down. Judges none.

mod habits;
mod missing;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use postern::profile::{Namespaces, ProcKind, Root, Sharing};
use postern::{Command, Sandbox, SandboxProfile, Stdin};
use postern_seccomp::Level;
use postern_tests::{PROBE, PROBE_PATH, install};

use crate::Scenario;
use crate::world::{Outcome, text};
use missing::{Missing, Phase, Since};

/// Every scenario that asks.
pub(crate) const ALL: [Scenario; 1] = [("ask", ask)];

/// What the arguments say.
#[derive(Debug, Default)]
struct Wish {
    questions: PathBuf,
    answers: PathBuf,
    habits: Vec<String>,
    missing: Vec<Missing>,
    namespaces: Namespaces,
    root: Root,
    proc: ProcKind,
    is_unfiltered: bool,
    is_root_inside: bool,
    host_uid: Option<u32>,
    binds: Vec<(String, String)>,
}

impl Wish {
    /// Where the supervisor reads how far the launch is.
    fn phase_file(&self) -> PathBuf {
        self.answers.with_extension("phase")
    }

    fn enter(&self, phase: Phase) -> Result<(), String> {
        fs::write(self.phase_file(), phase.word()).map_err(text)
    }
}

/// `questions=FILE answers=FILE`, and any of `seccomp=off`, `share=net`, `guest=root`,
/// `root=host-view`, `proc=masked`, `uid=N`, `rw=SOURCE:TARGET`, `habit=NAME`, `missing=CALL[:FIRST]`
/// and `later=CALL[:FIRST]`, a call that is missing in the second run alone.
fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish::default();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or_else(|| argument.clone())?;
        match (name, value) {
            ("questions", path) => wish.questions = path.into(),
            ("answers", path) => wish.answers = path.into(),
            ("habit", name) => wish.habits.push(name.to_owned()),
            ("missing", call) => wish.missing.push(Missing::named(call, Since::Start)?),
            ("later", call) => wish.missing.push(Missing::named(call, Since::SecondRun)?),
            ("seccomp", "off") => wish.is_unfiltered = true,
            ("guest", "root") => wish.is_root_inside = true,
            ("root", "host-view") => wish.root = Root::HostView,
            ("proc", "masked") => wish.proc = ProcKind::Masked,
            ("uid", uid) => wish.host_uid = Some(uid.parse().map_err(text)?),
            ("rw", bind) => {
                let (source, target) = bind.split_once(':').ok_or("SOURCE:TARGET")?;
                wish.binds.push((source.to_owned(), target.to_owned()));
            }
            ("share", "pid") => wish.namespaces.pid = Sharing::Shared,
            ("share", "net") => wish.namespaces.net = Sharing::Shared,
            ("share", "ipc") => wish.namespaces.ipc = Sharing::Shared,
            ("share", "uts") => wish.namespaces.uts = Sharing::Shared,
            ("share", "cgroup") => wish.namespaces.cgroup = Sharing::Shared,
            _ => return Err(format!("unknown argument {argument:?}")),
        }
    }
    Ok(wish)
}

fn profile(wish: &Wish) -> Result<SandboxProfile, String> {
    let mut profile = SandboxProfile::builder()
        .namespaces(wish.namespaces)
        .root(wish.root)
        .proc(wish.proc)
        .rw_binds(wish.binds.clone());
    if wish.is_unfiltered {
        profile = profile.seccomp(Level::Off);
    }
    if wish.is_root_inside {
        profile = profile.guest_uid(None).guest_gid(None);
    }
    if let Some(uid) = wish.host_uid {
        profile = profile.host_uid(uid).host_gid(uid);
    }
    profile.build().map_err(text)
}

fn ask(arguments: &[String]) -> Outcome {
    let wish = wish(arguments)?;
    match wish.missing.as_slice() {
        [] => carry_out(&wish)?,
        missing => missing::without(missing, &wish.phase_file(), || carry_out(&wish))?,
    }
    Ok("asked".to_owned())
}

/// Writes `{"answers": [...]}`, or `{"refused": TEXT}` where there was no run.
fn carry_out(wish: &Wish) -> Result<(), String> {
    let kept = habits::take_up(&wish.habits)?;
    let told = match run(wish) {
        Ok(answers) => format!("{{\"answers\":{answers}}}\n"),
        Err(reason) => serde_json::json!({ "refused": reason }).to_string(),
    };
    drop(kept);
    fs::write(&wish.answers, told).map_err(text)
}

fn run(wish: &Wish) -> Outcome {
    let questions = fs::read(&wish.questions).map_err(text)?;
    let sandbox = Sandbox::builder(profile(wish)?).build().map_err(text)?;
    install(&sandbox);
    if !wish.missing.is_empty() {
        // A sandbox that is looked at once is looked at now.
        wish.enter(Phase::FirstRun)?;
        sandbox.run([PROBE_PATH, "identity"]).map_err(text)?;
        wish.enter(Phase::SecondRun)?;
    }
    let command = Command::new(PROBE_PATH).arg("batch").stdin(Stdin::Bytes(questions));
    let result = sandbox.run(command.timeout(Duration::from_secs(50))).map_err(text)?;
    match result.ok() {
        true => Ok(result.stdout_text().into_owned()),
        false => Err(format!(
            "{:?}: {} ({} bytes of probe)",
            result.ending,
            result.stderr_text(),
            PROBE.len()
        )),
    }
}
