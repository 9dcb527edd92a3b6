//! Section I: sockets that lead out of a network namespace, and those that are in one.

use libc::{EACCES, EAFNOSUPPORT, ECONNREFUSED, ENOENT, ENOPROTOOPT, EPERM, EPROTONOSUPPORT};
use postern::SandboxProfile;
use postern::hatch::GrpcHatch;
use serde_json::Value;

use crate::stage::{Stage, answers_in};
use crate::table::Expect::{At, Meets, Refused};
use crate::table::Severity::{Critical, High, Low, Medium};
use crate::table::{Row, ask, guest, host, inside};
use crate::verdict::{Finding, errno_of, held};

pub(crate) const ROWS: &[Row] = &[
    guest("I-02", Critical, "no socket to the hypervisor or its other guests", &[
        ask("calls socket 40 1 0", Refused(&[EAFNOSUPPORT])),
        ask("calls socket 40 2 0", Refused(&[EAFNOSUPPORT])),
        ask("calls socket 40 5 0", Refused(&[EAFNOSUPPORT])),
        ask("open r /dev/vsock", Meets(not_there)),
    ])
    .fact("this kernel has no AF_VSOCK"),
    host("I-03", Medium, "the network namespace has vsock numbers of its own", vsock_mode),
    guest("I-04", Critical, "no socket to the kernel's ciphers", &[
        ask("calls socket 38 5 0", Refused(&[EAFNOSUPPORT])),
        ask("calls socket 38 0x80005 0", Refused(&[EAFNOSUPPORT])),
    ])
    .fact("this kernel has no AF_ALG"),
    host("I-05", High, "no rare socket family, and none is loaded", rare_families),
    guest("I-07", Medium, "no packet, raw or ping socket", &[
        ask("rooted calls socket 17 3 768", Refused(&[EPERM, EAFNOSUPPORT])),
        ask("rooted calls socket 17 2 768", Refused(&[EPERM, EAFNOSUPPORT])),
        ask("rooted calls socket 2 3 1", Refused(&[EPERM, EAFNOSUPPORT])),
        ask("calls socket 2 2 1", Refused(&[EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT])),
    ]),
    guest("I-08", Low, "loopback works within a run", &[
        ask("loopback", At("/v4", r#""word""#)),
    ])
    .shown("it is what is promised: one run's programs reach one another"),
    host("I-09", Medium, "names resolve to loopback or fail at once", names_resolve),
    guest("I-10", Critical, "no socket of the host can be connected to", &[
        ask("sockets /run /tmp /var /dev /etc /srv /opt /mnt {w}", At("/open", "[]")),
        ask("calls connect k:1:1:0 b:01002f7661722f72756e2f646f636b65722e736f636b 110", Refused(&[ENOENT])),
        ask("calls connect k:1:1:0 b:01002f72756e2f646275732f73797374656d5f6275735f736f636b6574 110", Refused(&[ENOENT])),
    ])
    .and(only_the_hatch),
    guest("I-11", High, "no detour leads to a socket of the host", &[
        ask("calls symlink s:/var/run/docker.sock s:{w}/i11 ; connect k:1:1:0 b:01002f776f726b73706163652f693131 110", Refused(&[ENOENT, ECONNREFUSED])),
        ask("calls connect k:1:1:0 b:01002f70726f632f312f726f6f742f72756e 110", Refused(&[EACCES, EPERM, ENOENT])),
        ask("calls connect k:1:1:0 b:01002f70726f632f73656c662f66642f30 110", Refused(&[ECONNREFUSED, ENOENT, EACCES])),
    ])
    .shown("paths of the host's sockets do not exist inside"),
    guest("I-12", High, "no abstract socket of the host can be connected to", &[
        ask("calls connect k:1:1:0 b:{hidden} {hidden_len}", Refused(&[ECONNREFUSED, EPERM])),
        ask("calls connect k:1:1:0 b:0100002f746d702f2e5831312d756e69782f5830 20", Refused(&[ECONNREFUSED, EPERM])),
    ])
    .and(nobody_came),
    guest("I-13", Medium, "taking an abstract name takes it from nobody", &[
        inside("calls bind k:1:1:0 b:{hidden} {hidden_len}", At("/0", "0")),
    ])
    .shown("the host holds that very name, and the guest's bind works beside it"),
    guest("I-14", Medium, "descriptors in flight stay within the run", &[
        inside("repeat 20000 socketpair 1 1 0 z:8", Meets(few_descriptors)),
    ]),
    host("I-15", Medium, "a hatch tells the guest nothing of the process behind it", peer_of_the_hatch),
    guest("I-16", Low, "socket ioctls tell of loopback alone", &[
        ask("calls ioctl k:2:2:0 0x8912 w:40,z:40", Meets(no_interface_list)),
        ask("calls ioctl k:2:2:0 0x8927 s:eth0", Meets(refused_at_all)),
        ask("rooted calls ioctl k:2:2:0 0x89a0 s:br0", Refused(&[EPERM])),
        // By the filter, before the kernel asks for modules on the guest's behalf.
        ask("calls ioctl k:2:2:0 0x8940 z:32", Refused(&[EPERM])),
        ask("calls ioctl k:2:2:0 0x8982 z:64", Refused(&[EPERM])),
        ask("calls ioctl k:2:2:0 0x8983 z:64", Refused(&[EPERM])),
        ask("calls ioctl k:2:2:0 0x89a3 z:40", Refused(&[EPERM])),
    ])
    .and(only_loopback_addresses),
];

fn not_there(answer: &Value) -> Result<(), String> {
    let entries = answer.as_object().ok_or("no answer")?;
    match entries.values().all(|value| errno_of(value).is_some()) {
        true => Ok(()),
        false => Err(answer.to_string()),
    }
}

fn refused_at_all(answer: &Value) -> Result<(), String> {
    match errno_of(&answer[0]) {
        Some(_) => Ok(()),
        None => Err(answer.to_string()),
    }
}

fn few_descriptors(answer: &Value) -> Result<(), String> {
    match (answer["made"].as_i64(), answer["errno"].as_i64()) {
        (Some(..1024), Some(errno)) if errno == i64::from(libc::EMFILE) => Ok(()),
        _ => Err(answer.to_string()),
    }
}

fn no_interface_list(answer: &Value) -> Result<(), String> {
    match errno_of(&answer[0]) {
        None | Some(EPERM) => Ok(()),
        Some(_) => Err(answer.to_string()),
    }
}

fn vsock_mode(_: &Stage) -> Result<Finding, String> {
    match std::fs::read_to_string("/proc/sys/net/vsock/ns_mode") {
        Err(error) => Ok(Finding::Vacuous(format!(
            "this kernel has no net.vsock.ns_mode ({error}): vsock has no namespaces before 7.0"
        ))),
        Ok(mode) => held(format!("the host's is {}; the family is refused anyway", mode.trim())),
    }
}

/// Families that a guest has no use for; number and name.
const RARE: [(u32, &str); 22] = [
    (3, "AX25"),
    (4, "IPX"),
    (5, "APPLETALK"),
    (8, "ATMPVC"),
    (9, "X25"),
    (15, "KEY"),
    (17, "PACKET"),
    (21, "RDS"),
    (24, "PPPOX"),
    (26, "LLC"),
    (29, "CAN"),
    (30, "TIPC"),
    (31, "BLUETOOTH"),
    (32, "IUCV"),
    (33, "RXRPC"),
    (35, "PHONET"),
    (39, "NFC"),
    (41, "KCM"),
    (42, "QIPCRTR"),
    (43, "SMC"),
    (44, "XDP"),
    (45, "MCTP"),
];

fn rare_families(stage: &Stage) -> Result<Finding, String> {
    let modules = || std::fs::read_to_string("/proc/modules").unwrap_or_default();
    let before = modules();
    let questions: Vec<String> = RARE
        .iter()
        .flat_map(|(family, _)| {
            [1, 2, 3, 5].map(|kind| format!("rooted calls 41 {family} {kind} 0"))
        })
        .collect();
    let answers = answers_in(&stage.sandbox, &questions);
    for (question, answer) in questions.iter().zip(&answers) {
        if errno_of(&answer[0]) != Some(EAFNOSUPPORT) {
            return Err(format!("{question}: {answer}"));
        }
    }
    let same = |before: &str, after: &str| {
        let names = |text: &str| {
            text.lines().filter_map(|l| l.split(' ').next().map(str::to_owned)).collect::<Vec<_>>()
        };
        names(before) == names(after)
    };
    match same(&before, &modules()) {
        true => held(format!(
            "{} families in {} forms: EAFNOSUPPORT; modules as before",
            RARE.len(),
            questions.len()
        )),
        false => Err("the kernel has loaded a module meanwhile".to_owned()),
    }
}

fn names_resolve(stage: &Stage) -> Result<Finding, String> {
    let run = |words: &[&str]| stage.sandbox.run(words.to_vec()).map_err(|error| error.to_string());
    let local = run(&["getent", "hosts", "localhost"])?;
    let start = std::time::Instant::now();
    let far = run(&["getent", "hosts", "example.com"])?;
    let took = start.elapsed();
    match local.ok() && !far.ok() && took.as_millis() < 2000 {
        true => held(format!(
            "localhost is {}; example.com fails in {took:?}",
            local.stdout_text().trim()
        )),
        false => Err(format!("{:?} {:?} {took:?}", local.ending, far.ending)),
    }
}

fn nobody_came(stage: &Stage) -> Result<Finding, String> {
    match stage.was_visited() {
        true => Err("the host's listener was reached".to_owned()),
        false => held("ECONNREFUSED, and the host's listener on that name saw nobody"),
    }
}

fn hatched() -> Result<postern::Sandbox, String> {
    let hatch = GrpcHatch::allowing(["/greeter.Greeter/SayHello"]).build().unwrap();
    let sandbox = postern::Sandbox::builder(SandboxProfile::default()).hatch(hatch).build();
    let sandbox = sandbox.map_err(|error| error.to_string())?;
    postern_tests::install(&sandbox);
    Ok(sandbox)
}

fn only_the_hatch(_: &Stage) -> Result<Finding, String> {
    let found =
        answers_in(&hatched()?, &["sockets /run /tmp /dev /etc /workspace".to_owned()]).remove(0);
    let open = found["open"].as_array().ok_or("no list")?;
    let hatch = |path: &Value| {
        path.as_str().is_some_and(|path| path.starts_with("/run/postern/hatch.sock"))
    };
    match !open.is_empty() && open.iter().all(hatch) {
        true => held(format!("without a hatch none; with one {open:?}")),
        false => Err(found.to_string()),
    }
}

fn peer_of_the_hatch(stage: &Stage) -> Result<Finding, String> {
    let sandbox = hatched()?;
    let found = answers_in(&sandbox, &["sockets /run/postern".to_owned()]).remove(0);
    let path = found["open"][0].as_str().ok_or_else(|| format!("no hatch: {found}"))?;
    let hex: String = path.bytes().map(|byte| format!("{byte:02x}")).collect();
    let connect = format!("calls socket 1 1 0 ; connect $0 b:0100{hex}00 110");
    let names = stage.names("/workspace");
    let questions = [
        format!("{connect} ; getsockopt $0 1 17 z:12 b:0c000000 ; show &1 12"),
        format!("{connect} ; getsockopt $0 1 77 z:4 b:04000000"),
        format!("{connect} ; getsockopt $0 1 59 z:256 b:00010000"),
        format!("{connect} ; getsockopt $0 1 31 z:256 b:00010000"),
    ];
    let questions = questions.map(|question| crate::question::spelled(&question, &names));
    let answers = answers_in(&sandbox, &questions);
    let credentials = answers[0][3].as_str().ok_or_else(|| answers[0].to_string())?;
    let bytes: Vec<u8> =
        credentials.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(255)).collect();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let seen = [word(0), word(4), word(8)];
    let pidfd = errno_of(&answers[1][2]);
    let denied = pidfd.is_some_and(|errno| [EPERM, ENOPROTOOPT].contains(&errno));
    match seen == [0, 65_534, 65_534] && denied {
        true => held(format!("pid, uid, gid of the peer: {seen:?}; SO_PEERPIDFD errno {pidfd:?}")),
        false => Err(format!("{seen:?}; SO_PEERPIDFD {}", answers[1])),
    }
}

fn only_loopback_addresses(stage: &Stage) -> Result<Finding, String> {
    let addresses =
        stage.sandbox.run(["getent", "ahosts", "sandbox"]).map_err(|e| e.to_string())?;
    let table = stage.ask("read /proc/net/fib_trie");
    let text = table["/proc/net/fib_trie"].as_str().unwrap_or("");
    let hosts = text.lines().filter_map(|line| line.trim().strip_prefix("|-- "));
    let foreign: Vec<_> =
        hosts.filter(|address| !address.starts_with("127.") && *address != "0.0.0.0").collect();
    match foreign.is_empty() && !addresses.stdout_text().contains("10.") {
        true => held("no address but 127.0.0.0/8 in the tables of the namespace"),
        false => Err(format!("{foreign:?}")),
    }
}
