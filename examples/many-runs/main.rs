//! Many runs on one sandbox, from several threads: each with namespaces, files and a time limit of
//! its own, and none able to see another.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postern::{Command, Error, Sandbox, SandboxProfile};

const RUNS: usize = 100;
const CODE: &str = "
import os, sys
open('/tmp/mine', 'w').write(sys.argv[1])
print(sys.argv[1], os.getpid(), sorted(os.listdir('/tmp')))
";

fn worker(sandbox: &Sandbox, next: &AtomicUsize) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= RUNS {
            return Ok(lines);
        }
        let command = Command::python(CODE).arg(number.to_string());
        let result = sandbox.run(command.timeout(Duration::from_secs(30)))?;
        lines.push(format!("{}{}", result.stdout_text(), result.stderr_text()));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
    let workers = std::thread::available_parallelism()?.get();
    let (started, next) = (Instant::now(), AtomicUsize::new(0));
    let results: Vec<_> = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| worker(&sandbox, &next));
        let threads: Vec<_> = (0..workers).map(start).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut out = std::io::stdout();
    let mut runs = 0;
    for result in results {
        let lines = result.map_err(|_panic| "a worker panicked")??;
        runs += lines.len();
        lines.iter().try_for_each(|line| write!(out, "{line}"))?;
    }
    writeln!(out, "{runs} runs by {workers} workers in {:?}", started.elapsed())?;
    Ok(())
}
