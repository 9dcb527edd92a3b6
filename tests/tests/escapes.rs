//! The escape suite: what hostile guests try, each row with one verdict of a closed list.
//!
//! Rows are data: questions to the probe with the answers that hold, asked in a default sandbox and
//! again without one, and looks from the host. `POSTERN_ESCAPES_OUT` names a directory for the whole
//! table as Markdown and JSON.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a test's own helpers start programs, show any other outcome whole, and fail the test"
)]

#[path = "escapes/arguments.rs"]
mod arguments;
#[path = "escapes/core_dumps.rs"]
mod core_dumps;
#[path = "escapes/deadlines.rs"]
mod deadlines;
#[path = "escapes/descriptors.rs"]
mod descriptors;
#[path = "escapes/devices.rs"]
mod devices;
#[path = "escapes/exhaustion.rs"]
mod exhaustion;
#[path = "escapes/filter.rs"]
mod filter;
#[path = "escapes/filter_looks.rs"]
mod filter_looks;
#[path = "escapes/host.rs"]
mod host;
#[path = "endings/host.rs"]
mod hostprog;
#[path = "escapes/identity.rs"]
mod identity;
#[path = "escapes/inheritance.rs"]
mod inheritance;
#[path = "escapes/ipc.rs"]
mod ipc;
#[path = "escapes/knockouts.rs"]
mod knockouts;
#[path = "escapes/mounts.rs"]
mod mounts;
#[path = "escapes/namespaces.rs"]
mod namespaces;
#[path = "escapes/network.rs"]
mod network;
#[path = "escapes/peer.rs"]
mod peer;
#[path = "escapes/processes.rs"]
mod processes;
#[path = "escapes/procfs.rs"]
mod procfs;
#[path = "escapes/question.rs"]
mod question;
#[path = "escapes/report.rs"]
mod report;
#[path = "escapes/resources.rs"]
mod resources;
#[path = "escapes/sources.rs"]
mod sources;
#[path = "escapes/stage.rs"]
mod stage;
#[path = "escapes/streams.rs"]
mod streams;
#[path = "escapes/table.rs"]
mod table;
#[path = "escapes/verdict.rs"]
mod verdict;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{LazyLock, Once};

use postern_tests::Watch;

use report::{Judged, host_name};
use stage::Stage;
use table::{Row, Severity};
use verdict::{Need, Seen, Verdict, judge};

/// Every id with its severity: the list of what hostile guests were seen to try.
const IDS: &str = include_str!("escapes/ids.txt");

/// The page that says what is promised.
const MODEL: &str = include_str!("../../docs/security/model.md");

/// Every row, by section.
fn rows() -> Vec<Row> {
    let sections = [
        identity::ROWS,
        namespaces::ROWS,
        mounts::ROWS,
        procfs::ROWS,
        devices::ROWS,
        descriptors::ROWS,
        filter::ROWS,
        arguments::ROWS,
        network::ROWS,
        ipc::ROWS,
        processes::ROWS,
        core_dumps::ROWS,
        resources::ROWS,
    ];
    sections.concat()
}

/// Watches for what a test leaves. A first runtime makes what tokio keeps for ever; it is gone before
/// anybody watches.
fn begin() -> Watch {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        drop(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    });
    Watch::begin()
}

/// Every row with its verdict on this host.
static JUDGED: LazyLock<(Vec<Judged>, &'static str)> = LazyLock::new(|| {
    let stage = Stage::new();
    let rows = rows();
    let asks: Vec<_> = rows.iter().flat_map(|row| row.asks).copied().collect();
    let (mut inside, mut outside) = (stage.inside(&asks), stage.outside(&asks));
    let judged = rows.into_iter().map(|row| {
        let count = row.asks.len();
        let seen = Seen {
            inside: &inside.drain(..count).collect::<Vec<_>>(),
            outside: &outside.drain(..count).collect::<Vec<_>>(),
            look: row.look.map(|look| looked(look, &stage)),
            lacks: &stage.lacks,
        };
        let verdict = judge(&row, seen);
        (row, verdict)
    });
    (judged.collect(), host_name(stage.tier))
});

