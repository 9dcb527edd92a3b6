//! One face for the blocking and the async handle, so that each scenario is written once; judges
//! nothing.

use std::time::Duration;

use postern::{
    AsyncProcess, Chunk, Command, Error, Line, ProcResult, Process, ProcessHandle, Sandbox, Signal,
    WindowSize,
};
use tokio::runtime::{Builder, Runtime};

/// How a service waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Blocking,
    CurrentThread,
    MultiThread,
}

impl Way {
    pub(crate) const ALL: [Way; 3] = [Way::Blocking, Way::CurrentThread, Way::MultiThread];

    pub(crate) fn runtime(self) -> Option<Runtime> {
        let mut builder = match self {
            Way::Blocking => return None,
            Way::CurrentThread => Builder::new_current_thread(),
            Way::MultiThread => Builder::new_multi_thread(),
        };
        Some(builder.worker_threads(2).enable_all().build().unwrap())
    }
}

/// Runs a scenario each way on one sandbox.
pub(crate) fn each_way(sandbox: &Sandbox, scenario: impl Fn(&Service<'_>)) {
    for way in Way::ALL {
        scenario(&Service { way, runtime: way.runtime(), sandbox });
    }
}

/// A service with a sandbox, which waits its way.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    pub(crate) way: Way,
    runtime: Option<Runtime>,
    sandbox: &'a Sandbox,
}

impl Service<'_> {
    pub(crate) fn run(&self, command: impl Into<Command> + Send) -> Result<ProcResult, Error> {
        match &self.runtime {
            None => self.sandbox.run(command),
            Some(runtime) => runtime.block_on(self.sandbox.run_async(command)),
        }
    }

    pub(crate) fn start(&self, command: impl Into<Command> + Send) -> Live<'_> {
        let handle = match &self.runtime {
            None => self.sandbox.start(command).map(Handle::Blocking),
            Some(runtime) => runtime.block_on(self.sandbox.start_async(command)).map(Handle::Async),
        };
        Live { runtime: self.runtime.as_ref(), handle: handle.unwrap() }
    }

    /// A shell script that is one argument.
    pub(crate) fn start_sh(&self, script: &str) -> Live<'_> {
        self.start(sh(script))
    }
}

/// A shell script that is one argument.
pub(crate) fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

#[derive(Debug)]
enum Handle {
    Blocking(Process),
    Async(AsyncProcess),
}

/// A live run of either kind.
#[derive(Debug)]
pub(crate) struct Live<'a> {
    runtime: Option<&'a Runtime>,
    handle: Handle,
}

/// Either handle's method of one name; the async one is waited for.
macro_rules! either {
    ($live:expr, $handle:ident => $call:expr) => {{
        let runtime = $live.runtime;
        match &mut $live.handle {
            Handle::Blocking($handle) => $call,
            Handle::Async($handle) => runtime.unwrap().block_on($call),
        }
    }};
}

impl Live<'_> {
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        either!(self, handle => handle.next_chunk())
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<Line>, Error> {
        let runtime = self.runtime;
        match &mut self.handle {
            // Made anew for each line: what has begun is kept.
            Handle::Blocking(process) => process.lines().next().transpose(),
            Handle::Async(process) => runtime.unwrap().block_on(process.next_line()),
        }
    }

    /// The next line as text, which must be there.
    pub(crate) fn line(&mut self) -> String {
        self.next_line().unwrap().expect("a line").text().into_owned()
    }

    pub(crate) fn write_stdin(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        either!(self, handle => handle.write_stdin(bytes))
    }

    pub(crate) fn close_stdin(&mut self) {
        match &mut self.handle {
            Handle::Blocking(process) => process.close_stdin(),
            Handle::Async(process) => process.close_stdin(),
        }
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = WindowSize { rows, columns };
        match &self.handle {
            Handle::Blocking(process) => process.resize(size).unwrap(),
            Handle::Async(process) => process.resize(size).unwrap(),
        }
    }

    pub(crate) fn hang_up(&mut self) {
        match &mut self.handle {
            Handle::Blocking(process) => process.hang_up(),
            Handle::Async(process) => process.hang_up(),
        }
    }

    pub(crate) fn terminate(&mut self, grace: Duration) {
        match &mut self.handle {
            Handle::Blocking(process) => process.terminate(grace),
            Handle::Async(process) => process.terminate(grace),
        }
    }

    pub(crate) fn kill(&self) {
        match &self.handle {
            Handle::Blocking(process) => process.kill(),
            Handle::Async(process) => process.kill(),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        match &self.handle {
            Handle::Blocking(process) => process.signal(signal),
            Handle::Async(process) => process.signal(signal),
        }
    }

    pub(crate) fn handle(&self) -> ProcessHandle {
        match &self.handle {
            Handle::Blocking(process) => process.handle(),
            Handle::Async(process) => process.handle(),
        }
    }

    /// The host's number of its PID 1.
    pub(crate) fn init(&self) -> i32 {
        let pidfd = match &self.handle {
            Handle::Blocking(process) => process.pidfd(),
            Handle::Async(process) => process.pidfd(),
        };
        postern_tests::pid_of(pidfd.unwrap())
    }

    pub(crate) fn wait(self) -> Result<ProcResult, Error> {
        match self.handle {
            Handle::Blocking(process) => process.wait(),
            Handle::Async(mut process) => self.runtime.unwrap().block_on(process.wait()),
        }
    }

    pub(crate) fn communicate(
        self,
        timeout: impl Into<Option<Duration>> + Send,
        bytes_max: impl Into<Option<u64>> + Send,
    ) -> Result<ProcResult, Error> {
        match self.handle {
            Handle::Blocking(process) => process.communicate(timeout, bytes_max),
            Handle::Async(mut process) => {
                self.runtime.unwrap().block_on(process.communicate(timeout, bytes_max))
            }
        }
    }
}
