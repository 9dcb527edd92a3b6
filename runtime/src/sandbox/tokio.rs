//! The async twins of starting and running: the same steps, waited for on the caller's runtime.

use std::sync::Arc;
use std::time::Instant;

use postern_hatch::RunId;

use super::admission::attendance;
use super::live::{Live, Load};
use super::start::{Attest, Unstarted};
use super::{FULL_PAUSE, Sandbox, unsent};
use crate::ceiling::Entry;
use crate::command::{Checked, Command};
use crate::error::Error;
use crate::process::tokio::AsyncProcess;
use crate::result::ProcResult;
use crate::telemetry::{Chronicle, events};

impl Sandbox {
    /// As [`Sandbox::run`], for an async service. Dropping the future kills the run.
    ///
    /// Needs a tokio runtime with its I/O and time drivers, and nothing is spawned on it. Starting a
    /// run takes a few system calls that do not wait; only the first run after a launcher was lost
    /// builds another, which takes about as long as [`SandboxBuilder::build`](super::SandboxBuilder::build).
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    ///
    /// # Panics
    /// As tokio does, outside of a runtime or on one without those drivers. Nothing keeps running.
    pub async fn run_async(&self, command: impl Into<Command> + Send) -> Result<ProcResult, Error> {
        self.start_async(command).await?.wait().await
    }

    /// As [`Sandbox::run_python`], for an async service; see [`Sandbox::run_async`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub async fn run_python_async(
        &self,
        code: impl Into<Vec<u8>> + Send,
    ) -> Result<ProcResult, Error> {
        self.run_async(Command::python(code)).await
    }

    /// As [`Sandbox::run_bash`], for an async service; see [`Sandbox::run_async`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub async fn run_bash_async(
        &self,
        script: impl Into<Vec<u8>> + Send,
    ) -> Result<ProcResult, Error> {
        self.run_async(Command::bash(script)).await
    }

    /// As [`Sandbox::start`], for an async service; see [`Sandbox::run_async`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub async fn start_async(
        &self,
        command: impl Into<Command> + Send,
    ) -> Result<AsyncProcess, Error> {
        let command = command.into();
        let checked = self.check(&command)?;
        let mut chronicle = self.teller.begin(RunId::next(), &checked, Attest::No);
        let place = self.enter_async(&command, &mut chronicle).await;
        let place = chronicle.told(place)?;
        let started = self.launch_again_async(&command, &checked, &chronicle).await;
        let (mut process, load) = chronicle.told(started)?;
        process.run_mut().attend(attendance(chronicle, place, load));
        Ok(process)
    }

    async fn launch_again_async(
        &self,
        command: &Command,
        checked: &Checked,
        chronicle: &Chronicle,
    ) -> Result<(AsyncProcess, Load), Error> {
        let mut again = true;
        loop {
            let live = self.live()?;
            let load = live.load();
            match self.launch_async(&live, command, checked, chronicle).await {
                Ok(process) => return Ok((process, load)),
                Err(why) => self.retry(&live, why, &mut again)?,
            }
        }
    }

    /// As [`Sandbox::start_python`], for an async service; see [`Sandbox::run_async`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub async fn start_python_async(
        &self,
        code: impl Into<Vec<u8>> + Send,
    ) -> Result<AsyncProcess, Error> {
        self.start_async(Command::python(code)).await
    }

    /// As [`Sandbox::start_bash`], for an async service; see [`Sandbox::run_async`].
    ///
    /// # Errors
    /// As [`Sandbox::run`].
    pub async fn start_bash_async(
        &self,
        script: impl Into<Vec<u8>> + Send,
    ) -> Result<AsyncProcess, Error> {
        self.start_async(Command::bash(script)).await
    }

    async fn launch_async(
        &self,
        live: &Arc<Live>,
        command: &Command,
        checked: &Checked,
        chronicle: &Chronicle,
    ) -> Result<AsyncProcess, Unstarted> {
        let after = self.options.deadline;
        let attest = Attest::No.or_first(live);
        let outgoing = self.outgoing(live, command, checked, attest, chronicle)?;
        let deadline = outgoing.deadline;
        let turn = match live.turn(deadline).map_err(|_busy| unsent(after))? {
            Entry::Placed(turn) => turn,
            Entry::Waits(waiting) => tokio::time::timeout_at(deadline.into(), waiting)
                .await
                .map_err(|_elapsed| unsent(after))?,
        };
        while !outgoing.is_sent(live)? {
            if Instant::now() >= deadline {
                return Err(unsent(after).into());
            }
            tokio::time::sleep(FULL_PAUSE).await;
        }
        drop(turn);
        events::run_sent(&chronicle.span);
        let mut process = AsyncProcess::new(outgoing.into_run())?;
        process.wait_started(deadline, after).await?;
        process.wait_terminal(deadline, after).await.map_err(Unstarted::ended)?;
        if attest == Attest::First {
            let told = process.wait_confined(deadline, after).await.map_err(Unstarted::ended)?;
            self.attest(live, process.run_mut(), &told).map_err(Unstarted::Ended)?;
            events::run_attested(&chronicle.span);
        }
        Ok(process)
    }
}
