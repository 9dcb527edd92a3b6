//! Which package may lean on which, and that none escapes the rules of the workspace.

use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::none;
use super::tree::{files, root};

/// What a package may depend on, in any way.
#[derive(Debug, Clone, Copy)]
enum Reach {
    /// These of ours, and nothing of anyone else's: what runs where no allocator is.
    Bare(&'static [&'static str]),
    /// These of ours, and other people's crates.
    Layer(&'static [&'static str]),
    /// Nothing that users get depends on it.
    Outside,
}

/// The arrows. A new package takes its place here first.
const ARROWS: [(&str, Reach); 12] = [
    ("postern-init", Reach::Bare(&[])),
    ("postern-launcher", Reach::Bare(&["postern-init"])),
    ("postern-seccomp", Reach::Layer(&[])),
    // The services of examples and tests are for its tests only.
    ("postern-hatch", Reach::Layer(&["postern-proto"])),
    (
        "postern",
        // The services of examples are for its examples only.
        Reach::Layer(&[
            "postern-hatch",
            "postern-init",
            "postern-launcher",
            "postern-proto",
            "postern-seccomp",
        ]),
    ),
    (
        "postern-cli",
        // The last two for `bwrap`, which has no launcher.
        Reach::Layer(&[
            "postern",
            "postern-hatch",
            "postern-proto",
            "postern-init",
            "postern-launcher",
        ]),
    ),
    ("postern-demo", Reach::Layer(&["postern", "postern-proto"])),
    ("postern-proto", Reach::Layer(&[])),
    ("postern-tests", Reach::Outside),
    ("postern-bench", Reach::Outside),
    ("postern-xtask", Reach::Outside),
    ("postern-codegen", Reach::Outside),
];

static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    #[expect(clippy::disallowed_methods, reason = "only cargo reads a workspace as cargo does")]
    let mut command = std::process::Command::new(cargo);
    command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
});

/// The names of all targets of one kind, in the workspace.
pub(crate) fn targets(kind: &str) -> Vec<&'static str> {
    let targets = list(&METADATA, "packages").iter().flat_map(|package| list(package, "targets"));
    let targets = targets.filter(|target| list(target, "kind").iter().any(|own| own == kind));
    targets.map(|target| text(target, "name")).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// Every arrow that should not be.
fn wrong_arrows(metadata: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for package in list(metadata, "packages") {
        let name = text(package, "name");
        let dependencies = list(package, "dependencies").iter().map(|other| text(other, "name"));
        match ARROWS.iter().find(|(other, _)| *other == name) {
            None => faults.push(format!("{name} has no place in the table of arrows")),
            Some((_, reach)) => faults.extend(
                dependencies
                    .filter(|other| !may(*reach, other))
                    .map(|other| format!("{name} must not depend on {other}")),
            ),
        }
    }
    faults
}

fn may(reach: Reach, other: &str) -> bool {
    let is_ours = ARROWS.iter().any(|(name, _)| *name == other);
    match reach {
        Reach::Bare(ours) => ours.contains(&other),
        Reach::Layer(ours) => !is_ours || ours.contains(&other),
        Reach::Outside => true,
    }
}

/// What a manifest does not take from the workspace.
fn not_inherited(manifest: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !manifest.contains("\n[lints]\nworkspace = true\n") {
        faults.push("the lints are not the workspace's".to_owned());
    }
    let mut is_list = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            is_list = line.ends_with("dependencies]");
        } else if is_list && line.contains('=') && !line.starts_with('#') {
            let is_inherited = line.contains("workspace = true");
            faults.extend((!is_inherited).then(|| format!("its own version: {line}")));
        }
    }
    faults
}

#[test]
fn arrows_run_downward() {
    none(&wrong_arrows(&METADATA));
}

#[test]
fn every_place_in_the_table_is_taken() {
    let packages = list(&METADATA, "packages");
    let is_there = |name| packages.iter().any(|package| package["name"] == name);
    let missing = ARROWS.iter().map(|(name, _)| *name).filter(|name| !is_there(*name));
    none(&missing.map(|name| format!("{name} is no package")).collect::<Vec<_>>());
}

#[test]
fn every_package_inherits() {
    let mut faults = Vec::new();
    // The fuzz targets are a workspace of their own, which has nothing to inherit from.
    let apart = ["", "fuzz"].map(Path::new);
    let own = |path: &Path| path.parent().is_none_or(|parent| !apart.contains(&parent));
    for file in files().iter().filter(|file| file.path.ends_with("Cargo.toml") && own(&file.path)) {
        let found = not_inherited(&file.text).into_iter();
        faults.extend(found.map(|fault| format!("{}: {fault}", file.path.display())));
    }
    none(&faults);
}

#[test]
fn each_wrong_arrow_is_found() {
    let rows = [
        ("postern-init", "libc", 1),
        ("postern-launcher", "postern-init", 0),
        ("postern-launcher", "rustix", 1),
        ("postern-seccomp", "libc", 0),
        ("postern-seccomp", "postern", 1),
        ("postern-hatch", "postern", 1),
        ("postern-hatch", "tonic", 0),
        ("postern-proto", "postern-hatch", 1),
        ("postern", "postern-seccomp", 0),
        ("postern", "postern-cli", 1),
        ("postern-cli", "postern-launcher", 0),
        ("postern-cli", "postern-seccomp", 1),
        ("postern-tests", "postern-init", 0),
        ("postern-new", "libc", 1),
    ];
    for (name, other, count) in rows {
        let package = json!({"name": name, "dependencies": [{"name": other}]});
        let faults = wrong_arrows(&json!({ "packages": [package] }));
        assert_eq!(faults.len(), count, "{name} -> {other}: {faults:?}");
    }
}

#[test]
fn each_thing_not_inherited_is_found() {
    const LINTS: &str = "\n[lints]\nworkspace = true\n";
    let rows = [
        (format!("[dependencies]\na.workspace = true\n{LINTS}"), 0),
        (format!("[dependencies]\na = {{ workspace = true }}\n{LINTS}"), 0),
        ("[package]\nname = \"a\"\n".to_owned(), 1),
        (format!("[dependencies]\na = \"1\"\n{LINTS}"), 1),
        (format!("[target.'cfg(unix)'.dev-dependencies]\na = \"1\"\n{LINTS}"), 1),
        (format!("[package]\nname = \"a\"\n{LINTS}"), 0),
    ];
    for (manifest, count) in rows {
        let faults = not_inherited(&manifest);
        assert_eq!(faults.len(), count, "{manifest}: {faults:?}");
    }
}
