//! What is written is read back as it was meant, by the launcher's own reader.

use postern_launcher::wire::{Reader, Request};

use super::*;

#[test]
fn paths_are_relative_to_the_root() {
    type Row<'a> = (&'a CStr, &'a [u8], &'a [u8], &'a [u8]);
    let rows: [Row<'_>; 3] = [
        (c"/", b".\0", b".\0", b"\0"),
        (c"/proc", b"proc\0", b".\0", b"proc\0"),
        (c"/run/postern/stubs", b"run/postern/stubs\0", b"run/postern\0", b"stubs\0"),
    ];
    for (target, inside, parent, name) in rows {
        let mut w = Writer::default();
        w.inside(target).split(target);
        let mut r = Reader::new(&w.bytes);
        let read = [r.bytes().unwrap(), r.bytes().unwrap(), r.bytes().unwrap()];
        assert_eq!(read, [inside, parent, name], "{target:?}");
    }
}

#[test]
fn a_request_is_read_as_it_was_written() {
    let arguments = [c"/bin/echo".to_owned(), c"".to_owned(), c"two words\n".to_owned()];
    let environment = [c"PATH=/a".to_owned(), c"PATH=/b".to_owned()];
    let (cwd, run_directory) = (Some(c"/tmp"), Some(c"run-1"));
    let bytes = run(&Run {
        arguments: &arguments,
        environment: &environment,
        cwd,
        run_directory,
        attest: true,
        limit_inside: true,
        has_cgroup: true,
        terminal: Some(WindowSize { rows: 30, columns: 100 }),
    });
    let request = Request::read(&bytes).unwrap();
    let all = run_flags::ATTEST | run_flags::LIMIT_INSIDE | run_flags::CGROUP;
    assert_eq!(request.flags, all | run_flags::TERMINAL | 30 << 32 | 100 << 48);
    assert_eq!((request.program, request.search), (c"/bin/echo", c"/b"));
    assert_eq!((Some(request.cwd), Some(request.run_directory)), (cwd, run_directory));
    let table = bytes[request.table..].chunks_exact(8);
    let offsets: Vec<_> =
        table.take(7).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
    let text = |offset: u64| {
        let at = usize::try_from(offset).unwrap();
        CStr::from_bytes_until_nul(&bytes[at..]).unwrap().to_owned()
    };
    let [a, b, c, 0, d, e, 0] = offsets[..] else { panic!("{offsets:?}") };
    assert_eq!([a, b, c].map(text), arguments);
    assert_eq!([d, e].map(text), environment);
}
