//! The end of a run: at once, whole, and felt by no other run.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::support::{Fixture, alone, client, counted, hello, runtime, together, within};
use crate::watch::descriptors;

const SOON: Duration = Duration::from_millis(100);

/// Drops a serving, and wants that to take no time.
fn end(fixture: &mut Fixture) {
    let start = Instant::now();
    drop(fixture.serving.take());
    assert!(start.elapsed() < Duration::from_millis(20), "{:?}", start.elapsed());
}

/// Calls that are underway for ever, on connections of their own, until they fail.
fn calls_underway(fixture: &Fixture) -> Vec<std::thread::JoinHandle<()>> {
    let start = Arc::new(Barrier::new(3));
    let threads = [false, true].map(|is_stream| {
        let (path, start) = (fixture.path.clone(), Arc::clone(&start));
        std::thread::spawn(move || {
            runtime().block_on(async {
                let mut client = client(&path).await;
                start.wait();
                match is_stream {
                    false => drop(client.say_hello(hello("sleep")).await.unwrap_err()),
                    true => {
                        let stream = client.keep_greeting(counted("sleep", 2)).await.unwrap();
                        let mut stream = stream.into_inner();
                        stream.message().await.unwrap().unwrap();
                        stream.message().await.unwrap_err();
                    }
                }
            });
        })
    });
    start.wait();
    within(Duration::from_secs(2), || fixture.seen.called() >= 3, "calls underway");
    threads.into()
}

#[test]
fn handlers_that_never_finish_are_dropped() {
    let _together = together();
    let mut fixture = Fixture::new();
    let threads = calls_underway(&fixture);
    assert!(fixture.seen.alive() > 0);
    end(&mut fixture);
    let took = within(SOON, || fixture.seen.alive() == 0, "every handler dropped");
    println!("handlers dropped {took:?} after the end");
    for thread in threads {
        thread.join().unwrap();
    }
    within(SOON, || UnixStream::connect(&fixture.path).is_err(), "nobody listens");
}

/// Idle connections, calls underway and connections nobody has accepted.
#[test]
fn no_descriptor_of_the_run_remains() {
    let _alone = alone();
    let first = Fixture::with(|builder| builder.connections_max(4));
    within(Duration::from_secs(1), || descriptors() > 0, "started");
    std::thread::sleep(SOON);
    let before = descriptors();
    let (path, _, serving) = first.another("second.sock");
    let clients: Vec<_> = (0..10).map(|_| UnixStream::connect(&path).unwrap()).collect();
    // Ten here, and a listener and four in the hatch.
    within(SOON, || descriptors() == before + 15, "four connections accepted");
    drop(serving);
    within(SOON, || descriptors() == before + 10, "all closed but the clients");
    for mut client in clients {
        // At its end, or reset: never waiting.
        client.set_read_timeout(Some(SOON)).unwrap();
        let mut rest = Vec::new();
        let outcome = client.read_to_end(&mut rest).map_err(|error| error.kind());
        assert!(!matches!(outcome, Err(std::io::ErrorKind::WouldBlock)), "{outcome:?}");
    }
}

/// Even while a handler holds the thread, a run's end cuts its connections.
#[test]
fn a_handler_that_blocks_delays_no_end() {
    let _together = together();
    let mut fixture = Fixture::new();
    let path = fixture.path.clone();
    let call = std::thread::spawn(move || {
        runtime().block_on(async {
            let mut client = client(&path).await;
            let start = Instant::now();
            client.say_hello(hello("block")).await.unwrap_err();
            start.elapsed()
        })
    });
    within(Duration::from_secs(1), || fixture.seen.called() == 1, "the handler blocks");
    end(&mut fixture);
    let took = call.join().unwrap();
    assert!(took < Duration::from_millis(250), "{took:?}");
}

#[test]
fn other_runs_go_on() {
    let _together = together();
    let mut fixture = Fixture::new();
    let (path, _, _serving) = fixture.another("second.sock");
    runtime().block_on(async {
        let mut other = client(&path).await;
        other.say_hello(hello("ada")).await.unwrap();
        end(&mut fixture);
        other.say_hello(hello("ada")).await.unwrap();
    });
}

/// The guest may be faster than the hatch: what waits in the backlog is served.
#[test]
fn connections_from_before_the_opening_are_served() {
    let _together = together();
    use postern_hatch::{Hatch, RunId};
    let fixture = Fixture::new();
    let path = fixture.directory().join("early.sock@localhost");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let early = std::thread::spawn({
        let path = path.clone();
        move || {
            runtime().block_on(async {
                client(&path).await.say_hello(hello("ada")).await.unwrap();
            });
        }
    });
    std::thread::sleep(SOON);
    let _serving = fixture.hatch.open(listener, RunId::next()).unwrap();
    early.join().unwrap();
}
