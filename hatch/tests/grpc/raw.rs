//! A client that writes its own bytes: HTTP/2 frames, right and wrong, with headers that no library
//! would send.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The number of the setting that is the first window of each stream.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Adds a frame.
pub(crate) fn frame(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    to.extend(&length[1..]);
    to.extend([kind, flags]);
    to.extend(stream.to_be_bytes());
    to.extend(payload);
}

/// A list of headers as HPACK writes it without table and without Huffman's code.
pub(crate) fn header_block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    block
}

fn length(to: &mut Vec<u8>, length: usize) {
    let Some(mut rest) = length.checked_sub(127) else {
        to.push(u8::try_from(length).unwrap());
        return;
    };
    to.push(127);
    while rest >= 128 {
        to.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    to.push(u8::try_from(rest).unwrap());
}

/// The headers of a call.
pub(crate) fn call_headers(method: &str) -> [(&str, &str); 6] {
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
}

/// A `HelloRequest`, in its envelope.
pub(crate) fn message(name: &str, count: u8) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    let body = [&[0x0a, length][..], name.as_bytes(), &[0x10, 0x80 | count, 7]].concat();
    [&[0, 0, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat()
}

/// Adds the headers of a call, which goes on.
pub(crate) fn open_call(to: &mut Vec<u8>, stream: u32, method: &str) {
    frame(to, HEADERS, END_HEADERS, stream, &header_block(&call_headers(method)));
}

/// Adds a whole call.
pub(crate) fn call(to: &mut Vec<u8>, stream: u32, method: &str, name: &str) {
    open_call(to, stream, method);
    frame(to, DATA, END_STREAM, stream, &message(name, 0));
}

/// The bytes that begin every connection.
pub(crate) fn greeting() -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    frame(&mut bytes, SETTINGS, 0, 0, &[]);
    bytes
}

/// A frame of the server's.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    read: Vec<u8>,
}

impl Connection {
    /// One on which nothing is sent yet.
    pub(crate) fn bare(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        Self { stream, read: Vec::new() }
    }

    /// One that has begun.
    pub(crate) fn greeted(path: &Path) -> Self {
        let mut connection = Self::bare(path);
        connection.send(&greeting());
        connection
    }

    /// One whose streams may be sent so many bytes, and as a whole almost everything.
    pub(crate) fn with_window(path: &Path, bytes: u32) -> Self {
        let mut connection = Self::bare(path);
        let mut greeting = PREFACE.to_vec();
        let setting = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &bytes.to_be_bytes()].concat();
        frame(&mut greeting, SETTINGS, 0, 0, &setting);
        frame(&mut greeting, WINDOW_UPDATE, 0, 0, &0x7f00_0000_u32.to_be_bytes());
        connection.send(&greeting);
        connection
    }

    /// Whether all of it was written, in the time that a write may take.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub(crate) fn call(&mut self, stream: u32, method: &str, name: &str) {
        let mut bytes = Vec::new();
        call(&mut bytes, stream, method, name);
        self.send(&bytes);
    }

    /// A call with a count above 896, of which the lowest seven bits are given.
    pub(crate) fn call_counted(&mut self, stream: u32, method: &str, name: &str, count: u16) {
        let mut bytes = Vec::new();
        open_call(&mut bytes, stream, method);
        let low = u8::try_from(count % 128).unwrap();
        frame(&mut bytes, DATA, END_STREAM, stream, &message(name, low));
        self.send(&bytes);
    }

    /// What the server lets every stream send at first.
    pub(crate) fn window(&mut self) -> usize {
        let frames = self.frames(Duration::from_millis(50));
        let mut settings = frames.iter().filter(|frame| frame.kind == SETTINGS);
        let window = settings.find_map(|frame| {
            let mut settings = frame.payload.chunks_exact(6);
            let own = settings.find(|own| own.starts_with(&INITIAL_WINDOW_SIZE.to_be_bytes()))?;
            Some(u32::from_be_bytes(own[2..].try_into().unwrap()))
        });
        usize::try_from(window.unwrap_or(65535)).unwrap()
    }

    /// What has come after so long, or until the end.
    pub(crate) fn frames(&mut self, time: Duration) -> Vec<Frame> {
        self.read_for(time);
        let mut frames = Vec::new();
        let mut rest = self.read.as_slice();
        while let [a, b, c, kind, _flags, s0, s1, s2, s3, after @ ..] = rest {
            let length = usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).unwrap();
            let Some((payload, after)) = after.split_at_checked(length) else { break };
            let stream = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
            frames.push(Frame { kind: *kind, stream, payload: payload.to_vec() });
            rest = after;
        }
        self.read = rest.to_vec();
        frames
    }

    /// Reads until the end, and wants it in time.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self, time: Duration) {
        assert!(self.read_for(time), "still open after {time:?}");
    }

    /// Whether the end has come.
    pub(crate) fn read_for(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut buffer = [0; 65536];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => self.read.extend(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }
}
