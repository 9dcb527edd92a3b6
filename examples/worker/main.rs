//! A worker that fails closed at its start, runs jobs, and passes SIGTERM on to the job in hand: the
//! guest has its grace, and the worker leaves with 143 as a service manager expects.
//!
//! Jobs are lines of Python on stdin, a job a line.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use postern::{AsyncProcess, Command, Sandbox, SandboxProfile};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Shorter than the 90 seconds that systemd gives, and the 30 of Kubernetes.
const GRACE: Duration = Duration::from_secs(10);
const JOB: Duration = Duration::from_secs(60);
const TERMINATED: u8 = 128 + 15;

type Failure = Box<dyn std::error::Error>;

fn say(text: std::fmt::Arguments<'_>) {
    writeln!(std::io::stdout(), "{text}").ok();
}

async fn show(process: &mut AsyncProcess) -> Result<(), Failure> {
    while let Some(line) = process.next_line().await? {
        say(format_args!("job: {}", line.text()));
    }
    Ok(())
}

/// Runs one job; true when the worker was told to end meanwhile.
async fn work(sandbox: &Sandbox, job: String, terminate: &mut Signal) -> Result<bool, Failure> {
    let mut process = sandbox.start_async(Command::python(job).timeout(JOB)).await?;
    let is_told = tokio::select! {
        shown = show(&mut process) => { shown?; false }
        _ = terminate.recv() => true,
    };
    if is_told {
        process.terminate(GRACE);
        show(&mut process).await?;
    }
    let result = process.wait().await?;
    say(format_args!("job ended: {}", result.returncode()));
    Ok(is_told)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
    // A worker on a host where the walls do not stand takes no jobs.
    let enforcement = sandbox.verify()?;
    say(format_args!("ready as kernel uid {}", enforcement.kernel_uid));
    let mut jobs = BufReader::new(tokio::io::stdin()).lines();
    loop {
        let job = tokio::select! {
            job = jobs.next_line() => job?,
            _ = terminate.recv() => return Ok(ExitCode::from(TERMINATED)),
        };
        let Some(job) = job else { return Ok(ExitCode::SUCCESS) };
        if work(&sandbox, job, &mut terminate).await? {
            return Ok(ExitCode::from(TERMINATED));
        }
    }
}
