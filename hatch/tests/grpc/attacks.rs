//! Attacks on a hatch, each for as long as it is given: a row is a name and what it does.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

use crate::raw::{
    CONTINUATION, Connection, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, call, call_headers, frame, greeting, header_block, message, open_call,
};
use crate::support::{BOTH_STREAMS, CLIENT_STREAM, SERVER_STREAM, UNARY};

/// Acts on the socket until then.
pub(crate) type Attack = fn(&Path, Instant);

/// All of them.
pub(crate) const ATTACKS: [(&str, Attack); 24] = [
    ("two spin, none calls", spin),
    ("garbage", garbage),
    ("silent connections", silent),
    ("a byte at a time", slow),
    ("1 GiB length prefix", long_prefix),
    ("messages never finished", unfinished),
    ("10,000 open streams", many_streams),
    ("10,000 connections", many_connections),
    ("connect and close", connect_and_close),
    ("headers too long", long_headers),
    ("10,000 headers", many_headers),
    ("CONTINUATION flood", continuation),
    ("rapid reset", rapid_reset),
    ("resets by the server", made_to_reset),
    ("pings", |path, until| flood(path, until, |to| frame(to, PING, 0, 0, &[7; 8]))),
    ("settings", |path, until| flood(path, until, |to| frame(to, SETTINGS, 0, 0, &[]))),
    ("empty data", empty_data),
    ("small pieces never read", unread_pieces),
    ("windows full, never read", unread_windows),
    ("denied calls", denied),
    ("answers never read", never_reading),
    ("windows of one byte", small_windows),
    ("dies in mid-stream", dies),
    ("descriptors sent along", descriptors),
];

/// Sends again and again on new connections, as each one ends.
fn flood(path: &Path, until: Instant, add: impl Fn(&mut Vec<u8>)) {
    let mut bytes = Vec::new();
    (0..1000).for_each(|_| add(&mut bytes));
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        while Instant::now() < until && connection.send(&bytes) {}
    }
}

fn wait(until: Instant) {
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
}

/// Takes two cores and leaves the hatch alone: what the machine's scheduler costs the other run.
fn spin(_: &Path, until: Instant) {
    let spin = move || while Instant::now() < until {};
    std::thread::scope(|scope| {
        scope.spawn(spin);
        spin();
    });
}

fn garbage(path: &Path, until: Instant) {
    let mut state = 1_u32;
    while Instant::now() < until {
        let mut connection = Connection::bare(path);
        let bytes: Vec<u8> = (0..65536)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect();
        connection.send(&bytes);
    }
}

/// Until the host closes them, and then anew.
fn silent(path: &Path, until: Instant) {
    let mut connections: Vec<_> = (0..16).map(|_| Connection::bare(path)).collect();
    let time = until.saturating_duration_since(Instant::now());
    for connection in &mut connections {
        connection.wait_for_end(time.max(Duration::from_millis(100)));
    }
}

fn slow(path: &Path, until: Instant) {
    let mut connections: Vec<_> = (0..16).map(|_| Connection::bare(path)).collect();
    let mut bytes = greeting();
    call(&mut bytes, 1, UNARY, "ada");
    for byte in bytes {
        for connection in &mut connections {
            connection.send(&[byte]);
        }
        std::thread::sleep(Duration::from_millis(8));
        if Instant::now() > until {
            return;
        }
    }
}

fn long_prefix(path: &Path, until: Instant) {
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut bytes = Vec::new();
        for stream in (1..200).step_by(2) {
            open_call(&mut bytes, stream, [UNARY, CLIENT_STREAM][usize::from(stream % 4 == 1)]);
            frame(&mut bytes, DATA, 0, stream, &[0, 0x40, 0, 0, 0]);
            frame(&mut bytes, DATA, 0, stream, &[b'x'; 8000]);
        }
        connection.send(&bytes);
        connection.read_for(Duration::from_millis(20));
    }
}

