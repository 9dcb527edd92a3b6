//! Ordinary calls: every kind, metadata, status details, deadlines, cancellation, concurrency.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio_stream::{StreamExt, iter};
use tonic::{Code, Request};

use crate::http2::post_named;
use crate::support::{Fixture, UNARY, client, counted, hello, runtime, together, within};

#[test]
fn each_kind_of_call_is_answered() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        let one = client.say_hello(hello("ada")).await.unwrap().into_inner();
        assert_eq!(one.message, format!("hello, ada of {}", fixture.run));

        let many = client.keep_greeting(counted("bob", 3)).await.unwrap().into_inner();
        let many: Vec<_> = many.map(|reply| reply.unwrap().message).collect().await;
        assert_eq!(many, ["1: hello, bob", "2: hello, bob", "3: hello, bob"]);

        let names = iter(["eve", "dan"]).map(hello);
        let one = client.greet_together(names).await.unwrap().into_inner();
        assert_eq!(one.message, "hello, eve, dan");

        let names = iter(["eve", "dan"]).map(hello);
        let many = client.greet_each(names).await.unwrap().into_inner();
        let many: Vec<_> = many.map(|reply| reply.unwrap().message).collect().await;
        assert_eq!(many, ["hello, eve", "hello, dan"]);
    });
    assert_eq!(fixture.hatch.refused(), 0);
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
}

#[test]
fn metadata_and_status_details_pass_unchanged() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        let mut request = Request::new(hello("ada"));
        request.metadata_mut().insert("x-tag", "a b".parse().unwrap());
        let bytes = tonic::metadata::MetadataValue::from_bytes(&[0, 1, 255]);
        request.metadata_mut().insert_bin("x-tag-bin", bytes.clone());
        let response = client.say_hello(request).await.unwrap();
        assert_eq!(response.metadata().get("x-tag").unwrap(), "a b");
        assert_eq!(response.metadata().get_bin("x-tag-bin").unwrap(), bytes);

        let status = client.say_hello(hello("details")).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "déjà\nvu"));
        assert_eq!(status.details(), [0, 255, 7]);
        assert_eq!(status.metadata().get("x-reason").unwrap(), "closed");
    });
}

#[test]
fn a_panic_costs_its_call_and_tells_nothing() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        let status = client.say_hello(hello("panic")).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Internal, "the handler failed"));
        let mut stream = client.keep_greeting(counted("panic", 2)).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        let status = stream.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Internal, "the handler failed"));
        client.say_hello(hello("ada")).await.unwrap();
    });
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
}

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn the_deadline_ends_a_call_before_its_answer_and_in_the_middle() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.deadline(SHORT));
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        let start = Instant::now();
        let status = client.say_hello(hello("sleep")).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        let mut stream = client.keep_greeting(counted("sleep", 3)).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        let status = stream.message().await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        let took = start.elapsed();
        assert!(took >= SHORT * 2 && took < SHORT * 8, "{took:?}");
    });
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
}

/// By a client without a clock of its own, which would answer instead of the hatch.
#[test]
fn the_shorter_deadline_holds() {
    let _together = together();
    let fixture = Fixture::with(|builder| builder.deadline(SHORT * 4));
    for (timeout, at_least) in
        [("0n", Duration::ZERO), ("200m", SHORT), ("99S", SHORT * 4), ("soon", SHORT * 4)]
    {
        let headers = [("content-type", "application/grpc"), ("grpc-timeout", timeout)];
        let start = Instant::now();
        let sleeping = post_named(&fixture.path, UNARY, "sleep", &headers);
        assert_eq!(runtime().block_on(sleeping).1.as_deref(), Some("4"), "{timeout}");
        let took = start.elapsed();
        assert!(took >= at_least && took < at_least + SHORT * 2, "{timeout}: {took:?}");
    }
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
}

#[test]
fn a_cancelled_call_drops_its_handler() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        let mut client = client(&fixture.path).await;
        let call = client.say_hello(hello("sleep"));
        tokio::time::timeout(Duration::from_millis(100), call).await.unwrap_err();
        let mut stream = client.keep_greeting(counted("sleep", 9)).await.unwrap().into_inner();
        stream.message().await.unwrap().unwrap();
        assert!(fixture.seen.alive() > 0);
        drop(stream);
        // On the same connection, so that it is still driven.
        client.say_hello(hello("wait")).await.unwrap();
    });
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
}

/// A half upload is never taken for a whole one.
#[test]
fn a_client_that_dies_leaves_no_whole_stream() {
    let _together = together();
    let fixture = Fixture::new();
    for is_reset in [true, false] {
        runtime().block_on(async {
            let mut client = client(&fixture.path).await;
            let names = iter(["half"]).map(hello).chain(tokio_stream::pending());
            let call = client.greet_together(names);
            tokio::time::timeout(Duration::from_millis(100), call).await.unwrap_err();
            // With the connection kept, the call is reset; without, everything is gone.
            if is_reset {
                client.say_hello(hello("wait")).await.unwrap();
            }
        });
    }
    within(Duration::from_secs(1), || fixture.seen.alive() == 0, "every handler dropped");
    assert_eq!(fixture.seen.whole.load(Ordering::SeqCst), 0);
}

#[test]
fn calls_overlap_on_one_connection_and_on_many() {
    let _together = together();
    let fixture = Fixture::new();
    runtime().block_on(async {
        let start = Instant::now();
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let client = client(&fixture.path).await;
            for _ in 0..20 {
                let mut client = client.clone();
                calls.spawn(async move { client.say_hello(hello("wait")).await.unwrap() });
            }
        }
        assert_eq!(calls.join_all().await.len(), 100);
        assert!(start.elapsed() < Duration::from_millis(1000), "{:?}", start.elapsed());
    });
}

#[test]
fn each_run_is_known_by_its_listener() {
    let _together = together();
    let fixture = Fixture::new();
    let (path, run, _serving) = fixture.another("second.sock");
    assert_ne!(run, fixture.run);
    runtime().block_on(async {
        for (path, run) in [(&path, run), (&fixture.path, fixture.run)] {
            let reply = client(path).await.say_hello(hello("ada")).await.unwrap().into_inner();
            assert_eq!(reply.message, format!("hello, ada of {run}"));
        }
    });
}