/// A look that panics fails its own row and no other.
fn looked(look: table::Look, stage: &Stage) -> Result<verdict::Finding, String> {
    let looked = std::panic::catch_unwind(AssertUnwindSafe(|| look(stage)));
    looked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map_or("no words", String::as_str);
        Err(format!("the look panicked: {text}"))
    })
}

#[test]
fn every_id_has_one_row() {
    let listed = IDS.lines().map(|line| line.split_once(' ').unwrap());
    let listed: Vec<(&str, &str)> = listed.collect();
    let rows = rows();
    let found: Vec<(&str, &str)> = rows.iter().map(|row| (row.id, row.severity.letter())).collect();
    let (a, b): (BTreeSet<_>, BTreeSet<_>) = (listed.iter().collect(), found.iter().collect());
    let differences: Vec<_> = a.symmetric_difference(&b).collect();
    assert!(differences.is_empty(), "in one list alone: {differences:?}");
    assert_eq!(found.len(), listed.len(), "a row is there twice");
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn no_row_fails() {
    let _watch = begin();
    let (judged, host) = &*JUDGED;
    report::publish(judged, host);
    println!("{}", report::markdown(judged, host));
    let failed: Vec<String> = judged
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_)))
        .map(|(row, verdict)| {
            format!("{} {} {}: {}", row.id, row.severity.letter(), row.what, verdict.evidence())
        })
        .collect();
    assert!(failed.is_empty(), "{} rows failed:\n{}", failed.len(), failed.join("\n"));
}

/// A row that cannot fail here says which fact of the kernel is the reason.
#[test]
fn what_is_not_held_has_its_evidence() {
    let _watch = begin();
    let (judged, _) = &*JUDGED;
    let silent: Vec<&str> = judged
        .iter()
        .filter(|(_, verdict)| verdict.evidence().is_empty())
        .map(|(row, _)| row.id)
        .collect();
    assert_eq!(silent, Vec::<&str>::new());
    let severe = |row: &Row| matches!(row.severity, Severity::Critical | Severity::High);
    let counted = judged.iter().filter(|(row, _)| severe(row)).count();
    assert!(counted > 100, "{counted} critical and high rows");
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn every_wall_is_missed() {
    let _watch = begin();
    let stage = Stage::new();
    let judged = &JUDGED.0;
    let has_landlock =
        judged.iter().any(|(row, verdict)| row.id == "C-23" && matches!(verdict, Verdict::Held(_)));
    let shared = |(row, verdict): &Judged| {
        let needs = matches!(verdict, Verdict::Needs(Need::DistinctUid, _));
        (needs && row.id != "A-12").then_some((row.id, row.severity))
    };
    let shared: Vec<_> = judged.iter().filter_map(shared).collect();
    let (table, wrong) = knockouts::table(&stage, &rows(), has_landlock, &shared);
    report::publish_text("knockouts", host_name(stage.tier), &table);
    println!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The committed page has today's rows, and for this host what was found just now.
#[test]
fn others_are_asked_the_same() {
    let _watch = begin();
    let stage = Stage::new();
    let host = host_name(stage.tier);
    let comparison = peer::compare(&stage, &rows());
    peer::publish(&comparison, host);
    let differences = peer::differences(&comparison, host);
    assert!(differences.is_empty(), "docs/security/comparison.md: {differences:#?}");
}

/// A promise of the security model names the rows that prove it.
#[test]
fn every_promise_is_proved() {
    let _watch = begin();
    let named = report::ids_in(MODEL);
    assert!(named.len() > 60, "{} rows are named", named.len());
    let verdict = |id: &str| JUDGED.0.iter().find(|(row, _)| row.id == id).map(|(_, v)| v.name());
    let wrong: Vec<_> = named.iter().map(|(id, wanted)| (id, *wanted, verdict(id))).collect();
    let wrong: Vec<_> = wrong
        .iter()
        .filter(|(_, wanted, found)| !found.is_some_and(|v| wanted.contains(&v)))
        .collect();
    assert!(wrong.is_empty(), "docs/security/model.md names {wrong:#?}");
}
