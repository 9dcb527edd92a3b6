//! Describes a gRPC hatch, and judges the description once, when it is built. Starts nothing.

use core::fmt;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tower::util::BoxCloneSyncService;

use super::error::GrpcHatchError;
use super::group::{HatchGroup, Runtime};
use super::limits::Limits;
use super::method::{self, Shown};
use super::rate::Rate;
use super::refusals::Refusals;
use super::{GrpcHatch, HatchService, Inner, Route, descriptors};
use crate::HatchName;

/// A [`GrpcHatch`] to be. Every limit has a default, given with its method, and none can be
/// switched off: who calls is not trusted.
#[must_use = "nothing is served before it is built and opened"]
pub struct GrpcHatchBuilder {
    name: Option<String>,
    allowed: BTreeSet<String>,
    descriptors: Vec<Vec<u8>>,
    services: Vec<(&'static str, Route)>,
    limits: Limits,
    runtime: Option<Runtime>,
}

impl GrpcHatchBuilder {
    pub(super) fn new() -> Self {
        Self {
            name: None,
            allowed: BTreeSet::new(),
            descriptors: Vec::new(),
            services: Vec::new(),
            limits: Limits::default(),
            runtime: None,
        }
    }

    /// The hatch's name, by the rules of [`HatchName`]. Default: none.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Allows one method by its full name, `/package.Service/Method`. What a guest calls is compared
    /// byte by byte; there are no patterns.
    pub fn allow(mut self, method: impl Into<String>) -> Self {
        self.allowed.insert(method.into());
        self
    }

    /// Checks the allow-list against a serialized `google.protobuf.FileDescriptorSet`. Called more
    /// than once, every method must be in one of the sets. Default: not checked.
    pub fn descriptors(mut self, set: impl Into<Vec<u8>>) -> Self {
        self.descriptors.push(set.into());
        self
    }

    /// Serves a service, whose allowed methods can then be called.
    pub fn add_service<S: HatchService>(mut self, service: S) -> Self {
        self.services.push((S::NAME, BoxCloneSyncService::new(service)));
        self
    }

    /// Serves on the one thread of a group. Default: a group of the hatch's own.
    pub fn group(mut self, group: HatchGroup) -> Self {
        self.runtime = Some(Runtime::Group(group));
        self
    }

    /// Serves on a runtime of the caller's, which must have its IO and time drivers enabled and
    /// outlive the runs: after its shutdown nothing is served.
    pub fn runtime(mut self, runtime: tokio::runtime::Handle) -> Self {
        self.runtime = Some(Runtime::Caller(runtime));
        self
    }

    /// The longest message that a guest may send, in bytes. Default: 4 MiB, like gRPC's own.
    ///
    /// A longer one ends its call with RESOURCE_EXHAUSTED as soon as its length is read, in streams
    /// too. A service's own `max_decoding_message_size` holds as well, and where it is the lower
    /// one tonic ends the call with OUT_OF_RANGE; raise both for longer messages.
    pub fn message_bytes_max(mut self, bytes: u32) -> Self {
        self.limits.message_bytes_max = bytes;
        self
    }

    /// The longest message that a service may answer with, in bytes. Default: 4 MiB, which is also
    /// what clients take by default. The call ends with RESOURCE_EXHAUSTED.
    pub fn response_bytes_max(mut self, bytes: u32) -> Self {
        self.limits.response_bytes_max = bytes;
        self
    }

    /// How many bytes of messages one run may have underway, each way. Default: 64 MiB.
    ///
    /// A guest's message counts from its announcement until the call's next message or end; an
    /// answer counts until the guest has taken it. Calls beyond that wait until their deadline, and
    /// streams of answers are not asked for more. When 32 answers wait so, further ones end with
    /// RESOURCE_EXHAUSTED. Beside this a call may send 32 KiB that its handler has not asked for.
    pub fn buffered_bytes_max(mut self, bytes: u32) -> Self {
        self.limits.buffered_bytes_max = bytes;
        self
    }

    /// How many calls one connection may have open. Default: 100. Further ones are refused by
    /// HTTP/2, which makes clients wait.
    pub fn streams_max(mut self, streams: u32) -> Self {
        self.limits.streams_max = streams;
        self
    }

