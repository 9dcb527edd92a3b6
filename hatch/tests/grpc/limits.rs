//! Each limit of a hatch, just kept and just broken, by ordinary clients.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tokio_stream::iter;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request};

use crate::raw::{Connection, GOAWAY, RST_STREAM};
use crate::support::{Fixture, UNARY, client, counted, hello, runtime, together, within};

const KIB: u32 = 1024;

/// A name of so many bytes makes a message of three or four more.
fn long(bytes: u32) -> String {
    "x".repeat(usize::try_from(bytes).unwrap())
}

#[test]
fn a_long_message_is_refused_in_every_kind_of_call() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.message_bytes_max(64 * KIB));
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        for (bytes, is_taken) in [(60 * KIB, true), (65 * KIB, false), (8192 * KIB, false)] {
            let name = long(bytes);
            let statuses = [
                client.say_hello(hello(&name)).await.err(),
                client.keep_greeting(counted(&name, 0)).await.err(),
                client.greet_together(iter(["ada", &name, "eve"].map(hello))).await.err(),
                last(client.greet_each(iter(["ada", &name, "eve"].map(hello))).await).await,
            ];
            for status in statuses {
                assert_eq!(status.is_none(), is_taken, "{bytes}: {status:?}");
                let Some(status) = status else { continue };
                assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                let text = "bytes; the hatch takes at most 65536";
                assert!(status.message().ends_with(text), "{status:?}");
            }
        }
    });
    assert_eq!(fixture.hatch.refused(), 8);
}

/// The status that ends a stream of answers, if it is none.
async fn last(
    stream: Result<
        tonic::Response<tonic::Streaming<postern_proto::greeter::HelloReply>>,
        tonic::Status,
    >,
) -> Option<tonic::Status> {
    let mut stream = match stream {
        Ok(stream) => stream.into_inner(),
        Err(status) => return Some(status),
    };
    loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(status) => return Some(status),
        }
    }
}

/// Whatever a handler makes of the failed stream: it answers here as if that had come to its end,
/// or with an error of its own.
#[test]
fn no_handler_can_overlook_a_long_message() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.message_bytes_max(64 * KIB));
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        for handler in ["deaf", "rude"] {
            let (sender, names) = tokio::sync::mpsc::channel(1);
            let sending = tokio::spawn(async move {
                sender.send(hello(handler)).await.unwrap();
                // In a frame of its own, or the handler would learn of neither.
                tokio::time::sleep(Duration::from_millis(50)).await;
                sender.send(hello(&long(65 * KIB))).await.unwrap();
            });
            let status = client.greet_together(ReceiverStream::new(names)).await.unwrap_err();
            sending.await.unwrap();
            assert_eq!(status.code(), Code::ResourceExhausted, "{handler}: {status:?}");
            let text = "bytes; the hatch takes at most 65536";
            assert!(status.message().ends_with(text), "{handler}: {status:?}");
        }
    });
}

#[test]
fn a_long_answer_is_refused_in_every_kind_of_call() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.response_bytes_max(64 * KIB));
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        client.say_hello(counted("big", 60 * KIB)).await.unwrap();
        let statuses = [
            client.say_hello(counted("big", 65 * KIB)).await.err(),
            last(client.keep_greeting(counted("big", 3)).await).await,
        ];
        for status in statuses.map(Option::unwrap) {
            assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
            let text = "bytes; the hatch gives at most 65536";
            assert!(status.message().ends_with(text), "{status:?}");
        }
    });
}

/// One of the longest messages fills the budget; more of them take their turns.
#[test]
fn a_full_budget_makes_calls_wait_and_fails_none() {
    let _together = together();
    const LONG: u32 = 1024 * KIB;
    let fixture = Fixture::with(|builder| {
        builder.message_bytes_max(LONG).response_bytes_max(LONG).buffered_bytes_max(LONG)
    });
    runtime().block_on(async {
        let client = client(&fixture.path).await;
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let mut client = client.clone();
            calls.spawn(async move {
                let names = [long(LONG - 8), "ada".to_owned(), long(LONG - 8)];
                client.greet_together(iter(names.map(|name| hello(&name)))).await.unwrap();
                client.say_hello(counted("big", LONG - 8)).await.unwrap();
            });
        }
        assert_eq!(calls.join_all().await.len(), 20);
    });
}

