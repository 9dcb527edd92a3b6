//! What every hatch promises. How one keeps its promise is its own affair.

use std::fmt::Debug;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use crate::{HatchName, RunId, Serving};

/// Something that the host serves to its guests, one listener a run.
///
/// A hatch is shared by all runs of a sandbox, and may be shared by several sandboxes:
/// [`open`](Self::open) is called once per run, from any thread, also concurrently.
pub trait Hatch: Debug + Send + Sync {
    /// The name by which guests know it, in the variable [`HatchName::variable`]. One hatch of a
    /// sandbox may have none: guests find it in `POSTERN_HATCH`.
    fn name(&self) -> Option<&HatchName>;

    /// What the path of the socket must end in, in the guest. Nothing, unless clients of this kind
    /// make more of the path than a place to connect to.
    fn socket_suffix(&self) -> &'static str {
        ""
    }

    /// Serves one run, until the returned [`Serving`] is dropped.
    ///
    /// `listener` belongs to that run alone: who connects to it is that run, whatever process, user
    /// or credential it shows. It listens already, so a connection made before this call waits in
    /// the kernel's backlog and is served. An implementation
    ///
    /// - returns at once: it starts serving, and waits for no guest and no service;
    /// - ends with the `Serving`. Its drop takes a few milliseconds at most; from then on nothing
    ///   that the guest sends is acted upon, and soon after it no handler of the run still runs, no
    ///   descriptor of the run is open, and the listener is closed;
    /// - keeps apart what belongs to different runs.
    ///
    /// # Errors
    ///
    /// What kept it from serving, for instance that no thread or descriptor was to be had. The
    /// listener is closed then.
    fn open(&self, listener: UnixListener, run: RunId) -> io::Result<Serving>;
}

impl<H: Hatch + ?Sized> Hatch for Arc<H> {
    fn name(&self) -> Option<&HatchName> {
        (**self).name()
    }

    fn socket_suffix(&self) -> &'static str {
        (**self).socket_suffix()
    }

    fn open(&self, listener: UnixListener, run: RunId) -> io::Result<Serving> {
        (**self).open(listener, run)
    }
}
