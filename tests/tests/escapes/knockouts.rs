//! What each wall is there for: with it gone, rows fail that are held with it.
//!
//! A wall goes by the profile where the profile can leave it out, else by a supervisor in the parent
//! that answers the calls which build it with success and lets none happen: the library is the one
//! that is shipped. Rows are compared with the same host and everything else as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::host::hostprog_by;
use crate::question::spelled;
use crate::stage::Stage;
use crate::table::{Ask, Outside, Row, Severity};
use crate::verdict::unmet;

/// Where a wall can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    Any,
    Root,
}

/// A wall, the arguments of `ask` that stay, and those that take it away.
struct KnockOut {
    wall: &'static str,
    host: Host,
    with: &'static [&'static str],
    without: &'static [&'static str],
}

const fn knock_out(
    wall: &'static str,
    host: Host,
    with: &'static [&'static str],
    without: &'static [&'static str],
) -> KnockOut {
    KnockOut { wall, host, with, without }
}

const ALL: [KnockOut; 10] = [
    knock_out("namespaces", Host::Any, &[], &["share=net", "share=ipc", "share=uts"]),
    knock_out("mount plan", Host::Any, &[], &["later=mount", "later=move_mount"]),
    knock_out(
        "mount plan, from the start",
        Host::Any,
        &[],
        &["missing=mount_setattr", "missing=mount"],
    ),
    knock_out(
        "capabilities",
        Host::Any,
        &["seccomp=off", "guest=root"],
        &["later=capset", "later=prctl:24", "later=prctl:28", "later=prctl:38"],
    ),
    knock_out(
        "capabilities alone",
        Host::Any,
        &[],
        &["later=capset", "later=prctl:24", "later=prctl:28"],
    ),
    knock_out("seccomp", Host::Any, &[], &["seccomp=off"]),
    knock_out(
        "Landlock",
        Host::Any,
        &[
            "seccomp=off",
            "guest=root",
            "share=net",
            "later=capset",
            "later=prctl:24",
            "later=prctl:28",
            "later=prctl:38",
        ],
        &["later=landlock_restrict_self"],
    ),
    knock_out("identity, by the profile", Host::Root, &[], &["uid=0"]),
    knock_out(
        "identity, by the calls",
        Host::Root,
        &[],
        &["missing=setresuid", "missing=setresgid", "missing=setgroups"],
    ),
    knock_out("descriptors", Host::Any, &["habit=descriptors"], &["missing=close_range"]),
];

/// Walls whose rows need more than one knock-out, or none of their own.
const LESS: [&str; 1] = ["capabilities alone"];

/// What is asked: cheap questions of critical and high rows, since each wall costs two runs.
fn asked(rows: &[Row]) -> Vec<(Row, Ask)> {
    let rows = rows.iter().filter(|row| row.severity <= Severity::High);
    let asks = rows.flat_map(|row| row.asks.iter().map(|ask| (*row, *ask)));
    asks.filter(|(_, ask)| ask.outside == Outside::Asked).collect()
}

/// Questions that are not met, by row and by their place in what is asked.
type Failing = BTreeMap<(&'static str, usize), (Severity, String)>;

/// The questions that are not met with these arguments, or why there was no run.
fn failing(stage: &Stage, asked: &[(Row, Ask)], arguments: &[&str]) -> Result<Failing, String> {
    let names = stage.names("/workspace");
    let questions: Vec<String> =
        asked.iter().map(|(_, ask)| spelled(ask.question, &names)).collect();
    let file = |name: &str| stage.scratch.path().join(name).display().to_string();
    fs::write(file("asked"), questions.join("\n")).unwrap();
    let own = [format!("questions={}", file("asked")), format!("answers={}", file("told"))];
    let words: Vec<&str> =
        own.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
    fs::remove_file(file("told")).ok();
    hostprog_by("env", &[], "ask", &words)?;
    let text = fs::read_to_string(file("told")).map_err(|error| error.to_string())?;
    let told: Value =
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text:.200}"))?;
    let answers = told["answers"].as_array().ok_or_else(|| told["refused"].to_string())?;
    let mut failing = Failing::new();
    for (place, ((row, ask), answer)) in asked.iter().zip(answers).enumerate() {
        if let Some(wrong) = unmet(ask, answer) {
            failing.insert((row.id, place), (row.severity, wrong));
        }
    }
    Ok(failing)
}

/// One wall's part of the table, or what is wrong with it.
fn knocked_out(
    stage: &Stage,
    rows: &[Row],
    wall: &KnockOut,
    whole: &mut BTreeMap<&'static [&'static str], Failing>,
) -> Result<String, String> {
    let asked = asked(rows);
    if !whole.contains_key(wall.with) {
        whole.insert(wall.with, failing(stage, &asked, wall.with)?);
    }
    let held = &whole[wall.with];
    let without: Vec<&str> = wall.with.iter().chain(wall.without).copied().collect();
    let mut failed = match failing(stage, &asked, &without) {
        Ok(failed) => failed,
        Err(refused) => return Ok(format!("refused: {refused:.300}")),
    };
    failed.retain(|question, _| !held.contains_key(question));
    let rows = failed.iter().map(|((id, _), (severity, _))| format!("{id} {}", severity.letter()));
    let shown: BTreeSet<String> = rows.collect();
    let shown: Vec<String> = shown.into_iter().collect();
    let line = format!("{} rows: {}", shown.len(), shown.join(", "));
    match shown.len() >= 3 || LESS.contains(&wall.wall) {
        true => Ok(line),
        false => Err(format!("{}: {line} {failed:?}", wall.wall)),
    }
}

/// Every wall on this host; `shared` are the rows that fail where the guest has the service's id.
pub(crate) fn table(
    stage: &Stage,
    rows: &[Row],
    has_landlock: bool,
    shared: &[(&str, Severity)],
) -> (String, Vec<String>) {
    let mut text =
        "| wall | without it, by | rows that fail then |\n| --- | --- | --- |\n".to_owned();
    let mut wrong = Vec::new();
    // What fails with every wall in place, by the arguments that stay.
    let mut whole = BTreeMap::new();
    for wall in &ALL {
        let how = wall.without.join(" ");
        let outcome = match (wall.host, wall.wall) {
            (Host::Root, _) if !stage.is_root => "not on this host".to_owned(),
            (_, "Landlock") if !has_landlock => "not in use on this host".to_owned(),
            _ => knocked_out(stage, rows, wall, &mut whole).unwrap_or_else(|reason| {
                wrong.push(reason.clone());
                reason
            }),
        };
        writeln!(text, "| {} | `{how}` | {outcome:.400} |", wall.wall).unwrap();
    }
    let (line, reason) = without_identity(stage, shared);
    text.push_str(&line);
    wrong.extend(reason);
    (text, wrong)
}

/// A host without privileges is one without an id for the guest: the same table says what that
/// costs.
fn without_identity(stage: &Stage, shared: &[(&str, Severity)]) -> (String, Option<String>) {
    if stage.is_root {
        return (String::new(), None);
    }
    let rows: Vec<String> =
        shared.iter().map(|(id, severity)| format!("{id} {}", severity.letter())).collect();
    let severe = shared.iter().any(|(_, severity)| *severity <= Severity::High);
    let text = format!("{} rows: {}", rows.len(), rows.join(", "));
    let reason = (rows.len() < 3 || !severe).then(|| format!("identity: {text}"));
    (format!("| identity | no id but the service's own | {text} |\n"), reason)
}
