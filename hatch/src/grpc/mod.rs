//! gRPC hatches: tonic's services, behind an allow-list of methods and with a bound on everything
//! that a guest can make the host keep or do. What the services do is their own affair.

mod arriving;
mod budget;
mod builder;
mod call;
mod context;
mod descriptors;
mod error;
mod gate;
mod group;
mod limits;
mod messages;
mod method;
mod rate;
mod refusals;
mod reply;
mod run;
mod serve;
mod tasks;
mod timeout;
mod wire;

use core::fmt;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;
use tower::util::BoxCloneSyncService;

pub use builder::GrpcHatchBuilder;
pub use context::RunContext;
pub use error::{GrpcHatchError, MethodFault};
pub use group::HatchGroup;

use crate::{Hatch, HatchName, RunId, Serving};
use group::Runtime;
use limits::Limits;
use rate::Rate;
use refusals::Refusals;

/// What [`GrpcHatchBuilder::add_service`] takes: every server that tonic generates is one, also
/// inside of tower layers that keep its name.
pub trait HatchService:
    Service<
        http::Request<Body>,
        Response = http::Response<Body>,
        Error = Infallible,
        Future: Send + 'static,
    > + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> HatchService for S where
    S: Service<
            http::Request<Body>,
            Response = http::Response<Body>,
            Error = Infallible,
            Future: Send + 'static,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// A service, whatever its type.
type Route = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, Infallible>;

/// A hatch that serves gRPC: listed methods, and nothing else.
///
/// The guest uses any ordinary client on `unix:$POSTERN_HATCH`. A call of a method that is not on
/// the list, byte by byte, ends with PERMISSION_DENIED before anything of it is read; what is
/// listed but served by no service ends with UNIMPLEMENTED. Neither reflection nor health is there
/// unless it was added and allowed. Handlers learn which run calls by [`RunContext`].
///
/// When the run ends, its connections are shut down and its handlers are dropped where they wait;
/// one that computes without awaiting runs on to its next `await`, and nobody hears its answer. A
/// handler that panics costs its call, which ends with INTERNAL, and nothing more.
///
/// Cloning it is cheap, and gives the same hatch.
///
/// ```no_run
/// # use postern_hatch::{GrpcHatch, HatchService};
/// # fn hatch(service: impl HatchService) -> Result<GrpcHatch, postern_hatch::GrpcHatchError> {
/// GrpcHatch::builder().allow("/greeter.Greeter/SayHello").add_service(service).build()
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GrpcHatch {
    inner: Arc<Inner>,
}

/// What all runs of a hatch share.
struct Inner {
    name: Option<HatchName>,
    allowed: BTreeSet<String>,
    /// By the name of the service.
    routes: HashMap<&'static str, Route>,
    limits: Limits,
    runtime: Runtime,
    refusals: Refusals,
    /// Of connections that could not be accepted.
    not_accepting: Rate,
}

impl GrpcHatch {
    /// A hatch to be described: nothing allowed, nothing served, the defaults for every limit.
    pub fn builder() -> GrpcHatchBuilder {
        GrpcHatchBuilder::new()
    }

    /// The same with these methods allowed, as [`GrpcHatchBuilder::allow`] takes them.
    pub fn allowing(methods: impl IntoIterator<Item = impl Into<String>>) -> GrpcHatchBuilder {
        methods.into_iter().fold(Self::builder(), GrpcHatchBuilder::allow)
    }

    /// The methods that guests may call, sorted.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.inner.allowed.iter().map(String::as_str)
    }

    /// How many calls of all runs have been refused so far: for a method that is not allowed, for
    /// being no gRPC, or for a message that is too long.
    ///
    /// Each is also an event of `tracing` at the level WARN, but no more than one a second; the
    /// field `unlogged` says how many there were between.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.inner.refusals.count()
    }
}

impl Hatch for GrpcHatch {
    fn name(&self) -> Option<&HatchName> {
        self.inner.name.as_ref()
    }

    /// `@localhost`: clients on grpc-core 1.57 and later send the percent-encoded path of the
    /// socket as the `:authority` of every call. No `%` may be in the host of one, and this
    /// server's HTTP/2 resets such calls; before an `@` it may. With this suffix it is the
    /// authority `localhost`.
    fn socket_suffix(&self) -> &'static str {
        "@localhost"
    }

    /// Serves on the hatch's own thread, which the first call starts, or on the caller's runtime.
    fn open(&self, listener: UnixListener, run: RunId) -> io::Result<Serving> {
        serve::open(&self.inner, listener, run)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("name", &self.name)
            .field("allowed", &self.allowed)
            .field("services", &self.routes.keys())
            .field("limits", &self.limits)
            .field("runtime", &self.runtime)
            .field("refusals", &self.refusals)
            .finish()
    }
}
