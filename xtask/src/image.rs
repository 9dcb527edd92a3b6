//! Looks into the static image: a panic or a formatted text there would mean a path that was never
//! meant to exist, and kilobytes in every guest's PID 1.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{Cargo, root};
use crate::executables::messages;
use crate::failure::Failure;

/// Parts of symbol names, in either mangling, that must not be in the image.
const UNWANTED: [&str; 4] = ["rust_begin_unwind", "panicking", "4core3fmt", "unwrap_failed"];

/// One that must, or the symbols were not kept and the rule says nothing.
const WANTED: &str = "postern_launcher";

/// What is exec'ed for every sandbox stays a few pages.
const BYTES_MAX: u64 = 32 * 1024;

/// Builds the image twice, as it is shipped and with its symbols kept, and judges both.
pub(crate) fn check() -> Result<(), Failure> {
    let shipped = build(None)?;
    let bytes = fs::metadata(&shipped).map_err(|source| unreadable(&shipped, source))?.len();
    if bytes > BYTES_MAX {
        return Err(Failure::Image { fact: format!("{bytes} bytes, more than {BYTES_MAX}") });
    }
    let named = build(Some(&root().join("xtask/rustc-symbols")))?;
    // The image itself has no table of sections, and so no symbols.
    let named = named.with_extension("linked");
    let text = fs::read(&named).map_err(|source| unreadable(&named, source))?;
    match fault(&text) {
        Some(fact) => Err(Failure::Image { fact }),
        None => Ok(()),
    }
}

/// What is wrong with an image that has its symbols.
fn fault(image: &[u8]) -> Option<String> {
    let has = |part: &str| image.windows(part.len()).any(|window| window == part.as_bytes());
    if !has(WANTED) {
        return Some("no symbols to look at".to_owned());
    }
    let part = UNWANTED.into_iter().find(|part| has(part))?;
    Some(format!("it holds code named {part}"))
}

/// The image's path. A compiler other than cargo's gets a directory of its own.
fn build(compiler: Option<&Path>) -> Result<PathBuf, Failure> {
    let build = ["build", "--release", "--package", "postern-launcher"];
    let mut cargo = Cargo::new(build).args(["--message-format=json-render-diagnostics"]);
    if let Some(compiler) = compiler {
        let directory = root().join("target/symbols");
        cargo = cargo.env("RUSTC", compiler).args(["--target-dir"]).args([directory]);
    }
    for message in messages(&cargo.print()?) {
        if let Some(out) = out_dir(&message?) {
            return Ok(out.join("postern-launcher"));
        }
    }
    Err(Failure::NotBuilt { what: "static image".to_owned() })
}

/// The directory in which the launcher's build script left the image.
fn out_dir(message: &Value) -> Option<PathBuf> {
    let is_launchers = message.get("package_id")?.as_str()?.contains("/runtime/launcher#");
    let out = message.get("out_dir")?.as_str()?;
    is_launchers.then(|| PathBuf::from(out))
}

fn unreadable(path: &Path, source: std::io::Error) -> Failure {
    Failure::File { act: "read", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unwanted_part_is_found() {
        let rows = [
            ("\u{7f}ELF postern_launcher postern_init", None),
            ("\u{7f}ELF", Some("no symbols to look at")),
            ("postern_launcher _RNvCs_7___rustc17rust_begin_unwind", Some("rust_begin_unwind")),
            ("postern_launcher _ZN4core9panicking5panic17h0E", Some("panicking")),
            ("postern_launcher _RNvNtCs_4core3fmt5write", Some("4core3fmt")),
        ];
        for (image, words) in rows {
            let fault = fault(image.as_bytes());
            let found = fault.as_deref().and_then(|fault| words.map(|words| fault.contains(words)));
            assert_eq!(found, words.map(|_| true), "{image}: {fault:?}");
            assert_eq!(fault.is_some(), words.is_some(), "{image}: {fault:?}");
        }
    }
}
