//! What a handler is told about the call beside the message. It is the host's word only.

use crate::RunId;

/// Which run makes a call: an extension of every request that comes through a hatch.
///
/// ```
/// # use postern_hatch::RunContext;
/// # use tonic::{Request, Status};
/// fn answer(request: &Request<()>) -> Result<String, Status> {
///     let context = RunContext::of(request).ok_or_else(|| Status::internal("no hatch"))?;
///     Ok(format!("hello, {}", context.run))
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunContext {
    /// The run, known from the listener that accepted the connection.
    pub run: RunId,
}

impl RunContext {
    /// The context of a request; none for one that came by another way than a hatch.
    #[must_use]
    pub fn of<T>(request: &tonic::Request<T>) -> Option<Self> {
        request.extensions().get().copied()
    }
}
