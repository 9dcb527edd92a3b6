//! Command lines and what they come to, or the words of what is wrong with them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::RawFd;

use super::invocation::{BindAccess, Environment, Filters, Invocation, Setup, Source, Upper, Wish};
use super::options::OPTIONS;
use super::parse::{Caller, Misread, Parsed, ReadArgs, parse};

const ROOT: Caller = Caller { uid: 0, gid: 0 };
const ORDINARY: Caller = Caller { uid: 1000, gid: 100 };

/// Descriptors that hold arguments.
#[derive(Default)]
struct Files(HashMap<RawFd, Vec<u8>>);

impl ReadArgs for Files {
    fn read(&mut self, fd: RawFd) -> std::io::Result<Vec<u8>> {
        self.0.remove(&fd).ok_or_else(|| std::io::Error::from_raw_os_error(9))
    }
}

fn read_with(line: &str, caller: Caller, files: &[(RawFd, &str)]) -> Result<Parsed, Misread> {
    let mut files = Files(files.iter().map(|(fd, text)| (*fd, text.as_bytes().to_vec())).collect());
    // `''` is an empty word.
    let words = line.split_ascii_whitespace().map(|word| match word {
        "''" => OsString::new(),
        word => OsString::from(word),
    });
    parse(words, caller, &mut files)
}

fn wrong(line: &str, files: &[(RawFd, &str)]) -> String {
    match read_with(line, ROOT, files) {
        Err(Misread::Wrong { text, level_prefix }) => {
            format!("{}{text}", if level_prefix { "<3>" } else { "" })
        }
        other => panic!("{line}: {other:?}"),
    }
}

