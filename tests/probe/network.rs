//! Questions about the network: whether loopback carries bytes. Knows no address beyond it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};

use crate::json::Value;

/// `loopback`: sends a word from a client to a server over IPv4 and IPv6.
pub(crate) fn loopback(_: &[OsString]) -> Value {
    Value::map([
        ("v4", Value::of(carry(Ipv4Addr::LOCALHOST.into()))),
        ("v6", Value::of(carry(Ipv6Addr::LOCALHOST.into()))),
    ])
}

/// The word as the server got it. One thread does both: the queue of a listener holds a client
/// that nobody has accepted, and a socket's buffer its word.
fn carry(address: IpAddr) -> io::Result<Vec<u8>> {
    let listener = TcpListener::bind((address, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    client.write_all(b"word")?;
    drop(client);
    let mut received = Vec::new();
    listener.accept()?.0.read_to_end(&mut received)?;
    Ok(received)
}
