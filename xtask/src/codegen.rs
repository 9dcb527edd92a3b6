//! `cargo xtask codegen`: the generated code of proto/, written or compared. The generator is a
//! package of its own, so that the other tasks need not build it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Cargo, root};
use crate::failure::Failure;

/// The .proto files.
const SOURCES: &str = "proto";
/// What is made of them, and committed.
const GENERATED: &str = "proto/src/generated";

/// Writes the files anew.
pub(crate) fn write() -> Result<(), Failure> {
    generate(Path::new(GENERATED))
}

/// Whether writing them anew would change nothing.
pub(crate) fn check() -> Result<(), Failure> {
    let fresh = root().join("target/xtask/generated");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(|source| file("remove", &fresh, source))?;
    }
    generate(&fresh)?;
    let committed = root().join(GENERATED);
    match differing(&committed, &fresh)? {
        None => Ok(()),
        Some(name) => Err(Failure::Generated { path: Path::new(GENERATED).join(name) }),
    }
}

fn generate(output: &Path) -> Result<(), Failure> {
    let run = ["run", "--quiet", "--package", "postern-codegen", "--", SOURCES];
    Cargo::new(run).args([output]).succeed()
}

/// A file that only one of two directories has, or that they have differently.
fn differing(one: &Path, other: &Path) -> Result<Option<PathBuf>, Failure> {
    let (names, others) = (names(one)?, names(other)?);
    let lonely = names.iter().find(|name| !others.contains(name));
    if let Some(name) = lonely.or_else(|| others.iter().find(|name| !names.contains(name))) {
        return Ok(Some(name.clone()));
    }
    for name in names {
        if read(&one.join(&name))? != read(&other.join(&name))? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn names(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let entries = entries.map_err(|source| file("read", directory, source))?;
    Ok(entries.into_iter().map(|entry| PathBuf::from(entry.file_name())).collect())
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| file("read", path, source))
}

fn file(act: &'static str, path: &Path, source: std::io::Error) -> Failure {
    Failure::File { act, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::differing;

    #[test]
    fn each_difference_is_found() {
        type Files = &'static [(&'static str, &'static str)];
        let rows: [(Files, Files, Option<&str>); 4] = [
            (&[("a", "1"), ("b", "2")], &[("a", "1"), ("b", "2")], None),
            (&[("a", "1"), ("b", "2")], &[("a", "1"), ("b", "3")], Some("b")),
            (&[("a", "1")], &[("a", "1"), ("b", "2")], Some("b")),
            (&[("a", "1"), ("b", "2")], &[("a", "1")], Some("b")),
        ];
        let scratch = std::env::temp_dir().join(format!("postern-xtask-{}", std::process::id()));
        for (number, (one, other, difference)) in rows.into_iter().enumerate() {
            let directories = [("one", one), ("other", other)].map(|(name, files)| {
                let directory = scratch.join(format!("{number}-{name}"));
                fs::create_dir_all(&directory).unwrap();
                for (name, text) in files {
                    fs::write(directory.join(name), text).unwrap();
                }
                directory
            });
            let found = differing(&directories[0], &directories[1]).unwrap();
            assert_eq!(found, difference.map(PathBuf::from), "row {number}");
        }
        fs::remove_dir_all(Path::new(&scratch)).unwrap();
    }
}