fn asked(line: &str) -> Invocation {
    match read_with(line, ROOT, &[]) {
        Ok(Parsed::Run(invocation)) => *invocation,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_wrong_is_said_in_bwraps_words() {
    const LAYERS: &str = "--overlay-src must be followed by another --overlay-src or one of \
                          --overlay, --tmp-overlay, or --ro-overlay";
    let rows = [
        ("--foo", "Unknown option --foo"),
        ("-x true", "Unknown option -x"),
        ("--level-prefix --foo", "<3>Unknown option --foo"),
        ("--bind /a", "--bind takes two arguments"),
        ("--dir", "--dir takes an argument"),
        ("--chdir", "--chdir takes one argument"),
        ("--overlay-src /l --overlay a b", "--overlay takes three arguments"),
        ("--bind '' /b true", "--bind does not take an empty path argument"),
        ("--file 0 '' true", "--file does not take an empty path argument"),
        ("--uid x true", "Invalid uid: x"),
        ("--uid -1 true", "Invalid uid: -1"),
        ("--uid 4294967295 true", "Invalid uid: 4294967295"),
        ("--uid 4294967296 true", "Invalid uid: 4294967296"),
        ("--gid 0x10 true", "Invalid gid: 0x10"),
        ("--sync-fd 3.5 true", "Invalid fd: 3.5"),
        ("--sync-fd 2147483648 true", "Invalid fd: 2147483648"),
        ("--block-fd -1 true", "Invalid fd: -1"),
        ("--info-fd '' true", "Invalid fd: "),
        ("--perms 888 true", "--perms takes an octal argument <= 07777"),
        ("--perms 10000 true", "--perms takes an octal argument <= 07777"),
        ("--chmod 9 /x true", "--chmod takes an octal argument <= 07777"),
        (
            "--perms 644 --bind / / true",
            "--perms must be followed by an option that creates a file",
        ),
        ("--perms 644 --perms 644 true", "--perms given twice for the same action"),
        ("--size 0 true", "--size takes a non-zero number of bytes"),
        ("--size 1k true", "--size takes a non-zero number of bytes"),
        ("--size 18446744073709551616 true", "--size takes a non-zero number of bytes"),
        ("--size 9223372036854775808 true", "--size (for tmpfs) is limited to 9223372036854775807"),
        ("--size 1 --dir /x true", "--size must be followed by --tmpfs"),
        ("--size 1 --size 1 true", "--size given twice for the same action"),
        ("--cap-add FOO true", "unknown cap: FOO"),
        ("--cap-drop NET_ADMIN true", "unknown cap: NET_ADMIN"),
        ("--cap-drop 99 true", "unknown cap: 99"),
        ("--args 77 true", "Can't read --args data: Bad file descriptor"),
        (
            "--seccomp 3 --add-seccomp-fd 4 true",
            "--add-seccomp-fd cannot be combined with --seccomp",
        ),
        (
            "--add-seccomp-fd 3 --seccomp 4 true",
            "--seccomp cannot be combined with --add-seccomp-fd",
        ),
        ("--unshare-user --userns 3 true", "--userns is not compatible with --unshare-user"),
        ("--uid 5 true", "Specifying --uid requires --unshare-user or --userns"),
        ("--gid 5 true", "Specifying --gid requires --unshare-user or --userns"),
        ("--hostname h true", "Specifying --hostname requires --unshare-uts"),
        ("--as-pid-1 true", "Specifying --as-pid-1 requires --unshare-pid"),
        ("--userns-block-fd 3 true", "--userns-block-fd requires --unshare-user"),
        (
            "--unshare-user-try --userns-block-fd 3 true",
            "--userns-block-fd requires --unshare-user",
        ),
        ("--unshare-user --userns-block-fd 3 true", "--userns-block-fd requires --info-fd"),
        (
            "--unshare-user --disable-userns --userns-block-fd 3 --info-fd 4 true",
            "--disable-userns is not compatible with --userns-block-fd",
        ),
        ("--unshare-all --userns 3 true", "--userns is not compatible with --unshare-user-try"),
        ("--unshare-user-try --disable-userns true", "--disable-userns requires --unshare-user"),
        (
            "--unshare-pid --as-pid-1 --lock-file /l true",
            "Specifying --as-pid-1 and --lock-file is not permitted",
        ),
        ("--disable-userns true", "--disable-userns requires --unshare-user"),
        ("--argv0 a --argv0 b true", "--argv0 used multiple times"),
        ("--overlay-src /x --bind / / true", LAYERS),
        ("--overlay-src /x true", LAYERS),
        ("--overlay '' b c true", "--overlay requires at least one --overlay-src"),
        ("--tmp-overlay /a true", "--tmp-overlay requires at least one --overlay-src"),
        (
            "--overlay-src /x --ro-overlay /a true",
            "--ro-overlay requires at least two --overlay-src",
        ),
        ("--exec-label x true", "labeling not supported on this system"),
        ("--file-label x true", "labeling not supported on this system"),
        ("--setenv '' x true", "setenv failed: \"\" is no name of a variable"),
        ("--unsetenv a=b true", "unsetenv failed: \"a=b\" is no name of a variable"),
    ];
    for (line, text) in rows {
        assert_eq!(wrong(line, &[]), text, "{line}");
    }
    for line in ["", "--", "--unshare-net", "--args 3"] {
        let read = read_with(line, ROOT, &[(3, "--unshare-pid\0")]);
        assert_eq!(read, Err(Misread::NoCommand), "{line}");
    }
}

#[test]
fn a_file_of_arguments_stands_where_it_is_named() {
    let read = |line: &str, text: &str| read_with(line, ROOT, &[(3, text)]);
    let Ok(Parsed::Run(own)) = read("--dir /a --args 3 --dir /d true", "--dir\0/b\0--dir\0/c\0")
    else {
        panic!("not read");
    };
    let dir = |target: &str| Setup::Dir { target: target.into(), mode: None };
    assert_eq!(own.setup, ["/a", "/b", "/c", "/d"].map(dir));
    let Ok(Parsed::Run(own)) = read("--args 3 -c x", "--unshare-net\0--\0sh\0") else {
        panic!("not read");
    };
    assert_eq!(own.command, ["sh", "-c", "x"]);
    let rows = [
        ("--bind\0/a\0", "--bind takes two arguments"),
        ("--args\x003\0", "--args not supported in arguments file"),
        ("--dir\0/a", "Can't read --args data: its last argument has no end"),
    ];
    for (text, words) in rows {
        assert_eq!(wrong("--args 3 /b true", &[(3, text)]), words, "{text:?}");
    }
    let many = "--unshare-net\0".repeat(100_000);
    assert!(matches!(read("--args 3 true", &many), Ok(Parsed::Run(_))));
}

#[test]
fn options_come_to_what_they_say() {
    let own = asked(
        "--unshare-all --share-net --perms 0700 --size 4096 --tmpfs /t --ro-bind-try /a /b \
         --bind-fd 5 /c --perms 600 --ro-bind-data 6 /d --overlay-src /l1 --overlay-src /l2 \
         --overlay /up /work /o --chmod 0755 /t --setenv A 1 --clearenv --unsetenv B \
         --add-seccomp-fd 7 --add-seccomp-fd 8 --sync-fd 9 --sync-fd 10 --chdir /x --chdir /y \
         -- prog --bind",
    );
    let target = |path: &str| path.into();
    assert_eq!(
        own.setup,
        [
            Setup::Tmpfs { target: target("/t"), mode: Some(0o700), size_bytes: Some(4096) },
            Setup::Bind {
                source: Source::Path("/a".into()),
                target: target("/b"),
                access: BindAccess::ReadOnly,
                may_miss: true,
            },
            Setup::Bind {
                source: Source::Fd(5),
                target: target("/c"),
                access: BindAccess::ReadWrite,
                may_miss: false,
            },
            Setup::BindData { fd: 6, target: target("/d"), mode: Some(0o600), read_only: true },
            Setup::Overlay {
                layers: vec!["/l2".into(), "/l1".into()],
                upper: Upper::Directory { upper: "/up".into(), work: "/work".into() },
                target: target("/o"),
            },
            Setup::Chmod { target: target("/t"), mode: 0o755 },
        ]
    );
    let spaces = own.namespaces;
    assert_eq!((spaces.user, spaces.cgroup), (Wish::IfPossible, Wish::IfPossible));
    assert!(spaces.pid && spaces.ipc && spaces.uts && !spaces.net);
    let set = Environment::Set("A".into(), "1".into());
    assert_eq!(own.environment, [set, Environment::Clear, Environment::Unset("B".into())]);
    assert_eq!(own.filters, Filters::Stacked(vec![7, 8]));
    assert_eq!(own.sync_fds, [9, 10]);
    assert_eq!(own.chdir.as_deref(), Some("/y".as_ref()));
    assert_eq!(own.warnings, ["Only the last --chdir option will take effect"]);
    assert_eq!(own.command, ["prog", "--bind"]);
}

#[test]
fn an_ordinary_caller_gets_a_user_namespace() {
    for (caller, user) in [(ROOT, Wish::No), (ORDINARY, Wish::Yes)] {
        let Ok(Parsed::Run(own)) = read_with("true", caller, &[]) else { panic!("not read") };
        assert_eq!(own.namespaces.user, user);
    }
    let read = read_with("--uid 5 true", ORDINARY, &[]);
    assert!(matches!(read, Ok(Parsed::Run(_))), "{read:?}");
}

#[test]
fn help_and_version_come_before_what_follows_them() {
    assert_eq!(read_with("--perms 644 --help --foo", ROOT, &[]), Ok(Parsed::Help));
    assert_eq!(read_with("--unshare-net --version", ROOT, &[]), Ok(Parsed::Version));
    assert!(matches!(read_with("true --help", ROOT, &[]), Ok(Parsed::Run(_))));
}

#[test]
fn every_option_is_read() {
    for spec in &OPTIONS {
        let values = ["0", "0", "0"].iter().take(spec.count);
        let line: Vec<_> = [spec.name].iter().chain(values).copied().collect();
        let files = [(0, "--unshare-net\0")];
        let read = read_with(&format!("{} --help", line.join(" ")), ROOT, &files);
        let needs_more = ["overlay", "label", "size"].iter().any(|part| spec.name.contains(part));
        assert!(
            needs_more
                || read
                    == Ok(if spec.name == "--version" { Parsed::Version } else { Parsed::Help }),
            "{}: {read:?}",
            spec.name
        );
    }
}