/// Many messages of the longest kind, all but their last bytes, on every connection there may be.
fn unfinished(path: &Path, until: Instant) {
    let mut connections: Vec<_> = (0..16).map(|_| Connection::greeted(path)).collect();
    let mut bytes = Vec::new();
    for stream in (1..200).step_by(2) {
        open_call(&mut bytes, stream, UNARY);
        frame(&mut bytes, DATA, 0, stream, &[0, 0, 0x40, 0, 0]);
    }
    for connection in &mut connections {
        connection.send(&bytes);
    }
    let mut piece = Vec::new();
    for stream in (1..200).step_by(2) {
        frame(&mut piece, DATA, 0, stream, &[b'x'; 16000]);
    }
    while Instant::now() < until {
        for connection in &mut connections {
            connection.stream.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
            connection.send(&piece);
            connection.read_for(Duration::from_millis(1));
        }
    }
}

fn many_streams(path: &Path, until: Instant) {
    let mut bytes = Vec::new();
    (0..10_000).for_each(|number| open_call(&mut bytes, 2 * number + 1, BOTH_STREAMS));
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        connection.send(&bytes);
        // Until the hatch has had enough of it.
        connection.read_for(until.saturating_duration_since(Instant::now()));
    }
}

fn many_connections(path: &Path, until: Instant) {
    let address = SocketAddrUnix::new(path).unwrap();
    let mut open = Vec::new();
    for _ in 0..10_000 {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        if connect(&socket, &address).is_ok() {
            open.push(socket);
        }
    }
    wait(until);
}

fn connect_and_close(path: &Path, until: Instant) {
    while Instant::now() < until {
        (0..100).for_each(|_| drop(Connection::bare(path)));
    }
}

fn long_headers(path: &Path, until: Instant) {
    let long = "x".repeat(15_000);
    let mut headers = call_headers(UNARY).to_vec();
    headers.extend([("x-long", long.as_str()); 8]);
    let block = header_block(&headers);
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        for number in 0..50 {
            let mut bytes = Vec::new();
            let (first, rest) = block.split_at(16_000);
            frame(&mut bytes, HEADERS, END_STREAM, 2 * number + 1, first);
            for piece in rest.chunks(16_000) {
                frame(&mut bytes, CONTINUATION, 0, 2 * number + 1, piece);
            }
            frame(&mut bytes, CONTINUATION, END_HEADERS, 2 * number + 1, &[]);
            connection.send(&bytes);
        }
    }
}

fn many_headers(path: &Path, until: Instant) {
    let names: Vec<String> = (0..10_000).map(|number| format!("x-{number}")).collect();
    let mut headers = call_headers(UNARY).to_vec();
    headers.extend(names.iter().map(|name| (name.as_str(), "")));
    let block = header_block(&headers);
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut bytes = Vec::new();
        frame(&mut bytes, HEADERS, END_STREAM, 1, &[]);
        block.chunks(16_000).for_each(|piece| frame(&mut bytes, CONTINUATION, 0, 1, piece));
        frame(&mut bytes, CONTINUATION, END_HEADERS, 1, &[]);
        connection.send(&bytes);
    }
}

fn continuation(path: &Path, until: Instant) {
    let piece = header_block(&[("x-long", &"x".repeat(15_000))]);
    let mut bytes = Vec::new();
    (0..64).for_each(|_| frame(&mut bytes, CONTINUATION, 0, 1, &piece));
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut start = Vec::new();
        frame(&mut start, HEADERS, 0, 1, &header_block(&call_headers(UNARY)));
        connection.send(&start);
        while Instant::now() < until && connection.send(&bytes) {}
    }
}

fn rapid_reset(path: &Path, until: Instant) {
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut number = 0;
        loop {
            let mut bytes = Vec::new();
            for _ in 0..100 {
                call(&mut bytes, 2 * number + 1, UNARY, "sleep");
                frame(&mut bytes, RST_STREAM, 0, 2 * number + 1, &[0, 0, 0, 8]);
                number += 1;
            }
            if Instant::now() > until || !connection.send(&bytes) {
                break;
            }
        }
    }
}

/// Streams that the server must reset: their window grows beyond all bounds.
fn made_to_reset(path: &Path, until: Instant) {
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut bytes = Vec::new();
        for number in 0..2000 {
            open_call(&mut bytes, 2 * number + 1, BOTH_STREAMS);
            let most = 0x7fff_ffff_u32.to_be_bytes();
            frame(&mut bytes, WINDOW_UPDATE, 0, 2 * number + 1, &most);
        }
        connection.send(&bytes);
        connection.read_for(Duration::from_millis(5));
    }
}

