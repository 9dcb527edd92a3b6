//! Hatches that cannot stand side by side, refused before anything is started; and those that can,
//! each under its own variable.

use postern::error::{Error, HatchConflict};
use postern::hatch::GrpcHatch;
use postern::{Command, Sandbox, SandboxProfile};

use crate::fixture::{begin, greeting, python, run, with_grpcio};

fn named(name: &str) -> GrpcHatch {
    let (builder, _) = greeting("hello");
    match name {
        "" => builder.build().unwrap(),
        name => builder.name(name).build().unwrap(),
    }
}

fn conflict<T>(outcome: Result<T, Error>) -> HatchConflict {
    let error = outcome.map(drop).unwrap_err();
    let Error::Hatches(conflict) = error else { panic!("{error}") };
    conflict
}

fn same(first: &str, second: &str) -> HatchConflict {
    HatchConflict::SameVariable { first: first.parse().unwrap(), second: second.parse().unwrap() }
}

/// Two of a sandbox, two of a run, and one of each.
#[test]
fn hatches_that_the_guest_could_not_tell_apart_are_refused() {
    let _watch = begin();
    let profile = SandboxProfile::default;
    let plain = Sandbox::builder(profile()).build().unwrap();
    let rows = [
        ("", "", HatchConflict::TwoUnnamed),
        ("repo", "repo", same("repo", "repo")),
        ("repo", "REPO", same("repo", "REPO")),
    ];
    for (first, second, refused) in rows {
        let builder = Sandbox::builder(profile()).hatch(named(first));
        let with_first = builder.clone().build().unwrap();
        assert_eq!(conflict(builder.hatch(named(second)).build()), refused);
        let command = Command::new("true").hatch(named(second));
        assert_eq!(conflict(with_first.run(command)), refused);
        let command = Command::new("true").hatch(named(first)).hatch(named(second));
        assert_eq!(conflict(plain.start(command)), refused);
        // What was refused cost nothing: the next run is as ever.
        assert!(with_first.run(["true"]).unwrap().ok());
    }
}

#[test]
fn hatches_need_run_directories() {
    let _watch = begin();
    let builder = || Sandbox::builder(SandboxProfile::default()).run_directories(false);
    let refused = HatchConflict::NoRunDirectories;
    assert_eq!(conflict(builder().hatch(named("")).build()), refused);
    let sandbox = builder().build().unwrap();
    let run = sandbox.run(Command::new("true").hatch(named("repo")));
    assert_eq!(conflict(run), refused);
}

/// Those of the sandbox and those of the run, each at its own path; the variables are the hatches',
/// whatever the profile and the command say.
#[test]
fn each_hatch_has_its_variable() {
    let _watch = begin();
    let sandbox = with_grpcio();
    let hatches = [("one", ""), ("two", "repo"), ("three", "Db_2")];
    let code = "
for name in ('', '_REPO', '_DB_2'):
    path = os.environ['POSTERN_HATCH' + name]
    channel = grpc.insecure_channel('unix:' + path)
    print(path, stub(channel, 'SayHello')(request('ada')).split(',')[0])
print(*sorted(name for name in os.environ if name.startswith('POSTERN')))";
    let command = hatches.into_iter().fold(python(code), |command, (words, name)| {
        let (builder, _) = greeting(words);
        let builder = if name.is_empty() { builder } else { builder.name(name) };
        command.hatch(builder.build().unwrap())
    });
    let command = command.env("POSTERN_HATCH", "/nowhere").env("POSTERN_HATCH_REPO", "/nowhere");
    let expected = "/run/postern/hatch.sock@localhost one
/run/postern/repo.sock@localhost two
/run/postern/Db_2.sock@localhost three
POSTERN_HATCH POSTERN_HATCH_DB_2 POSTERN_HATCH_REPO
";
    assert_eq!(run(&sandbox, command).stdout_text(), expected);
}
