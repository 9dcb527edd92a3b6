//! Section F, what a program is given in words: its environment and its arguments.

use postern::{Command, Ending};
use postern_tests::command;
use serde_json::Value;

use super::descriptors::with_habits;
use crate::stage::Stage;
use crate::verdict::{Finding, held};

/// Names that programs obey, with values that say where they come from.
const TEMPTING: [&str; 12] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "GRPC_TRACE",
    "API_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "HTTP_PROXY",
    "BASH_FUNC_x%%",
    "SSH_AUTH_SOCK",
    "GCONV_PATH",
    "MALLOC_CONF",
];

pub(crate) fn no_environment(stage: &Stage) -> Result<Finding, String> {
    let many = (0..200).map(|number| format!("STRAY_{number}=host"));
    let tempting = TEMPTING.iter().skip(1).map(|name| format!("{name}=host"));
    let words: Vec<String> = many.chain(tempting).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answers = with_habits(stage, &[], ("env", &words), &["env"])?;
    let found: Vec<&str> =
        answers[0].as_array().ok_or("no list")?.iter().filter_map(Value::as_str).collect();
    let wanted =
        ["HOME=/workspace", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"];
    match found == wanted {
        true => held(format!("{} variables in the service, in the guest {found:?}", words.len())),
        false => Err(format!("{found:?}")),
    }
}

pub(crate) fn odd_arguments(stage: &Stage) -> Result<Finding, String> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let odd = [&b"a\nb"[..], b"\x1b[2J", b"\xff\xfe", b"", b"-x", b"--"]
        .map(|b| OsString::from_vec(b.to_vec()));
    let result =
        stage.sandbox.run(command(&["argv"]).args(odd.clone())).map_err(|e| e.to_string())?;
    let found: Vec<String> = serde_json::from_slice(&result.stdout).map_err(|e| e.to_string())?;
    let bytes = |text: &String| {
        text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect::<Vec<u8>>()
    };
    if !found.iter().map(bytes).eq(odd.iter().map(|word| word.clone().into_vec())) {
        return Err(format!("{found:?}"));
    }
    let mut told = Vec::new();
    for (what, word, count) in
        [("128 KiB", 128 << 10, 1), ("2 MiB", 1 << 10, 2 << 10), ("16 MiB", 1 << 20, 16)]
    {
        let words = std::iter::repeat_n("x".repeat(word), count);
        told.push(match stage.sandbox.run(Command::new("true").args(words)) {
            Ok(result) if result.ok() => format!("{what} passed"),
            Ok(result) if matches!(result.ending, Ending::ExecFailed(libc::E2BIG)) => {
                format!("{what} E2BIG")
            }
            Ok(result) => return Err(format!("{what}: {:?}", result.ending)),
            Err(error) => format!("{what} refused: {error:.60}"),
        });
    }
    let none = stage.sandbox.run(Command::new("true")).map_err(|e| e.to_string())?;
    match none.ok() {
        true => held(format!("odd bytes exact; {}", told.join("; "))),
        false => Err(format!("{:?}", none.ending)),
    }
}
