//! Shows a guest's output on a terminal as it comes, each line with its stream; Ctrl-C asks the guest
//! to end, and five seconds later it is killed.

use std::io::Write;
use std::time::Duration;

use postern::{AsyncProcess, OutputStream, Sandbox, SandboxProfile};

const CODE: &str = "
import sys, time
for n in range(5):
    print('step', n)
    time.sleep(0.2)
print('done', file=sys.stderr)
";
const GRACE: Duration = Duration::from_secs(5);

async fn show(process: &mut AsyncProcess) -> Result<(), Box<dyn std::error::Error>> {
    while let Some(line) = process.next_line().await? {
        let label = match line.stream {
            OutputStream::Stdout => "out",
            OutputStream::Stderr => "err",
        };
        writeln!(std::io::stdout(), "{label} | {}", line.text())?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::builder(SandboxProfile::default()).build()?;
    let code = std::env::args().nth(1).unwrap_or_else(|| CODE.to_owned());
    let mut process = sandbox.start_python_async(code).await?;
    let is_interrupted = tokio::select! {
        shown = show(&mut process) => { shown?; false }
        _ = tokio::signal::ctrl_c() => true,
    };
    if is_interrupted {
        process.terminate(GRACE);
        // What the guest says while it ends is worth seeing too.
        show(&mut process).await?;
    }
    let result = process.wait().await?;
    writeln!(std::io::stdout(), "{:?} after {:?}", result.ending, result.duration())?;
    Ok(())
}
