//! `cargo xtask check`: what can be said of the sources and the image without running the product.
//! Every check runs, so that one look shows all that is wrong.

use std::time::Instant;

use crate::arguments::Advisories;
use crate::command::Cargo;
use crate::failure::{Failure, NO_SKIPS};
use crate::{codegen, fuzz, image, say};

/// A check's name and what it does.
type Check = (&'static str, fn() -> Result<(), Failure>);

const CHECKS: [Check; 7] = [
    ("format", format),
    ("clippy", clippy),
    ("docs", docs),
    ("tidy", tidy),
    ("image", image::check),
    ("generated", codegen::check),
    ("fuzz", fuzz::check),
];

/// Runs them all.
pub(crate) fn run(advisories: Advisories) -> Result<(), Failure> {
    let mut lines = Vec::new();
    let mut count = 0;
    let mut one = |name: &str, check: &dyn Fn() -> Result<(), Failure>| {
        say(&format!("--- {name}"));
        let start = Instant::now();
        let outcome = check();
        count += u64::from(outcome.is_err());
        let words = outcome.map_or_else(|failure| format!("FAILED: {failure}"), |()| "ok".into());
        lines.push(format!("{name:>12} {:>6.1} s  {words}", start.elapsed().as_secs_f64()));
    };
    for (name, check) in CHECKS {
        one(name, &check);
    }
    one("dependencies", &|| dependencies(advisories));
    say("");
    lines.iter().for_each(|line| say(line));
    match count {
        0 => Ok(()),
        count => Err(Failure::Failed { count }),
    }
}

fn format() -> Result<(), Failure> {
    Cargo::new(["fmt", "--all", "--check"]).succeed()
}

fn clippy() -> Result<(), Failure> {
    for features in ["--all-features", "--no-default-features"] {
        let chosen = ["clippy", "--quiet", "--workspace", "--all-targets", features];
        Cargo::new(chosen).args(["--keep-going", "--", "-Dwarnings"]).succeed()?;
    }
    Ok(())
}

fn docs() -> Result<(), Failure> {
    let docs =
        ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items", "--keep-going"];
    Cargo::new(docs).args(["--all-features"]).env("RUSTDOCFLAGS", "-Dwarnings").succeed()
}

/// The whole workspace is named, because a part of it would be built with other features.
fn tidy() -> Result<(), Failure> {
    Cargo::new(["test", "--quiet", "--release", "--workspace", "--test", "tidy"]).succeed()
}

/// Licences, sources and duplicates, by `deny.toml`.
fn dependencies(advisories: Advisories) -> Result<(), Failure> {
    if !Cargo::new(["deny", "--version"]).works() {
        say("skipped: cargo-deny is not installed: cargo install --locked cargo-deny");
        return match std::env::var_os(NO_SKIPS) {
            None => Ok(()),
            Some(_) => Err(Failure::SkipRefused { count: 1 }),
        };
    }
    let checks: &[&str] = match advisories {
        Advisories::Ask => &["check"],
        Advisories::Leave => &["--offline", "check", "bans", "licenses", "sources"],
    };
    Cargo::new(["deny", "--workspace"]).args(checks).succeed()
}
