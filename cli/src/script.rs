//! Source code from the command line, a file or stdin, with the arguments that are its own; does not
//! look into it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// More is no source code that somebody wrote.
const BYTES_MAX: u64 = 256 << 20;

/// A script and what it is called with.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) code: Vec<u8>,
    /// Its name in the guest; `None`: the library's.
    pub(crate) name: Option<OsString>,
    pub(crate) arguments: Vec<OsString>,
    /// It came from stdin, so that nothing is left there for the guest.
    pub(crate) is_stdin: bool,
}

/// `-c CODE ARGS`, `FILE ARGS` or `- ARGS`.
pub(crate) fn script(code: Option<OsString>, rest: Vec<OsString>) -> Result<Script, Failure> {
    if let Some(code) = code {
        let code = code.into_vec();
        return Ok(Script { code, name: None, arguments: rest, is_stdin: false });
    }
    let mut rest = rest.into_iter();
    let Some(file) = rest.next() else {
        let words = "nothing to run: give -c CODE, a FILE, or - for stdin";
        return Err(Failure::Usage(words.to_owned()));
    };
    let (arguments, path) = (rest.collect(), PathBuf::from(file));
    if path.as_os_str() == "-" {
        let code = all(io::stdin().lock(), Path::new("stdin"))?;
        return Ok(Script { code, name: None, arguments, is_stdin: true });
    }
    let failed = |source| Failure::File { what: "read", path: path.clone(), source };
    let file = File::open(&path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Failure::Source {
            fact: "is a directory, and no file of source code".to_owned(),
            fix: "show it to the guest with --workspace or --ro-bind and start it with `postern run`",
            path,
        });
    }
    let code = all(file, &path)?;
    Ok(Script { code, name: path.file_name().map(OsString::from), arguments, is_stdin: false })
}

/// Everything, where that is not too much: a device may have no end.
fn all(from: impl Read, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut code = Vec::new();
    let read = from.take(BYTES_MAX + 1).read_to_end(&mut code);
    let read = read.map_err(|source: io::Error| Failure::File {
        what: "read",
        path: path.to_owned(),
        source,
    })?;
    match u64::try_from(read).is_ok_and(|read| read <= BYTES_MAX) {
        true => Ok(code),
        false => Err(Failure::Source {
            path: path.to_owned(),
            fact: format!("has more than {BYTES_MAX} bytes"),
            fix: "show it to the guest with --ro-bind and start it with `postern run`",
        }),
    }
}
