//! What the library tells of its work, as lines on stderr, where the environment asks for it.

use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;

/// The environment variable that names the least important level to show.
const VARIABLE: &str = "POSTERN_LOG";

/// Listens from now on; without the variable to nothing.
pub(crate) fn listen() -> Result<(), Failure> {
    let Some(word) = std::env::var_os(VARIABLE).filter(|word| !word.is_empty()) else {
        return Ok(());
    };
    let level: Option<LevelFilter> = word.to_str().and_then(|word| word.parse().ok());
    let Some(level) = level else {
        let levels = "off, error, warn, info, debug or trace";
        return Err(Failure::Usage(format!("{VARIABLE} is {word:?}; it is {levels}")));
    };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_ansi(false);
    lines.with_writer(std::io::stderr).init();
    Ok(())
}
