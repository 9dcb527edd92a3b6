//! The service's own memory stays as it is, however much a guest writes, each way.

use std::time::{Duration, Instant};

use postern::Command;

use crate::ways::{Service, each_way};
use crate::{begin, figure, long_or, sandbox};

const GIGABYTE: u64 = 1_000_000_000;
/// Of each output.
const CAP: u64 = 1 << 20;
/// How much more than the cap twice, for a vector that grows, this process may need.
const MORE_KIB: u64 = 8 << 10;

fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)).expect("the field");
    value.trim_matches([':', ' ', '\t']).split(' ').next().unwrap().parse().unwrap()
}

/// This process's own memory now.
pub(crate) fn anonymous_kib() -> u64 {
    field("/proc/self/status", "RssAnon")
}

/// How much more memory this process had at any moment of an act than before.
fn peak_growth_kib(act: impl FnOnce()) -> u64 {
    // Has the kernel forget the highest mark so far.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = field("/proc/self/status", "VmHWM");
    act();
    field("/proc/self/status", "VmHWM") - before
}

/// An act by its name, and its figure.
fn is_bounded(name: &str, service: &Service<'_>, act: impl FnOnce()) {
    let begun = Instant::now();
    let kib = peak_growth_kib(act);
    let way = service.way;
    figure(format!("{name}, {way:?}: {:?}, {:.1} MiB more", begun.elapsed(), mib(kib)));
    assert!(kib < MORE_KIB + 2 * (CAP >> 10), "{kib} KiB more: {name}, {way:?}");
}

fn mib(kib: u64) -> f64 {
    f64::from(u32::try_from(kib).unwrap()) / 1024.0
}

fn writer() -> Command {
    writer_of(GIGABYTE)
}

fn writer_of(bytes: u64) -> Command {
    Command::new("head").args(["-c", &bytes.to_string(), "/dev/zero"])
}

#[test]
fn a_gigabyte_over_the_cap_is_no_burden() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        is_bounded("1 GB over the cap", service, || {
            let result = service.run(writer().output_bytes_max(CAP)).unwrap();
            assert!(result.ok() && result.truncated);
            assert_eq!(u64::try_from(result.stdout.len()).unwrap(), CAP);
        });
    });
}

/// Takes all that is written, piece by piece, with a pause after each.
fn in_pieces(service: &Service<'_>, bytes: u64, pause: Option<Duration>) {
    let mut live = service.start(writer_of(bytes));
    let mut taken = 0;
    while let Some(chunk) = live.next_chunk().unwrap() {
        taken += u64::try_from(chunk.bytes.len()).unwrap();
        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
    }
    assert_eq!(taken, bytes);
    let result = live.wait().unwrap();
    assert!(result.ok() && !result.truncated);
}

#[test]
fn gigabytes_in_pieces_are_no_burden() {
    let _watch = begin();
    let gigabytes = long_or(10, 1);
    each_way(&sandbox(), |service| {
        is_bounded(&format!("{gigabytes} GB in pieces"), service, || {
            in_pieces(service, gigabytes * GIGABYTE, None);
        });
    });
}

/// The guest waits meanwhile; nothing is read ahead of the reader.
#[test]
fn a_slow_reader_is_no_burden() {
    let _watch = begin();
    let megabytes = long_or(1000, 50);
    each_way(&sandbox(), |service| {
        is_bounded(&format!("{megabytes} MB for a slow reader"), service, || {
            in_pieces(service, megabytes * 1_000_000, Some(Duration::from_millis(1)));
        });
    });
}

#[test]
fn output_that_nobody_takes_is_no_burden() {
    let _watch = begin();
    each_way(&sandbox(), |service| {
        is_bounded("1 GB that nobody takes", service, || {
            let live = service.start(writer());
            std::thread::sleep(Duration::from_millis(300));
            live.kill();
            let result = live.communicate(None, CAP).unwrap();
            assert!(result.terminated && !result.ok());
        });
    });
}
