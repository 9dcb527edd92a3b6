//! The services of the examples and tests, as Rust code that `cargo xtask codegen` writes.
//!
//! Each module has the messages of one .proto file, its server (`…_server`), its client
//! (`…_client`) and its descriptor set. The generated files are committed: building this package
//! needs no compiler of .proto files.

/// Greets, by one method of each kind of call: `proto/greeter/greeter.proto`.
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::missing_errors_doc,
    clippy::too_many_lines,
    unused_qualifications,
    reason = "generated code"
)]
pub mod greeter {
    /// The descriptor set of this package: a serialized `google.protobuf.FileDescriptorSet`.
    pub const DESCRIPTORS: &[u8] = include_bytes!("generated/greeter.bin");

    include!("generated/greeter.rs");
}

/// Rows of the Palmer penguins table: `proto/penguins/penguins.proto`.
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::missing_errors_doc,
    clippy::too_many_lines,
    unused_qualifications,
    reason = "generated code"
)]
pub mod penguins {
    /// The descriptor set of this package: a serialized `google.protobuf.FileDescriptorSet`.
    pub const DESCRIPTORS: &[u8] = include_bytes!("generated/penguins.bin");

    include!("generated/penguins.rs");
}