#[test]
fn metadata_beyond_its_limit_is_refused() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        for (bytes, is_taken) in [(15 * KIB, true), (17 * KIB, false), (512 * KIB, false)] {
            let mut client = client(&fixture.path).await;
            let mut request = Request::new(hello("ada"));
            request.metadata_mut().insert("x-long", long(bytes).parse().unwrap());
            let outcome = client.say_hello(request).await;
            assert_eq!(outcome.is_ok(), is_taken, "{bytes}: {outcome:?}");
        }
    });
    assert_eq!(fixture.seen.called(), 1);
}

/// The streams beyond the limit are refused, and those within it are not harmed.
#[test]
fn a_connection_has_so_many_calls() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.streams_max(3));
    let mut connection = Connection::greeted(&fixture.path);
    for stream in [1, 3, 5, 7] {
        connection.call(stream, UNARY, "sleep");
    }
    let refused = connection.frames(Duration::from_millis(200));
    let resets: Vec<_> = refused.iter().filter(|frame| frame.kind == RST_STREAM).collect();
    assert!(resets.iter().all(|reset| reset.stream == 7), "{refused:?}");
    assert_eq!(resets[0].payload, [0, 0, 0, 7], "{refused:?}");
    assert_eq!(fixture.seen.alive(), 3);
}

/// Those beyond the limit wait, unaccepted, until another is closed.
#[test]
fn a_run_has_so_many_connections() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.connections_max(2));
    let idle: Vec<_> = (0..2).map(|_| UnixStream::connect(&fixture.path).unwrap()).collect();
    let path = fixture.path.clone();
    let waiting = std::thread::spawn(move || {
        runtime().block_on(async {
            client(&path).await.say_hello(hello("ada")).await.unwrap();
        });
    });
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fixture.seen.called(), 0);
    drop(idle);
    waiting.join().unwrap();
}

#[test]
fn a_connection_must_begin_in_time() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.first_bytes(Duration::from_millis(200)));
    // Nothing, and a preface that stops in the middle.
    for bytes in [&b""[..], b"PRI * HTTP/2.0\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let start = Instant::now();
        let mut connection = Connection::bare(&fixture.path);
        connection.send(bytes);
        connection.wait_for_end(Duration::from_secs(2));
        assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    }
}

/// One that does not answer a ping is dead; one that does may be idle as long as it likes.
#[test]
fn a_silent_connection_is_closed() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.keepalive(Duration::from_millis(200)));
    let mut silent = Connection::greeted(&fixture.path);
    silent.wait_for_end(Duration::from_secs(2));
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        client.say_hello(hello("ada")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1000)).await;
        client.say_hello(hello("ada")).await.unwrap();
    });
}

/// A guest that takes no answer cannot keep a handler beyond its deadline.
#[test]
fn an_answer_that_is_not_taken_has_a_deadline_too() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.deadline(Duration::from_millis(200)));
    let mut connection = Connection::with_window(&fixture.path, 0);
    connection.call_counted(1, "/greeter.Greeter/KeepGreeting", "big", 1000);
    within(Duration::from_secs(1), || fixture.seen.alive() > 0, "the handler answers");
    within(Duration::from_secs(3), || fixture.seen.alive() == 0, "its stream is dropped");
}

/// Calls that are broken off as soon as they are made: their handlers go with them.
#[test]
fn rapid_resets_leave_nothing() {
    let _together = together();
    let fixture = Fixture::new();
    let mut connection = Connection::greeted(&fixture.path);
    let mut bytes = Vec::new();
    for number in 0..5000 {
        let stream = 2 * number + 1;
        crate::raw::call(&mut bytes, stream, UNARY, "sleep");
        crate::raw::frame(&mut bytes, RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    }
    let is_sent = connection.send(&bytes);
    let is_closed = connection.frames(Duration::ZERO).iter().any(|frame| frame.kind == GOAWAY);
    assert!(is_sent || is_closed, "neither served nor closed");
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
}

/// Many small messages to a handler that takes its time over each: HTTP/2's own bound on small
/// frames must not take them for an attack.
#[test]
fn small_messages_may_come_faster_than_they_are_read() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        for name in ["", "slow"] {
            let names = iter((0..20_000).map(move |_| hello(name)));
            client.greet_together(names).await.unwrap();
        }
    });
}
