//! What becomes of a run that writes more than it may, each way of waiting and of taking output.

use postern::{Chunk, Command, Ending, OutputCap, OutputStream};

use crate::ways::{each_way, sh};
use crate::{HANG, begin, sandbox};

struct Row {
    name: &'static str,
    script: &'static str,
    cap: OutputCap,
    merged: bool,
    /// Bytes kept of stdout and of stderr, each with whether it was cut.
    kept: [(usize, bool); 2],
    /// It was killed for it.
    overflowed: bool,
}

const MAX: u64 = 1000;

const ROWS: [Row; 7] = [
    Row {
        name: "up to the cap and no further",
        script: "head -c 1000 /dev/zero; head -c 1000 /dev/zero >&2",
        cap: OutputCap::Kill,
        merged: false,
        kept: [(1000, false), (1000, false)],
        overflowed: false,
    },
    Row {
        name: "a byte more is dropped",
        script: "head -c 1001 /dev/zero; echo x >&2",
        cap: OutputCap::Drop,
        merged: false,
        kept: [(1000, true), (2, false)],
        overflowed: false,
    },
    Row {
        name: "a byte more is the end",
        script: "head -c 1001 /dev/zero; exec sleep 1000",
        cap: OutputCap::Kill,
        merged: false,
        kept: [(1000, true), (0, false)],
        overflowed: true,
    },
    Row {
        name: "of stderr too",
        script: "echo x; head -c 1001 /dev/zero >&2; exec sleep 1000",
        cap: OutputCap::Kill,
        merged: false,
        kept: [(2, false), (1000, true)],
        overflowed: true,
    },
    Row {
        name: "without end",
        script: "exec yes",
        cap: OutputCap::Kill,
        merged: false,
        kept: [(1000, true), (0, false)],
        overflowed: true,
    },
    Row {
        name: "both together are dropped",
        script: "head -c 600 /dev/zero; head -c 600 /dev/zero >&2",
        cap: OutputCap::Drop,
        merged: true,
        kept: [(1000, true), (0, false)],
        overflowed: false,
    },
    Row {
        name: "both together are the end",
        script: "head -c 600 /dev/zero; head -c 600 /dev/zero >&2; exec sleep 1000",
        cap: OutputCap::Kill,
        merged: true,
        kept: [(1000, true), (0, false)],
        overflowed: true,
    },
];

impl Row {
    fn command(&self) -> Command {
        let command = sh(self.script).timeout(HANG).output_cap(self.cap);
        command.output_bytes_max(MAX).merge_output(self.merged)
    }
}

#[test]
fn what_is_beyond_the_cap() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for row in &ROWS {
            let result = service.run(row.command()).unwrap();
            let kept = [
                (result.stdout.len(), result.stdout_truncated),
                (result.stderr.len(), result.stderr_truncated),
            ];
            assert_eq!(kept, row.kept, "{}", row.name);
            assert_eq!(result.truncated, kept.iter().any(|(_, cut)| *cut), "{}", row.name);
            let ending = if row.overflowed { Ending::Killed(9) } else { Ending::Exited(0) };
            let found = (result.overflowed, result.ending, result.timed_out);
            assert_eq!(found, (row.overflowed, ending, false), "{}, {:?}", row.name, service.way);
        }
    });
}

/// Whether it has ended by itself first is a race that the verdict does not tell of.
#[test]
fn a_short_run_over_its_cap_is_no_success() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for script in ["head -c 1001 /dev/zero", "head -c 1001 /dev/zero; sleep 0.02"] {
            let command = sh(script).output_cap(OutputCap::Kill).output_bytes_max(MAX);
            let result = service.run(command).unwrap();
            assert!(result.overflowed && !result.ok(), "{script}: {result:?}");
            assert_eq!((result.returncode(), result.stdout.len()), (137, 1000), "{script}");
            assert_eq!(result.reason(), "killed: it wrote more than it may", "{script}");
        }
    });
}

/// Pieces are not kept: dropping is no business of theirs, and a cap that ends the run is.
#[test]
fn pieces_within_the_cap() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        for row in &ROWS {
            let mut live = service.start(row.command());
            let mut handed = [0, 0];
            while let Some(Chunk { stream, bytes, .. }) = live.next_chunk().unwrap() {
                handed[usize::from(stream == OutputStream::Stderr)] += bytes.len();
            }
            let result = live.wait().unwrap();
            assert_eq!(result.overflowed, row.overflowed, "{}, {:?}", row.name, service.way);
            let [(stdout, _), (stderr, _)] = row.kept;
            match row.cap {
                OutputCap::Kill => assert_eq!(handed, [stdout, stderr], "{}", row.name),
                OutputCap::Drop | _ => {
                    assert!(handed[0] > 1000 && !result.truncated, "{}: {handed:?}", row.name)
                }
            }
        }
    });
}

/// A cap given at the end counts as one given at the start.
#[test]
fn a_cap_given_late() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        let command = sh("exec yes").output_cap(OutputCap::Kill).timeout(HANG);
        let result = service.start(command).communicate(None, 10).unwrap();
        assert_eq!((result.stdout_text().as_ref(), result.overflowed), ("y\ny\ny\ny\ny\n", true));
        assert!(!result.ok() && result.returncode() == 137);
    });
}
