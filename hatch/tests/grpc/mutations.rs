//! Valid conversations with a few bytes changed, from a seed: no panic, no handler left, no leak.

use std::net::Shutdown;
use std::time::Duration;

use crate::hostile::HostProcess;
use crate::raw::{
    Connection, DATA, END_STREAM, PING, PREFACE, WINDOW_UPDATE, call, frame, greeting, open_call,
};
use crate::support::{CLIENT_STREAM, SERVER_STREAM, UNARY, alone};

const ROUNDS: u64 = 2000;

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }
}

fn conversation() -> Vec<u8> {
    let mut bytes = greeting();
    frame(&mut bytes, WINDOW_UPDATE, 0, 0, &[0, 1, 0, 0]);
    call(&mut bytes, 1, UNARY, "ada");
    frame(&mut bytes, PING, 0, 0, b"12345678");
    call(&mut bytes, 3, SERVER_STREAM, "bob");
    open_call(&mut bytes, 5, CLIENT_STREAM);
    for name in ["eve", "dan"] {
        frame(&mut bytes, DATA, 0, 5, &crate::raw::message(name, 0));
    }
    frame(&mut bytes, DATA, END_STREAM, 5, &[]);
    call(&mut bytes, 7, "/greeter.Greeter/Gone", "ada");
    bytes
}

/// One change: a byte, a bit, a piece left out, said twice, or put in.
fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    // After the preface, most of the time, or the rest would never be read.
    let start = if numbers.below(20) == 0 { 0 } else { PREFACE.len() };
    let at = start + numbers.below(bytes.len() - start);
    let length = 1 + numbers.below(16.min(bytes.len() - at));
    match numbers.below(5) {
        0 => bytes[at] = numbers.byte(),
        1 => bytes[at] ^= 1 << numbers.below(8),
        2 => drop(bytes.drain(at..at + length)),
        3 => {
            let piece = bytes[at..at + length].to_vec();
            drop(bytes.splice(at..at, piece));
        }
        _ => {
            let piece: Vec<u8> = (0..length).map(|_| numbers.byte()).collect();
            drop(bytes.splice(at..at, piece));
        }
    }
}

#[test]
fn no_mutation_of_a_conversation_does_harm() {
    let _alone = alone();
    let mut host = HostProcess::start();
    let (mut numbers, valid) = (Numbers(0x5eed_0000_0001), conversation());
    let before = host.usage();
    host.is_well();
    for round in 0..ROUNDS {
        let mut bytes = valid.clone();
        for _ in 0..=numbers.below(4) {
            mutate(&mut bytes, &mut numbers);
        }
        let mut connection = Connection::bare(&host.first);
        connection.send(&bytes);
        // With the end of what is sent the server has heard everything, and must end as well.
        drop(connection.stream.shutdown(Shutdown::Write));
        assert!(connection.read_for(Duration::from_secs(5)), "round {round}: still open");
    }
    host.is_well();
    let after = host.settled(&before);
    println!("{ROUNDS} mutations: before {before:?}, after {after:?}");
    assert_eq!((after.descriptors, after.alive, after.panics), (before.descriptors, 0, 0));
    assert!(after.resident_kib < before.resident_kib + 20 * 1024);
}
