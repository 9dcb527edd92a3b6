//! Hands over to the program of the demo; nothing of what it needs is in this one.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::DemoVerb;
use crate::failure::Failure;

const PROGRAM: &str = "postern-demo";

/// Becomes the demo: what comes back is why not.
pub(crate) fn become_demo(verb: &DemoVerb) -> Failure {
    let own = std::env::current_exe().ok();
    let directory = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let beside = directory.as_ref().map(|directory| directory.join(PROGRAM));
    // A name without a slash is looked for in PATH.
    let path = beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    #[expect(clippy::disallowed_methods, reason = "this process becomes it, and starts nothing")]
    let source = Command::new(&path).args(&verb.rest).exec();
    Failure::Program { path, looked: directory, source }
}
