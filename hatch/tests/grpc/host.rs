//! The host as a process of its own, so that what it holds is not mixed with what a client does.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postern_hatch::{GrpcHatch, Serving};

use crate::service::Host;
use crate::support::{ALL, Scratch, client, hello, open, runtime, server};
use crate::watch::{descriptors_of, resident_kib, ticks};

/// Names the directory to the process that is to be the host.
const DIRECTORY: &str = "POSTERN_TEST_HATCH_DIRECTORY";
const OWN_NAME: &str = "host::serves_another_process";

/// Before what the two processes say to each other, as the harness speaks too.
const MARK: &str = "@ ";

/// A host with two runs of one hatch.
pub(crate) struct HostProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(crate) first: PathBuf,
    pub(crate) second: PathBuf,
    _scratch: Scratch,
}

/// What a host holds and has used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) descriptors: usize,
    pub(crate) resident_kib: u64,
    pub(crate) ticks: u64,
    /// Handlers.
    pub(crate) alive: u64,
    pub(crate) panics: u64,
}

impl HostProcess {
    pub(crate) fn start() -> Self {
        let scratch = Scratch::new();
        #[expect(clippy::disallowed_methods, reason = "the host must be a process of its own")]
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", OWN_NAME, "--nocapture", "--test-threads=1"]);
        command.env(DIRECTORY, scratch.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let paths = [(); 2].map(|()| PathBuf::from(told(&mut output)));
        let [first, second] = paths;
        Self { child, input, output, first, second, _scratch: scratch }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn usage(&mut self) -> Usage {
        self.input.write_all(b"usage\n").unwrap();
        let line = told(&mut self.output);
        let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
        let pid = self.pid();
        Usage {
            descriptors: descriptors_of(pid),
            resident_kib: resident_kib(pid),
            ticks: ticks(pid),
            alive: numbers.next().unwrap(),
            panics: numbers.next().unwrap(),
        }
    }

    /// The usage once everything of the last clients is gone, or two seconds later.
    pub(crate) fn settled(&mut self, before: &Usage) -> Usage {
        let start = Instant::now();
        loop {
            let usage = self.usage();
            let is_settled = usage.descriptors <= before.descriptors && usage.alive == 0;
            if is_settled || start.elapsed() > Duration::from_secs(2) {
                return usage;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Both runs are served.
    pub(crate) fn is_well(&self) {
        for path in [&self.first, &self.second] {
            runtime().block_on(async {
                let start = Instant::now();
                client(path).await.say_hello(hello("ada")).await.unwrap();
                assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            });
        }
    }

    /// Ends the first run.
    pub(crate) fn end_first(&mut self) {
        self.input.write_all(b"end\n").unwrap();
        told(&mut self.output);
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn told(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the host has ended");
        if let Some((_, told)) = line.trim_end().split_once(MARK) {
            return told.to_owned();
        }
    }
}

fn tell(text: impl std::fmt::Display) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{MARK}{text}").unwrap();
    output.flush().unwrap();
}

/// Does nothing unless it is asked to by [`HostProcess::start`].
#[test]
fn serves_another_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let panics = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&panics);
    std::panic::set_hook(Box::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    let host = Host::default();
    let seen = Arc::clone(&host.seen);
    let builder = GrpcHatch::allowing(ALL).first_bytes(Duration::from_secs(1));
    let hatch = builder.add_service(server(host)).build().unwrap();
    let serve = |name| open(&hatch, Path::new(&directory), name);
    let ((first, _, serving), (second, _, _other)) = (serve("first"), serve("second"));
    let mut serving: Option<Serving> = Some(serving);
    tell(first.display());
    tell(second.display());
    for line in std::io::stdin().lines().map(Result::unwrap) {
        match line.as_str() {
            "end" => {
                drop(serving.take());
                tell("ended");
            }
            _ => tell(format!("{} {}", seen.alive(), panics.load(Ordering::SeqCst))),
        }
    }
}
