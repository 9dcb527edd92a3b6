//! What is not served: methods off the list, methods of nobody, and whatever is no gRPC.

use std::path::Path;

use tokio_stream::iter;
use tonic::{Code, Status};

use crate::http2::{post, request};
use crate::support::{ALL, Fixture, UNARY, client, counted, hello, runtime, together};

/// The status of each kind of call, by the order of [`ALL`].
async fn statuses(path: &Path) -> [Status; 4] {
    let mut client = client(path).await;
    [
        client.say_hello(hello("ada")).await.unwrap_err(),
        client.keep_greeting(counted("ada", 1)).await.unwrap_err(),
        // A stream that never ends: the refusal waits for nothing of it.
        client.greet_together(tokio_stream::pending()).await.unwrap_err(),
        client.greet_each(tokio_stream::pending()).await.unwrap_err(),
    ]
}

#[test]
fn each_kind_of_call_off_the_list_is_denied() {
    let _together = together();
    let fixture = Fixture::allowing(&[UNARY], |builder| builder);
    let denying = postern_hatch::GrpcHatch::allowing(["/greeter.Greeter/Other"]);
    let denying = denying.build().unwrap();
    let (path, _, _serving) = crate::support::open(&denying, fixture.directory(), "denying.sock");
    for (status, method) in runtime().block_on(statuses(&path)).iter().zip(ALL) {
        let text = format!("{method} is not on the hatch allowlist");
        assert_eq!((status.code(), status.message()), (Code::PermissionDenied, text.as_str()));
    }
    assert_eq!(denying.refused(), 4);
    assert_eq!(fixture.seen.called(), 0);
}

#[test]
fn what_is_allowed_and_not_served_says_so() {
    let _together = together();
    // One method that no service of the hatch has, and one service that nobody added.
    let methods = ["/greeter.Greeter/Gone", "/repo.Repo/Read", UNARY];
    let builder = postern_hatch::GrpcHatch::allowing(methods);
    let host = crate::service::Host::default();
    let hatch = builder.add_service(crate::support::server(host)).build().unwrap();
    let scratch = crate::support::Scratch::new();
    let (path, _, _serving) = crate::support::open(&hatch, scratch.path(), "hatch.sock");
    runtime().block_on(async {
        for method in &methods[..2] {
            let answer = post(&path, method, &[("content-type", "application/grpc")]).await;
            let text = format!("{method} is allowed but not served").replace(' ', "%20");
            assert_eq!(answer, (200, Some("12".to_owned()), Some(text)), "{method}");
        }
    });
    assert_eq!(hatch.refused(), 0);
}

const GRPC: &[(&str, &str)] = &[("content-type", "application/grpc"), ("te", "trailers")];

/// Every spelling but the one on the list.
#[test]
fn no_other_spelling_reaches_a_handler() {
    let _together = together();
    let fixture = Fixture::allowing(&[UNARY], |builder| builder);
    let huge = format!("/{}", "a".repeat(8000));
    let rows = [
        "/greeter.Greeter/SayHello/",
        "//greeter.Greeter/SayHello",
        "/greeter.Greeter//SayHello",
        "/greeter.greeter/SayHello",
        "/greeter.Greeter/sayHello",
        "/GREETER.GREETER/SAYHELLO",
        "/greeter.Greeter%2fSayHello",
        "/greeter.Greeter/SayHell%6f",
        "/greeter.Greeter/SayHello%00",
        "/./greeter.Greeter/SayHello",
        "/x/../greeter.Greeter/SayHello",
        "/greeter.Greeter/../greeter.Greeter/SayHello",
        "/greeter.Greeter/SayHello?",
        "/greeter.Greeter/SayHello?a=b",
        "/greeter.Greeter/SayHello;a=b",
        "/greeter.Greeter/KeepGreeting",
        "/greeter.Greeter/",
        "/greeter.Greeter",
        "/",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.health.v1.Health/Check",
        &huge,
    ];
    runtime().block_on(async {
        for row in rows {
            let (http, code, text) = post(&fixture.path, row, GRPC).await;
            assert_eq!((http, code.as_deref()), (200, Some("7")), "{row}");
            let text = text.unwrap();
            assert!(text.ends_with("%20is%20not%20on%20the%20hatch%20allowlist"), "{text}");
            assert!(text.len() < 600, "{} bytes for {row}", text.len());
        }
        assert_eq!(fixture.hatch.refused(), u64::try_from(rows.len()).unwrap());
        // The row that must pass, or none of the above says anything.
        assert_eq!(post(&fixture.path, UNARY, GRPC).await.1.as_deref(), Some("0"));
    });
    assert_eq!(fixture.seen.called(), 1);
}

#[test]
fn nothing_but_grpc_reaches_a_handler() {
    let _together = together();
    let fixture = Fixture::allowing(&[UNARY], |builder| builder);
    type Row = (&'static str, &'static [(&'static str, &'static str)], u16);
    let rows: [Row; 13] = [
        ("GET", GRPC, 405),
        ("PUT", GRPC, 405),
        ("OPTIONS", GRPC, 405),
        ("post", GRPC, 405),
        ("GET", &[("content-type", "application/grpc"), ("x-http-method-override", "POST")], 405),
        ("POST", &[], 415),
        ("POST", &[("content-type", "application/json")], 415),
        ("POST", &[("content-type", "application/proto")], 415),
        ("POST", &[("content-type", "application/connect+proto")], 415),
        ("POST", &[("content-type", "application/grpc-web")], 415),
        ("POST", &[("content-type", "application/grpc-web-text+proto")], 415),
        ("POST", &[("content-type", "application/grpc+json")], 415),
        (
            "POST",
            &[("content-type", "application/json"), ("content-type", "application/grpc")],
            415,
        ),
    ];
    runtime().block_on(async {
        for (method, headers, http) in rows {
            let answer = request(&fixture.path, method, UNARY, "ada", headers).await.unwrap();
            assert_eq!(answer, (http, None, None), "{method} {headers:?}");
        }
    });
    assert_eq!(fixture.seen.called(), 0);
    assert_eq!(fixture.hatch.refused(), u64::try_from(rows.len()).unwrap());
}

/// Neither `https` nor an override of the path means anything.
#[test]
fn headers_do_not_choose_the_method() {
    let _together = together();
    let fixture = Fixture::allowing(&[UNARY], |builder| builder);
    let headers = [
        ("content-type", "application/grpc"),
        ("x-original-url", UNARY),
        ("x-rewrite-url", UNARY),
        ("grpc-encoding", "identity"),
    ];
    let answer = runtime().block_on(post(&fixture.path, "/greeter.Greeter/GreetEach", &headers));
    assert_eq!(answer.1.as_deref(), Some("7"));
    assert_eq!(fixture.seen.called(), 0);
}

/// Compression is off: a claim of it is an error, not a bomb.
#[test]
fn a_compressed_message_is_refused() {
    let _together = together();
    let fixture = Fixture::allowing(&[UNARY], |builder| builder);
    runtime().block_on(async {
        for encoding in ["gzip", "deflate", "zstd", "br"] {
            let headers = [("content-type", "application/grpc"), ("grpc-encoding", encoding)];
            let (_, code, _) = post(&fixture.path, UNARY, &headers).await;
            assert_eq!(code.as_deref(), Some("12"), "{encoding}");
        }
        let names = iter([hello("a")]);
        client(&fixture.path).await.greet_each(names).await.unwrap_err();
    });
    assert_eq!(fixture.seen.called(), 0);
}
