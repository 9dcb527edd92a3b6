//! The pages of the guide, so that their programs are compiled and run with the other examples.

#[doc = include_str!("../../README.md")]
struct Readme;

#[doc = include_str!("../../docs/getting-started.md")]
struct GettingStarted;

#[doc = include_str!("../../docs/running.md")]
struct Running;

#[doc = include_str!("../../docs/telemetry.md")]
struct Telemetry;

#[cfg(feature = "tokio")]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
