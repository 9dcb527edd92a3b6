//! Serves a run: accepts its connections as they may be, and speaks HTTP/2 on each, every limit of
//! which is set here. What is asked on them is not looked at.

use std::io;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::RuntimeFlavor;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::gate::Gate;
use super::limits::Limits;
use super::run::Run;
use super::tasks::give_way;
use super::wire::Wire;
use crate::{RunId, Serving};

/// Between two attempts to accept, where the host has no descriptor or memory left.
const PAUSE: Duration = Duration::from_millis(250);

/// After a call's deadline, for its answer to be taken. A guest that does not is not waited for.
const GRACE: Duration = Duration::from_secs(1);

/// Flow control: what a guest may send in one call before its handler has looked at it. Little, as
/// the smallest messages cost many times their bytes, and the way back is short.
const WINDOW_BYTES: u32 = 32 * 1024;

/// Flow control of a connection: room for every call's window, or those that wait would keep the
/// others from ending. HTTP/2's bound on small frames not looked at yet is a part of it too.
fn connection_window_bytes(limits: &Limits) -> u32 {
    const LEAST: u32 = 4 * 1024 * 1024;
    const MOST: u32 = (1 << 31) - 1;
    WINDOW_BYTES.saturating_mul(limits.streams_max).clamp(LEAST, MOST)
}

/// What a stream keeps to be sent beyond the piece at hand.
const SEND_BYTES: usize = 256 * 1024;

/// Serves a run until the `Serving` is dropped.
pub(super) fn open(
    hatch: &Arc<Inner>,
    listener: net::UnixListener,
    id: RunId,
) -> io::Result<Serving> {
    let handle = hatch.runtime.handle()?;
    listener.set_nonblocking(true)?;
    let listener = {
        let _inside = handle.enter();
        UnixListener::from_std(listener)?
    };
    let run = Arc::new(Run::new(id, Arc::clone(hatch)));
    // One thread is shared by slots of time; on several, handlers are the runtime's to spread.
    let handlers = match handle.runtime_flavor() {
        RuntimeFlavor::CurrentThread => Place::Run,
        RuntimeFlavor::MultiThread | _ => Place::Runtime,
    };
    let all = Arc::clone(&run);
    drop(handle.spawn(async move {
        let accepting = accept(Arc::clone(&all), listener, handlers);
        let accepting = all.ending().clone().run_until_cancelled_owned(accepting);
        all.tasks().run(accepting.map(drop)).await;
    }));
    Ok(Serving::new(move || run.end()))
}

/// Where a call's handler runs.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// As a task of its run.
    Run,
    /// As a task of its own.
    Runtime,
}

async fn accept(run: Arc<Run>, listener: UnixListener, handlers: Place) {
    let most = usize::try_from(run.limits().connections_max).unwrap_or(Semaphore::MAX_PERMITS);
    let free = Arc::new(Semaphore::new(most));
    // Nobody closes the semaphore.
    while let Ok(place) = Arc::clone(&free).acquire_owned().await {
        match listener.accept().await {
            Ok((socket, _)) => {
                let connection = connection(Arc::clone(&run), socket, handlers);
                run.tasks().start_connection(async move {
                    connection.await;
                    drop(place);
                });
                give_way().await;
            }
            Err(error) => {
                run.tell_not_accepting(&error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(run: Arc<Run>, socket: UnixStream, place: Place) {
    let socket = Arc::new(socket);
    let Some(seat) = run.seat(&socket) else { return };
    let limits = run.limits();
    let wire = TokioIo::new(Wire::new(socket, seat, limits.first_bytes));
    // Its handlers end with the connection, and all connections with the run.
    let end = run.ending().child_token();
    let _end = end.clone().drop_guard();
    let time = limits.deadline.saturating_add(GRACE);
    let handlers = Handlers { run: Arc::clone(&run), end, time, place };
    let connection = http2(limits, handlers).serve_connection(wire, Gate(Arc::clone(&run)));
    if let Some(Err(error)) = run.ending().run_until_cancelled(connection).await {
        tracing::debug!(
            name: "hatch.closed",
            target: "postern",
            run = %run.id(),
            %error,
            "connection to the hatch closed"
        );
    }
}

fn http2(limits: &Limits, handlers: Handlers) -> http2::Builder<Handlers> {
    let resets = usize::try_from(limits.resets_max).unwrap_or(usize::MAX);
    let mut builder = http2::Builder::new(handlers);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_list_bytes_max)
        .max_pending_accept_reset_streams(resets)
        .max_local_error_reset_streams(resets)
        .keep_alive_interval(limits.keepalive)
        .keep_alive_timeout(limits.keepalive)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(connection_window_bytes(limits))
        .max_send_buf_size(SEND_BYTES)
        .auto_date_header(false);
    builder
}

/// Runs the calls of a connection, each as a task with an end. It is asked for them by the
/// connection, which is a task of the run.
#[derive(Debug, Clone)]
struct Handlers {
    run: Arc<Run>,
    end: CancellationToken,
    time: Duration,
    place: Place,
}

impl<F> hyper::rt::Executor<F> for Handlers
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, call: F) {
        // A guest that takes no answer keeps it from being polled, and so from its deadline.
        let call = tokio::time::timeout(self.time, call);
        let call = self.end.clone().run_until_cancelled_owned(call).map(drop);
        match self.place {
            Place::Run => self.run.tasks().start(call),
            Place::Runtime => drop(tokio::spawn(call)),
        }
    }
}