fn empty_data(path: &Path, until: Instant) {
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut bytes = Vec::new();
        open_call(&mut bytes, 1, CLIENT_STREAM);
        connection.send(&bytes);
        let mut bytes = Vec::new();
        (0..1000).for_each(|_| frame(&mut bytes, DATA, 0, 1, &[]));
        while Instant::now() < until && connection.send(&bytes) {}
    }
}

/// To a handler whose answers are not taken, so that it asks for nothing more.
fn unread_pieces(path: &Path, until: Instant) {
    let name = "x".repeat(100);
    while Instant::now() < until {
        let open = |_| Connection::with_window(path, 0);
        let mut connections: Vec<_> = (0..16).map(open).collect();
        let mut bytes = Vec::new();
        for stream in (1..200).step_by(2) {
            open_call(&mut bytes, stream, BOTH_STREAMS);
            (0..20).for_each(|_| frame(&mut bytes, DATA, 0, stream, &message(&name, 0)));
            (0..2000).for_each(|_| frame(&mut bytes, DATA, 0, stream, &[0]));
        }
        for connection in &mut connections {
            connection.send(&bytes);
        }
    }
}

/// As much as the hatch lets every stream send, to handlers that ask for nothing more.
fn unread_windows(path: &Path, until: Instant) {
    let mut connections: Vec<_> = (0..16).map(|_| Connection::with_window(path, 0)).collect();
    let window = connections[0].window();
    for connection in &mut connections {
        for stream in (1..200).step_by(2) {
            let mut bytes = Vec::new();
            open_call(&mut bytes, stream, BOTH_STREAMS);
            (0..4).for_each(|_| frame(&mut bytes, DATA, 0, stream, &message("ada", 0)));
            let rest = vec![0; window - 1000];
            rest.chunks(16_000).for_each(|piece| frame(&mut bytes, DATA, 0, stream, piece));
            connection.send(&bytes);
        }
    }
    wait(until);
}

fn denied(path: &Path, until: Instant) {
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut bytes = Vec::new();
        (0..100).for_each(|number| call(&mut bytes, 2 * number + 1, "/\u{1b}[31m/x", "ada"));
        connection.send(&bytes);
        connection.read_for(Duration::from_millis(10));
    }
}

/// Long answers on every stream of every connection, in windows as wide as they come.
fn never_reading(path: &Path, until: Instant) {
    let open = |_| Connection::with_window(path, 0x7fff_0000);
    let mut connections: Vec<_> = (0..16).map(open).collect();
    for connection in &mut connections {
        for stream in (1..200).step_by(2) {
            connection.call_counted(stream, SERVER_STREAM, "big", 1000);
        }
    }
    wait(until);
}

fn small_windows(path: &Path, until: Instant) {
    let mut connections: Vec<_> = (0..16).map(|_| Connection::with_window(path, 1)).collect();
    for connection in &mut connections {
        for stream in (1..200).step_by(2) {
            connection.call_counted(stream, SERVER_STREAM, "big", 1000);
        }
    }
    wait(until);
}

fn dies(path: &Path, until: Instant) {
    while Instant::now() < until {
        let mut connection = Connection::greeted(path);
        let mut bytes = Vec::new();
        open_call(&mut bytes, 1, CLIENT_STREAM);
        let message = message("eve", 0);
        frame(&mut bytes, DATA, 0, 1, &message);
        frame(&mut bytes, DATA, 0, 1, &message[..7]);
        call(&mut bytes, 3, UNARY, "sleep");
        connection.send(&bytes[..bytes.len() - 3]);
    }
}

/// With every piece of a call, eight descriptors of the client's.
fn descriptors(path: &Path, until: Instant) {
    let file = std::fs::File::open("/dev/null").unwrap();
    let mut connections: Vec<_> = (0..8).map(|_| Connection::bare(path)).collect();
    let mut bytes = greeting();
    (0..20).for_each(|number| call(&mut bytes, 2 * number + 1, UNARY, "sleep"));
    for connection in &mut connections {
        for piece in bytes.chunks(50) {
            let files = [file.as_fd(); 8];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
            let piece = [std::io::IoSlice::new(piece)];
            sendmsg(&connection.stream, &piece, &mut control, SendFlags::NOSIGNAL).unwrap();
        }
    }
    wait(until);
}
