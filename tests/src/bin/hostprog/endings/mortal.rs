//! A host that begins a run and then comes to its end, in a way that it is told; judges nothing.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::time::Duration;

use postern::Sandbox;

use crate::sys::{self, Fork};
use crate::world::{self, Outcome, text};

/// HOW; the mark of its run is in the environment, since it must not be on its own command line. A
/// host that is killed says that it is ready and lives on.
pub(super) fn mortal(arguments: &[String]) -> Outcome {
    let how = arguments.first().map(String::as_str).unwrap_or_default();
    let mark = std::env::var("POSTERN_MARK").map_err(text)?;
    if how == "ignores" {
        sys::ignore_children();
    }
    let sandbox = world::sandbox()?;
    let run = sandbox.start(world::sleeper(&mark)).map_err(text)?;
    let begun = || !world::marked(&mark).is_empty();
    world::until(Duration::from_secs(30), "the guest's start", begun)?;
    if how == "forks" && sys::fork().map_err(text)? == Fork::Child {
        // Lives until the test lets go of its end.
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        sys::leave(0);
    }
    writeln!(std::io::stdout(), "ready").map_err(text)?;
    match how {
        "returns" => {}
        "leaves" => sys::leave(0),
        "aborts" => std::process::abort(),
        "becomes" => return Err(text(another())),
        "works" => works(&sandbox, &mark)?,
        _ => std::thread::sleep(Duration::from_secs(600)),
    }
    drop(run);
    Ok(String::new())
}

#[expect(clippy::disallowed_methods, reason = "a host that becomes another program")]
fn another() -> std::io::Error {
    // Until the test lets go of its end.
    std::process::Command::new("/bin/cat").exec()
}

fn works(sandbox: &Sandbox, mark: &str) -> Result<(), String> {
    loop {
        let line = ["/bin/sh", "-c", "echo out; exit 0", mark];
        sandbox.run(line).map_err(text)?;
    }
}
