//! An audit record as one line of JSON: printable ASCII, and never longer than a line may be. Reads
//! no clock and writes nothing.

use std::ffi::CString;
use std::io;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::cgroup::LimitHit;
use crate::plan::{Tier, Warning};
use crate::result::Ending;

/// What of the arguments is kept, as bytes of the line.
const ARGUMENTS_MAX: usize = 2048;
/// What of an error is kept, likewise.
const ERROR_MAX: usize = 768;

/// One run.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub(super) struct Record<'a> {
    pub(super) version: u32,
    pub(super) time: String,
    pub(super) host_pid: u32,
    pub(super) sandbox: String,
    pub(super) run: String,
    pub(super) argv: &'a [String],
    pub(super) argv_cut: bool,
    pub(super) hatches: usize,
    pub(super) ending: How,
    pub(super) returncode: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) terminated: bool,
    pub(super) truncated: bool,
    /// Not known where nobody counted.
    pub(super) oom: Option<bool>,
    /// Likewise.
    pub(super) pids_limit: Option<bool>,
    pub(super) error: Option<String>,
    pub(super) queued_ms: f64,
    pub(super) usage: Option<Used>,
    pub(super) enforcement: Option<Walls>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum How {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    Killed {
        signal: i32,
    },
    ExecFailed {
        errno: i32,
    },
    LauncherLost,
    Unreaped,
    /// It was refused, or a wall could not be built: the program never ran, or is unknown.
    Failed,
    /// Its handle was dropped before its end was learnt.
    Dropped,
}

/// Whether a limit was hit, where that is known.
pub(super) const fn known(hit: LimitHit) -> Option<bool> {
    match hit {
        LimitHit::Yes => Some(true),
        LimitHit::No => Some(false),
        LimitHit::Unavailable(_) => None,
    }
}

