//! An untrusted Python script computes on a real data file in a sandbox, and the host reads what
//! it wrote.
//!
//! `penguins.csv` is the Palmer penguins data set (Horst, Hill, Gorman; CC0 1.0), as the PyPI
//! package `palmerpenguins` ships it.

use std::io::Write;
use std::time::Duration;

use postern::{Command, Sandbox, SandboxProfile};

const DATA: &[u8] = include_bytes!("penguins.csv");
const SCRIPT: &[u8] = include_bytes!("analyse.py");
const RESULT_BYTES_MAX: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
    let enforcement = sandbox.verify()?;

    let workspace = sandbox.workspace().ok_or("the default profile owns its workspace")?;
    workspace.write("penguins.csv", DATA)?;
    workspace.write("analyse.py", SCRIPT)?;

    let command = Command::new("python3").arg("analyse.py").timeout(Duration::from_secs(60));
    let result = sandbox.run(command)?;
    let mut out = std::io::stdout();
    writeln!(out, "guest: {}{}", result.stdout_text(), result.stderr_text())?;
    if !result.ok() {
        return Err(format!("the script ended badly: {:?}", result.ending).into());
    }

    let answer = workspace.read("result.json", RESULT_BYTES_MAX)?;
    out.write_all(&answer)?;
    writeln!(
        out,
        "\nran as kernel uid {} in {:?}, peak memory {} KiB",
        enforcement.kernel_uid, result.usage.wall, result.usage.peak_memory_kib
    )?;
    for warning in &enforcement.warnings {
        writeln!(out, "warning: {warning:?}")?;
    }
    Ok(())
}
