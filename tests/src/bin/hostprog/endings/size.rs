//! A host with much memory launches as fast as a small one: both at once, turn by turn.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::time::{Duration, Instant};

use super::number;
use crate::world::{self, Outcome, ensure, text};

/// The big host may take this much longer, in percent.
const PERCENT_MAX: u128 = 150;
const PAGE: usize = 4096;

/// A host that launches whenever it is asked to and says how long that took.
struct Timed {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Timed {
    #[expect(clippy::disallowed_methods, reason = "a second host")]
    fn start(mebibytes: usize) -> Result<Timed, String> {
        let mut command = Program::new(std::env::current_exe().map_err(text)?);
        let command = command.args(["timed", &mebibytes.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(text)?;
        let (ask, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(ask), Some(answers)) = (ask, answers) else {
            return Err("no pipes to the timed host".to_owned());
        };
        let mut timed = Timed { child, ask, answers: BufReader::new(answers) };
        // The first answers are slower on either side.
        timed.launch()?;
        timed.launch()?;
        Ok(timed)
    }

    /// How long building a sandbox and running a program in it took.
    fn launch(&mut self) -> Result<Duration, String> {
        writeln!(self.ask, "go").map_err(text)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(text)?;
        line.trim()
            .parse()
            .map(Duration::from_nanos)
            .map_err(|error| format!("answer {line:?}: {error}"))
    }

    fn end(self) -> Result<(), String> {
        let Timed { mut child, ask, answers: _ } = self;
        drop(ask);
        let status = child.wait().map_err(text)?;
        ensure(status.success(), || format!("a timed host: {status}"))
    }
}

/// MEBIBYTES that are touched: the host on the other side of [`Timed`].
pub(super) fn timed(arguments: &[String]) -> Outcome {
    let mut memory = vec![0u8; number(arguments, 0)? << 20];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    for line in std::io::stdin().lock().lines() {
        line.map_err(text)?;
        let start = Instant::now();
        let sandbox = world::sandbox()?;
        let result = sandbox.run(["/bin/true"]).map_err(text)?;
        let took = start.elapsed();
        ensure(result.ok(), || format!("{:?}", result.ending))?;
        writeln!(std::io::stdout(), "{}", took.as_nanos()).map_err(text)?;
    }
    let touched = memory.iter().map(|byte| usize::from(*byte)).sum::<usize>();
    Ok(format!("{touched} pages touched"))
}

fn median(durations: &mut [Duration]) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// MEBIBYTES, ROUNDS.
pub(super) fn big_host(arguments: &[String]) -> Outcome {
    let (mebibytes, rounds) = (number(arguments, 0)?, number(arguments, 1)?);
    let (mut small, mut big) = (Timed::start(1)?, Timed::start(mebibytes)?);
    let (mut small_took, mut big_took) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        small_took.push(small.launch()?);
        big_took.push(big.launch()?);
    }
    small.end()?;
    big.end()?;
    let (small, big) = (median(&mut small_took), median(&mut big_took));
    let percent = big.as_nanos() * 100 / small.as_nanos().max(1);
    ensure(percent <= PERCENT_MAX, || format!("{big:?} against {small:?}: {percent} %"))?;
    Ok(format!("{mebibytes} MiB: {big:?} against {small:?}, {percent} %, {rounds} rounds"))
}
