//! Section G, as the host sees it: what the filter does to numbers nobody has reviewed, to every
//! process, and to ordinary programs.

use libc::ENOSYS;
use postern::SandboxProfile;
use postern_seccomp::Arch;
use postern_tests::{command, hold, status};

use crate::host::{build, hostprog};
use crate::stage::{Stage, answers_in};
use crate::table::Expect::Refused;
use crate::table::ask;
use crate::verdict::{Finding, errno_of, held};

pub(crate) fn unreviewed(stage: &Stage) -> Result<Finding, String> {
    let last = Arch::X86_64.calls().map(|(number, _)| number).max().unwrap();
    let numbers = (last + 1..=600).map(|number| number.to_string());
    let odd = ["1000", "0x7fffffff", "0x80000000", "0x3fffffff"].map(str::to_owned);
    let numbers: Vec<String> = numbers.chain(odd).collect();
    let questions: Vec<String> =
        numbers.iter().map(|number| format!("calls {number} 0 0 0")).collect();
    let answers = answers_in(&stage.sandbox, &questions);
    let open: Vec<_> =
        numbers.iter().zip(&answers).filter(|(_, a)| errno_of(&a[0]) != Some(ENOSYS)).collect();
    match open.as_slice() {
        [] => held(format!(
            "{} numbers above {last}: ENOSYS, by the filter on every kernel",
            numbers.len()
        )),
        [first, ..] => Err(format!("{} numbers, such as {first:?}", open.len())),
    }
}

/// On a kernel that has the call, a wrong argument is not ENOSYS outside: the filter's answer shows.
pub(crate) fn new_calls_by_errno(stage: &Stage) -> Result<Finding, String> {
    let questions = [ask("calls 457 z:64 z:512 512 0", Refused(&[ENOSYS]))];
    let outside = stage.outside(&questions);
    held(format!(
        "ENOSYS for all; outside statmount answers {}",
        outside[0].clone().unwrap_or_default()
    ))
}

pub(crate) fn many_filters(stage: &Stage) -> Result<Finding, String> {
    // Four instructions are as good as four thousand: what is bounded is their sum.
    let answer = stage.ask("repeat 2000 seccomp 1 0 w:1,b:060000000000ff7f");
    let after = stage.ask("identity");
    match (answer["errno"].as_i64(), after["uid"].as_i64()) {
        (Some(0 | 12), Some(65_534)) => {
            held(format!("{answer}: memory of the kernel's own bound, gone with the process"))
        }
        _ => Err(answer.to_string()),
    }
}

pub(crate) fn many_layers(stage: &Stage) -> Result<Finding, String> {
    let abi = stage.ask("calls landlock_create_ruleset 0 0 1");
    if errno_of(&abi[0]).is_some() {
        return Ok(Finding::Vacuous(format!("this kernel has no Landlock: {abi}")));
    }
    let question = "repeat 32 landlock_create_ruleset w:1,0,0 8 0 ; landlock_restrict_self $0 0";
    let answer = stage.ask(question);
    match (answer["made"].as_i64(), answer["errno"].as_i64()) {
        (Some(1..=16), Some(7)) => held(format!("{answer}: E2BIG, of 16 layers ours included")),
        _ => Err(answer.to_string()),
    }
}

pub(crate) fn all_filtered(stage: &Stage) -> Result<Finding, String> {
    let run = hold(&stage.sandbox, command(&["hold", "identity"]));
    let seen = [run.init, run.guest].map(|pid| {
        let status = status(pid);
        (status["Seccomp"].clone(), status["Seccomp_filters"].clone(), status["NoNewPrivs"].clone())
    });
    run.release();
    let is_filtered = |(mode, filters, privileges): &(String, String, String)| {
        mode == "2" && filters.parse::<u32>().is_ok_and(|count| count >= 1) && privileges == "1"
    };
    match seen.iter().all(is_filtered) && seen[0] == seen[1] {
        true => held(format!("mode, filters, no_new_privs of PID 1 and guest: {seen:?}")),
        false => Err(format!("{seen:?}")),
    }
}

/// A host whose kernel takes no filter, imitated by answering the call with success and not making
/// it: what the kernel then says of PID 1 is no filter, and `verify` refuses.
pub(crate) fn refused_without_filters(_: &Stage) -> Result<Finding, String> {
    let told = hostprog("refuse", &["seccomp", "22"])?;
    match told.contains("Filter") && told.contains("22") {
        true => held(format!("seccomp(2) answers EINVAL: {told:.160}")),
        false => Err(told),
    }
}

const SMOKE: &str = "
import threading, subprocess, asyncio, tempfile, ssl, multiprocessing, json, sqlite3, os
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.run(['true']).returncode == 0
assert asyncio.run(asyncio.sleep(0, 'x')) == 'x'
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]
with tempfile.TemporaryFile() as f: f.write(b'x')
ssl.create_default_context(); sqlite3.connect(':memory:').execute('select 1')
print('all', os.confstr('CS_GNU_LIBC_VERSION'))
";

pub(crate) fn programs_run(_: &Stage) -> Result<Finding, String> {
    let sandbox = build(SandboxProfile::default())?;
    let result = sandbox.run(postern::Command::python(SMOKE)).map_err(|error| error.to_string())?;
    match result.stdout_text().strip_prefix("all ") {
        Some(libc) => {
            held(format!("threads, processes, asyncio, pools, ssl, sqlite with {}", libc.trim()))
        }
        None => Err(format!("{:?} {:.400}", result.ending, result.stderr_text())),
    }
}