    /// How many connections one run may have. Default: 16. Further ones wait in the kernel's
    /// backlog, and cost the host nothing.
    pub fn connections_max(mut self, connections: u32) -> Self {
        self.limits.connections_max = connections;
        self
    }

    /// How long the headers and metadata of a call may be, in bytes as HTTP/2 counts them. Default:
    /// 16 KiB.
    pub fn header_list_bytes_max(mut self, bytes: u32) -> Self {
        self.limits.header_list_bytes_max = bytes;
        self
    }

    /// How many calls of one connection may be cancelled before they were looked at, and how many
    /// may be reset for breaking the protocol, before the connection is closed. Default: 100.
    pub fn resets_max(mut self, resets: u32) -> Self {
        self.limits.resets_max = resets;
        self
    }

    /// How long a call may take, from its headers to the last byte of its answer. Default: 60
    /// seconds. A shorter deadline of the client's holds instead. At its end the handler is dropped
    /// and the call ends with DEADLINE_EXCEEDED.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.limits.deadline = deadline;
        self
    }

    /// How long a connection may take to begin with HTTP/2. Default: 10 seconds.
    pub fn first_bytes(mut self, time: Duration) -> Self {
        self.limits.first_bytes = time;
        self
    }

    /// After how long without a frame a connection is asked for a sign of life, and how long it may
    /// take to give one. Default: 60 seconds, each; no call lives that long by the default
    /// deadline, so only a silent guest notices.
    pub fn keepalive(mut self, time: Duration) -> Self {
        self.limits.keepalive = time;
        self
    }

    /// The hatch. Starts no thread and opens no descriptor.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the description.
    pub fn build(self) -> Result<GrpcHatch, GrpcHatchError> {
        let name = self.name.map(HatchName::new).transpose().map_err(GrpcHatchError::Name)?;
        if let Some((limit, least)) = self.limits.fault() {
            return Err(GrpcHatchError::Limit { limit, least });
        }
        let reachable = services(&self.allowed)?;
        described(&self.allowed, &self.descriptors)?;
        let mut routes = HashMap::new();
        for (service, route) in self.services {
            if !reachable.contains(service) {
                return Err(GrpcHatchError::ServiceUnreachable { service });
            }
            if routes.insert(service, route).is_some() {
                return Err(GrpcHatchError::ServiceTwice { service });
            }
        }
        let inner = Inner {
            name,
            allowed: self.allowed,
            routes,
            limits: self.limits,
            runtime: self.runtime.unwrap_or_else(|| Runtime::Group(HatchGroup::new())),
            refusals: Refusals::default(),
            not_accepting: Rate::default(),
        };
        Ok(GrpcHatch { inner: Arc::new(inner) })
    }
}

/// The services of the allowed methods.
fn services(allowed: &BTreeSet<String>) -> Result<BTreeSet<&str>, GrpcHatchError> {
    if allowed.is_empty() {
        return Err(GrpcHatchError::NothingAllowed);
    }
    let service = |entry| {
        method::service(entry)
            .map_err(|fault| GrpcHatchError::Method { entry: Shown(entry).to_string(), fault })
    };
    allowed.iter().map(|entry| service(entry)).collect()
}

/// Whether every allowed method is in the descriptors, where there are some.
fn described(allowed: &BTreeSet<String>, sets: &[Vec<u8>]) -> Result<(), GrpcHatchError> {
    if sets.is_empty() {
        return Ok(());
    }
    let described = descriptors::methods(sets)?;
    match allowed.iter().find(|method| !described.contains(*method)) {
        None => Ok(()),
        Some(method) => Err(GrpcHatchError::NotDescribed {
            method: method.clone(),
            nearest: descriptors::nearest(method, &described),
        }),
    }
}

impl fmt::Debug for GrpcHatchBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services: Vec<_> = self.services.iter().map(|(name, _)| name).collect();
        f.debug_struct("GrpcHatchBuilder")
            .field("name", &self.name)
            .field("allowed", &self.allowed)
            .field("services", &services)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
