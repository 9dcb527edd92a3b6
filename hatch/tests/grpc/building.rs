//! What a hatch says about its own description, and what building one leaves alone.

use std::time::Duration;

use postern_hatch::{GrpcHatch, GrpcHatchBuilder, Hatch, HatchGroup};
use postern_proto::{greeter, penguins};

use crate::service::Host;
use crate::support::{Fixture, Scratch, UNARY, alone, open, runtime, server, together, within};
use crate::watch::{descriptors, has_thread};

fn greeter() -> GrpcHatchBuilder {
    GrpcHatch::allowing([UNARY]).add_service(server(Host::default()))
}

#[test]
fn each_wrong_description_is_refused_in_words() {
    let _together = together();
    let rows = [
        (
            GrpcHatch::builder(),
            "allow-list: empty, so every call would be refused; allow a method, for instance \
             /greeter.Greeter/SayHello",
        ),
        (
            GrpcHatch::allowing(["greeter.Greeter/SayHello"]),
            "allow-list: `greeter.Greeter/SayHello` does not begin with `/`; expected \
             /package.Service/Method, for instance /greeter.Greeter/SayHello",
        ),
        (
            greeter().allow("/greeter.Greeter/*"),
            "allow-list: `/greeter.Greeter/*` has `*`, and there are no wildcards: name each \
             method; expected /package.Service/Method, for instance /greeter.Greeter/SayHello",
        ),
        (
            greeter().allow("/greeter.Greeter/SayHelo").descriptors(greeter::DESCRIPTORS),
            "allow-list: /greeter.Greeter/SayHelo is not in the descriptors; did you mean \
             /greeter.Greeter/SayHello?",
        ),
        (
            greeter().descriptors(penguins::DESCRIPTORS),
            "allow-list: /greeter.Greeter/SayHello is not in the descriptors; correct it, or give \
             the descriptors that have it",
        ),
        (
            greeter().add_service(server(Host::default())),
            "service greeter.Greeter: added twice; leave one of them out",
        ),
        (
            GrpcHatch::allowing(["/repo.Repo/Read"]).add_service(server(Host::default())),
            "service greeter.Greeter: none of its methods is allowed; allow /greeter.Greeter/…, or \
             do not add it",
        ),
        (
            greeter().name("a-b"),
            "hatch name `a-b`: has `-`, and becomes an environment variable; use letters, digits \
             and `_`",
        ),
        (greeter().streams_max(0), "streams_max: too small to serve anything; at least 1"),
        (
            greeter().buffered_bytes_max(1 << 20),
            "buffered_bytes_max: too small to serve anything; at least 4194304",
        ),
        (greeter().deadline(Duration::ZERO), "deadline: too small to serve anything; at least 1"),
    ];
    for (builder, words) in rows {
        assert_eq!(builder.build().unwrap_err().to_string(), words);
    }
    let error = greeter().descriptors([255]).build().unwrap_err().to_string();
    assert!(error.starts_with("descriptors: no FileDescriptorSet ("), "{error}");
}

#[test]
fn a_right_description_is_a_hatch() {
    let _together = together();
    let builder = greeter().name("repo").allow("/penguins.Penguins/Rows");
    let builder = builder.descriptors(greeter::DESCRIPTORS).descriptors(penguins::DESCRIPTORS);
    let hatch = builder.build().unwrap();
    assert_eq!(hatch.name().unwrap().variable(), "POSTERN_HATCH_REPO");
    assert_eq!(hatch.socket_suffix(), "@localhost");
    assert_eq!(hatch.allowed().collect::<Vec<_>>(), [UNARY, "/penguins.Penguins/Rows"]);
}

/// A thread and its descriptors from the first opening to the last drop.
#[test]
fn a_group_has_one_thread_while_it_is_used() {
    let _alone = alone();
    const NAME: &str = "postern-hatch";
    within(Duration::from_secs(2), || !has_thread(NAME), "threads of other tests end");
    // A first runtime makes what tokio keeps for ever.
    drop(runtime());
    let before = descriptors();
    let group = HatchGroup::new();
    let hatches = [(); 2].map(|()| greeter().group(group.clone()).build().unwrap());
    assert!(!has_thread(NAME), "built, not opened");
    assert_eq!(descriptors(), before, "built, not opened");
    let scratch = Scratch::new();
    let served = hatches
        .each_ref()
        .map(|hatch| open(hatch, scratch.path(), &format!("{:p}", std::ptr::from_ref(hatch))));
    // The new thread gives itself its name.
    within(Duration::from_secs(1), || has_thread(NAME), "the thread starts");
    drop((hatches, group));
    assert!(has_thread(NAME), "runs are being served");
    drop(served);
    within(Duration::from_secs(1), || !has_thread(NAME), "the thread ends");
    within(Duration::from_secs(1), || descriptors() == before, "its descriptors are closed");
}

#[test]
fn the_callers_runtime_will_do() {
    let _alone = alone();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    within(Duration::from_secs(2), || !has_thread("postern-hatch"), "other threads end");
    let fixture = Fixture::with(|builder| builder.runtime(runtime.handle().clone()));
    assert!(!has_thread("postern-hatch"));
    runtime.block_on(async {
        let mut client = crate::support::client(&fixture.path).await;
        client.say_hello(crate::support::hello("ada")).await.unwrap();
    });
}