impl From<Ending> for How {
    fn from(ending: Ending) -> How {
        match ending {
            Ending::Exited(code) => How::Exited { code },
            Ending::Signaled(signal) => How::Signaled { signal },
            Ending::Killed(signal) => How::Killed { signal },
            Ending::ExecFailed(errno) => How::ExecFailed { errno },
            Ending::LauncherLost => How::LauncherLost,
            Ending::Unreaped => How::Unreaped,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Used {
    pub(super) wall_ms: f64,
    pub(super) user_ms: f64,
    pub(super) system_ms: f64,
    pub(super) peak_memory_kib: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Walls {
    pub(super) tier: &'static str,
    pub(super) kernel_uid: u32,
    pub(super) shared_uid: bool,
    pub(super) seccomp: String,
    pub(super) seccomp_digest: Option<String>,
    pub(super) landlock_abi: Option<u32>,
    pub(super) warnings: Vec<&'static str>,
}

pub(super) const fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Privileged => "privileged",
        Tier::MapWriter => "map_writer",
        Tier::Subordinate => "subordinate",
        Tier::Unprivileged => "unprivileged",
    }
}

pub(super) const fn warning(warning: &Warning) -> &'static str {
    match warning {
        Warning::SharedUid(_) => "shared_uid",
        Warning::SharedGroups(_) => "shared_groups",
        Warning::UnboundedWorkspace => "unbounded_workspace",
        Warning::SeccompOff => "seccomp_off",
        Warning::SharedNamespace(_) => "shared_namespace",
    }
}

/// To the microsecond: more digits are noise.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The record with its newline.
pub(super) fn line(record: &Record<'_>) -> Vec<u8> {
    let mut text = Vec::with_capacity(1024);
    // No key is anything but a string, and no writer is there to fail.
    record.serialize(&mut Serializer::with_formatter(&mut text, Ascii)).ok();
    text.push(b'\n');
    text
}

/// The arguments as text, as many and as much of the last as fit; whether something is missing.
pub(super) fn arguments(words: &[CString]) -> (Vec<String>, bool) {
    let mut left = ARGUMENTS_MAX;
    let mut kept = Vec::new();
    for word in words {
        // Two quotes and a comma.
        let Some(room) = left.checked_sub(3) else { return (kept, true) };
        let word = String::from_utf8_lossy(word.to_bytes());
        let (fits, cost) = fitting(&word, room);
        kept.push(fits.to_owned());
        if fits.len() < word.len() {
            return (kept, true);
        }
        left = room - cost;
    }
    (kept, false)
}

/// What of an error is kept.
pub(super) fn error(text: &str) -> String {
    fitting(text, ERROR_MAX).0.to_owned()
}

/// As much from the start of `text` as takes `room` bytes of a line, and how much that is.
fn fitting(text: &str, room: usize) -> (&str, usize) {
    let mut cost = 0;
    for (at, character) in text.char_indices() {
        let more = match character {
            '"' | '\\' => 2,
            ' '..='~' => 1,
            other => 6 * other.len_utf16(),
        };
        if cost + more > room {
            return (text.get(..at).unwrap_or_default(), cost);
        }
        cost += more;
    }
    (text, cost)
}

/// JSON in which whatever is not printable ASCII is an escape.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for character in fragment.chars() {
            match character {
                ' '..='~' => write!(writer, "{character}")?,
                other => {
                    let mut units = [0; 2];
                    for unit in other.encode_utf16(&mut units) {
                        write!(writer, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A moment as RFC 3339 has it, in UTC, to the millisecond.
pub(super) fn rfc3339(moment: SystemTime) -> String {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (seconds, ms) = (since.as_secs(), since.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days of the Gregorian calendar, counted from 1 March of the year 0, so that leap days are last.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::AUDIT_LINE_BYTES_MAX;

    #[test]
    fn moments_are_what_date_makes_of_them() {
        let rows = [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, 5, "2000-02-29T00:00:00.005Z"),
            (1_709_251_199, 999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200, 0, "2024-03-01T00:00:00.000Z"),
            (1_764_551_718, 42, "2025-12-01T01:15:18.042Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (1_767_225_599, 0, "2025-12-31T23:59:59.000Z"),
        ];
        for (seconds, ms, text) in rows {
            let moment = SystemTime::UNIX_EPOCH + Duration::new(seconds, ms * 1_000_000);
            assert_eq!(rfc3339(moment), text);
        }
    }

    fn record<'a>(argv: &'a [String], argv_cut: bool, error: Option<String>) -> Record<'a> {
        let digest = Some("f".repeat(64));
        Record {
            version: 1,
            time: rfc3339(SystemTime::UNIX_EPOCH),
            host_pid: u32::MAX,
            sandbox: format!("sandbox-{}", u64::MAX),
            run: format!("run-{}", u64::MAX),
            argv,
            argv_cut,
            hatches: usize::MAX,
            ending: How::Signaled { signal: i32::MIN },
            returncode: Some(i32::MIN),
            timed_out: false,
            terminated: false,
            truncated: false,
            oom: None,
            pids_limit: None,
            error,
            queued_ms: milliseconds(Duration::new(u64::MAX / 4, 123_456)),
            usage: Some(Used {
                wall_ms: milliseconds(Duration::new(u64::MAX / 4, 123_456)),
                user_ms: milliseconds(Duration::from_micros(u64::MAX)),
                system_ms: milliseconds(Duration::from_micros(u64::MAX)),
                peak_memory_kib: u64::MAX,
            }),
            enforcement: Some(Walls {
                tier: tier(Tier::Unprivileged),
                kernel_uid: u32::MAX,
                shared_uid: false,
                seccomp: "default".to_owned(),
                seccomp_digest: digest,
                landlock_abi: Some(u32::MAX),
                warnings: vec![warning(&Warning::UnboundedWorkspace); 12],
            }),
        }
    }

    #[test]
    fn a_line_is_printable_is_short_and_reads_back() {
        let word = |bytes: &[u8]| CString::new(bytes).unwrap();
        let rows: [(&str, Vec<CString>, bool); 6] = [
            ("plain", vec![word(b"/bin/echo"), word(b"a \"b\" \\")], false),
            ("hostile", vec![word(b"a\n{\"version\":2}\x1b[2J\x7f\xff\r")], false),
            ("characters", vec![word("é \u{202e} \u{1f600} \u{9b}".as_bytes())], false),
            ("long", vec![word(&[b'x'; 100_000])], true),
            ("long and escaped", vec![word(&[1; 5000]), word("é".repeat(5000).as_bytes())], true),
            ("many", vec![word(b""); 5000], true),
        ];
        for (name, words, is_cut) in rows {
            let (argv, cut) = arguments(&words);
            assert_eq!(cut, is_cut, "{name}");
            let text = "\u{1f600}\n".repeat(9000);
            let line = line(&record(&argv, cut, Some(error(&text))));
            assert!(line.len() <= AUDIT_LINE_BYTES_MAX, "{name}: {} bytes", line.len());
            let (last, rest) = line.split_last().unwrap();
            assert_eq!(*last, b'\n', "{name}");
            assert!(rest.iter().all(|byte| (b' '..=b'~').contains(byte)), "{name}");
            let read: serde_json::Value = serde_json::from_slice(rest).unwrap();
            let argv: Vec<_> = argv.into_iter().map(serde_json::Value::from).collect();
            assert_eq!(read["argv"], serde_json::Value::from(argv), "{name}");
            let whole = words.first().unwrap().to_string_lossy();
            assert!(whole.starts_with(read["argv"][0].as_str().unwrap()), "{name}");
        }
    }
}
