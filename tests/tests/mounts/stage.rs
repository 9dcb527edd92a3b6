//! A host with mounts of a test's own: the test starts itself again where they are made, as root
//! and as an ordinary user, or, without root, as the same user in a user namespace.

use std::path::{Path, PathBuf};
use std::process::Command;

use postern_tests::Scratch;

/// Tells the inner process where its stage is.
const STAGE: &str = "POSTERN_TESTS_STAGE";

/// An ordinary user who has no other ids, for root to become.
const USER: u32 = 51_236;

/// The stage, for the process that was started on it.
pub(crate) fn here() -> Option<PathBuf> {
    std::env::var_os(STAGE).map(PathBuf::from)
}

/// Runs `test` once more on a stage that `script` has made, with `$STAGE` as its directory; what it
/// starts in the background goes on with the right to mount.
pub(crate) fn play(test: &str, script: &str) {
    let is_root = rustix::process::geteuid().is_root();
    let as_ordinary =
        format!("setpriv --reuid={USER} --regid={USER} --groups=5001 --inh-caps=-all");
    let rootless = "setpriv --inh-caps=-all --ambient-caps=-all".to_owned();
    let ways: Vec<(&[&str], String)> = if is_root {
        let unshare: &[&str] = &["--mount", "--propagation", "private"];
        vec![(unshare, String::new()), (unshare, as_ordinary)]
    } else {
        vec![(&["--user", "--map-current-user", "--keep-caps", "--mount"], rootless)]
    };
    for (unshare, becoming) in ways {
        let (stage, runtime) = (Scratch::new(), Scratch::new());
        if is_root && !becoming.is_empty() {
            std::os::unix::fs::chown(runtime.path(), Some(USER), Some(USER)).unwrap();
        }
        let script = format!("set -e\ncd \"${STAGE}\"\n{script}\nexec {becoming} \"$@\"\n");
        #[expect(clippy::disallowed_methods, reason = "a test starts itself on another host")]
        let mut command = Command::new("unshare");
        command.args(unshare).args(["sh", "-c", &script, "sh"]);
        command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
        command.env(STAGE, stage.path()).env(postern::RUNTIME_DIRECTORY_VARIABLE, runtime.path());
        let output = command.output().expect("unshare, of package util-linux");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let passed = output.status.success() && stdout.contains("1 passed");
        assert!(passed, "{test} {becoming}:\n{stdout}\n{stderr}");
    }
}

/// Lets anybody write to a directory, whoever the test becomes.
pub(crate) fn open(path: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(path, mode).unwrap();
}
