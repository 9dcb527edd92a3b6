//! Which events there are, at which level, and that a guest can bring none about above DEBUG.

use std::time::Duration;

use postern::error::LaunchError;
use postern::{Ceiling, Command, Error, Sandbox, SandboxProfile};
use postern_tests::Watch;
use tracing::Level;

use crate::listener::{Listener, Told};

fn names(told: &[Told]) -> Vec<(&'static str, Level)> {
    told.iter().map(|one| (one.name, one.level)).collect()
}

#[test]
fn a_sandbox_and_its_run_are_told_from_the_beginning_to_the_end() {
    let _watch = Watch::begin();
    let told = Listener::to(|| {
        let ceiling = Ceiling::new(1);
        let sandbox = Sandbox::builder(SandboxProfile::default()).ceiling(ceiling).build().unwrap();
        let hostile = "a\n\u{1b}[2J'\u{202e}";
        let result = sandbox.run(["/bin/echo", hostile]).unwrap();
        assert!(result.ok());
        sandbox.run(Command::new("sleep").arg("9").timeout(Duration::from_millis(50))).unwrap();
        drop(sandbox.start(["/bin/true"]).unwrap());
        sandbox.run([hostile]).unwrap();
        let held = sandbox.start(["/bin/sleep", "9"]).unwrap();
        let late = Command::new("true").queue_timeout(Duration::from_millis(5));
        assert!(matches!(sandbox.run(late), Err(Error::Busy(_))));
        drop(held);
    });
    let weaker = ("sandbox.weaker", Level::WARN);
    let told: Vec<_> = told.into_iter().filter(|one| (one.name, one.level) != weaker).collect();
    let run = [
        ("run", Level::DEBUG),
        ("run.sending", Level::TRACE),
        ("run.sent", Level::TRACE),
        ("run.started", Level::DEBUG),
    ];
    let first = ("run.attested", Level::TRACE);
    let (ended, dropped) = (("run.ended", Level::DEBUG), ("run.dropped", Level::DEBUG));
    let mut expected = vec![
        ("sandbox.build", Level::INFO),
        ("launcher.started", Level::DEBUG),
        ("sandbox.built", Level::INFO),
    ];
    expected.extend([run[0], run[1], run[2], first, run[3], ended]);
    expected.extend(run.into_iter().chain([ended]));
    expected.extend(run.into_iter().chain([dropped]));
    expected.extend(run.into_iter().chain([ended]));
    expected.extend(run);
    expected.extend([("run", Level::DEBUG), ("run.queued", Level::DEBUG)]);
    expected.extend([("run.failed", Level::DEBUG), dropped, ("sandbox.ended", Level::INFO)]);
    assert_eq!(names(&told), expected);
    for one in &told {
        let is_of_run = one.name.starts_with("run.");
        assert_eq!(one.parent.is_some(), is_of_run, "{one:?}");
        let span = one.parent.as_ref().unwrap_or(&one.fields);
        assert!(span["sandbox"].starts_with("sandbox-"), "{one:?}");
        let texts = one.fields.values().chain(one.parent.iter().flat_map(|fields| fields.values()));
        for text in texts {
            assert!(!text.contains(char::is_control) && !text.contains('\u{202e}'), "{text:?}");
        }
    }
    let all_of = |name| told.iter().filter(move |one| one.name == name);
    let ended: Vec<_> = all_of("run.ended").map(|one| one.fields["returncode"].as_str()).collect();
    assert_eq!(ended, ["0", "124", "127"]);
    assert!(all_of("run").all(|one| one.is_span && one.fields["run"].starts_with("run-")));
    assert!(all_of("run.failed").all(|one| one.fields["error"].starts_with("busy: ")));
}

/// Whatever a guest does, over and over, is told below INFO.
#[test]
fn a_guest_brings_about_nothing_above_debug() {
    let scripts = [
        "exit 3",
        "kill -9 $$",
        "kill -9 1; kill -TERM 1; exit 0",
        "head -c 200000 /dev/zero",
        "exec /nonexistent",
        "printf '\\033[2J\\n' >&2; exec sleep 100",
        "ulimit -n 3; exec cat /etc/passwd",
    ];
    let _watch = Watch::begin();
    let sandbox = Sandbox::builder(SandboxProfile::default()).build().unwrap();
    sandbox.run(["true"]).unwrap();
    let told = Listener::to(|| {
        for script in scripts.iter().cycle().take(3 * scripts.len()) {
            let command = Command::new("sh").args(["-c", script]);
            let command = command.output_bytes_max(1000).timeout(Duration::from_millis(200));
            sandbox.run(command).unwrap();
        }
        let wrong = sandbox.run(Command::new("true").cwd("/nonexistent"));
        assert!(matches!(wrong, Err(Error::Launch(LaunchError::Step(_)))), "{wrong:?}");
    });
    let loud: Vec<_> = told.iter().filter(|one| one.level <= Level::INFO).collect();
    assert!(loud.is_empty(), "{loud:#?}");
    assert_eq!(told.iter().filter(|one| one.name == "run.ended").count(), 3 * scripts.len());
}

/// A launcher that is killed from outside is a warning, once a second at most.
#[test]
fn a_lost_launcher_is_a_warning() {
    let _watch = Watch::begin();
    let directory = postern_tests::Scratch::new();
    let workspace = directory.directory("workspace", 0o777);
    let told = Listener::to(|| {
        let profile = SandboxProfile::builder().workspace_directory(workspace).build().unwrap();
        let sandbox = Sandbox::builder(profile).build().unwrap();
        for _ in 0..5 {
            let own = i32::try_from(std::process::id()).unwrap();
            for child in postern_tests::children(own) {
                let pid = rustix::process::Pid::from_raw(child).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
            // It may be lost while the run is on its way.
            while !sandbox.run(["true"]).is_ok_and(|result| result.ok()) {}
        }
    });
    let lost: Vec<_> = told.iter().filter(|one| one.name == "launcher.lost").collect();
    assert!((1..=3).contains(&lost.len()), "{lost:#?}");
    assert!(lost.iter().all(|one| one.level == Level::WARN));
    let started = told.iter().filter(|one| one.name == "launcher.started").count();
    assert_eq!(started, 6);
}
