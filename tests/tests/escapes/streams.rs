//! Section F, the streams: what a guest can do to the host by way of descriptors it was given.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;

use postern::SandboxProfile;
use postern::hatch::GrpcHatch;

use super::descriptors::with_habits;
use crate::stage::{Stage, answers_in};
use crate::verdict::{Finding, errno_of, held};

/// A service whose own streams are files: what the guest does to its three changes none of them.
pub(crate) fn own_files(stage: &Stage) -> Result<Finding, String> {
    let (input, log) = (stage.scratch.path().join("in.txt"), stage.scratch.path().join("log.txt"));
    fs::write(&input, "input of the service\n").unwrap();
    fs::write(&log, "earlier line\n").unwrap();
    let questions = [
        "calls 8 0 0 0",
        "calls 8 1 0 0",
        "calls 77 1 0",
        "calls 91 1 0x9ff",
        "calls 73 1 6",
        "calls 72 1 1024 1",
        "calls 0 1 z:64 64",
        "read /proc/self/fd/0 /proc/self/fd/2",
    ];
    let script = "exec \"$@\" <\"$IN\" >>\"$LOG\" 2>&1";
    let starter = format!("IN={}; LOG={}; {script}", input.display(), log.display());
    let answers = with_habits(stage, &[], ("sh", &["-c", &starter, "sh"]), &questions)?;
    let (after_input, after_log) =
        (fs::read_to_string(&input).unwrap(), fs::read_to_string(&log).unwrap());
    let mode = fs::metadata(&log).unwrap().permissions().mode() & 0o7777;
    let mut appended = File::options().append(true).open(&log).unwrap();
    let same = after_input == "input of the service\n" && after_log.starts_with("earlier line\n");
    let works = writeln!(appended, "later line").is_ok() && appended.stream_position().is_ok();
    // A pipe has no position and no length: the host's file is not behind it.
    let pipe = errno_of(&answers[1][0]) == Some(libc::ESPIPE)
        && errno_of(&answers[2][0]) == Some(libc::EINVAL);
    match same && works && pipe && mode & 0o6000 == 0 && !answers[7].to_string().contains("earlier")
    {
        true => held(
            "seek ESPIPE, truncate EINVAL: the guest's streams are pipes; the service's files are as before",
        ),
        false => Err(format!("{answers:?}; mode {mode:o}; {after_input:?} {after_log:?}")),
    }
}

/// Status flags that a guest sets are those of its own end of a pipe.
pub(crate) fn own_flags(stage: &Stage) -> Result<Finding, String> {
    let log = stage.scratch.path().join("flags.txt");
    fs::write(&log, "").unwrap();
    let questions = ["calls 72 0 4 0x800", "calls 72 1 4 0x2800", "calls 72 2 4 0x6800"];
    // The description that service and shell share, as the shell sees it afterwards.
    let script = format!(
        "exec 3>>{log}; \"$@\" >&3 2>&3; code=$?; \
         sed -n 's/^flags:[[:space:]]*//p' /proc/$$/fdinfo/3 >{log}.flags; exit $code",
        log = log.display()
    );
    let answers = with_habits(stage, &[], ("sh", &["-c", &script, "sh"]), &questions)?;
    if answers.iter().any(|answer| errno_of(&answer[0]).is_some()) {
        return Err(format!("its own flags cannot be set: {answers:?}"));
    }
    let flags = fs::read_to_string(format!("{}.flags", log.display())).unwrap();
    let flags =
        u32::from_str_radix(flags.trim(), 8).map_err(|error| format!("{error}: {flags:?}"))?;
    const NONBLOCK_ASYNC_DIRECT: u32 = 0o4_000 | 0o20_000 | 0o40_000;
    match flags & NONBLOCK_ASYNC_DIRECT {
        0 => held(format!(
            "after O_NONBLOCK, O_ASYNC and O_DIRECT by the guest the service's stream has {flags:#o}"
        )),
        _ => Err(format!("{flags:#o}")),
    }
}

/// An owner for `SIGIO` is a pid of the guest's own namespace, and choosing the signal is refused.
pub(crate) fn own_signals(stage: &Stage) -> Result<Finding, String> {
    let names = stage.names("/workspace");
    let questions = [
        "calls fcntl 1 8 {hostpid}",
        "calls fcntl 1 10 9",
        "calls fcntl 1 15 w:0x100000000",
        "calls ioctl k:2:2:0 0x8902 b:01000000",
        "calls ioctl k:2:2:0 0x8901 b:01000000",
    ];
    let questions = questions.map(|question| crate::question::spelled(question, &names));
    let answers = answers_in(&stage.sandbox, &questions);
    let errnos: Vec<Option<i32>> = answers.iter().map(|answer| errno_of(&answer[0])).collect();
    let named = errnos[0] == Some(libc::ESRCH);
    let chosen = errnos[1] == Some(libc::EPERM) && errnos[2] == Some(libc::EPERM);
    match named && chosen {
        true => held("the host's pid is ESRCH as owner; F_SETSIG and F_SETOWN_EX are EPERM"),
        false => Err(format!("{answers:?}")),
    }
}

/// A guest that asks for descriptors with the first bytes of a hatch's server gets none.
pub(crate) fn no_descriptor_sent(stage: &Stage) -> Result<Finding, String> {
    let hatch = GrpcHatch::allowing(["/greeter.Greeter/SayHello"]).build().unwrap();
    let sandbox = postern::Sandbox::builder(SandboxProfile::default()).hatch(hatch).build();
    let sandbox = sandbox.map_err(|error| error.to_string())?;
    postern_tests::install(&sandbox);
    let listing = answers_in(&sandbox, &["sockets /run/postern".to_owned()]).remove(0);
    let path = listing["open"][0].as_str().ok_or_else(|| format!("no hatch: {listing}"))?;
    let hex: String = path.bytes().map(|byte| format!("{byte:02x}")).collect();
    // The server speaks first only when it is spoken to: the client's preface and empty settings.
    let preface = "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a000000040000000000";
    let names = stage.names("/workspace");
    let question = format!(
        "calls socket 1 1 0 ; setsockopt $0 1 16 b:01000000 4 ; connect $0 b:0100{hex}00 110 ; \
         write $0 b:{preface} 33 ; recvfrom $0 z:8 1 2 0 0 ; getpid z:512 z:1024 ; getpid w:&4,512 ; \
         recvmsg $0 w:0,0,&6,1,&5,1024,0 0 ; show &7 56"
    );
    let answers = answers_in(&sandbox, &[crate::question::spelled(&question, &names)]).remove(0);
    let got = answers.as_array().ok_or("no answers")?;
    let Some([received, header]) = got.last_chunk::<2>() else { return Err(answers.to_string()) };
    let header: Vec<u8> = header
        .as_str()
        .unwrap_or("")
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap_or(255))
        .collect();
    let control = header.get(40..48).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    let credentials = 32;
    match (received.as_i64(), control) {
        (Some(1..), Some(bytes)) if bytes <= credentials => held(format!(
            "{received} bytes of the server with {bytes} of control data: no descriptor"
        )),
        _ => Err(format!("{answers} {control:?}")),
    }
}
