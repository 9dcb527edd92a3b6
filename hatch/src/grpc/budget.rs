//! How many bytes of messages a run may have underway: taken, waited for, given back by a drop.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that some run may have underway one way.
#[derive(Debug)]
pub(super) struct Budget {
    free: Arc<Semaphore>,
    bytes: u32,
}

/// Some of them. Its drop gives them back.
#[derive(Debug)]
pub(super) struct Share {
    permit: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Gives back what is more than so many bytes.
    pub(super) fn shrink(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.permit {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
        }
    }
}

/// Will be a share, in the order in which shares were asked for.
pub(super) type Waiting = Pin<Box<dyn Future<Output = Share> + Send>>;

impl Budget {
    pub(super) fn new(bytes: u32) -> Self {
        let permits = usize::try_from(bytes).unwrap_or(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(permits)), bytes }
    }

    /// A share of so many bytes, or the wait for it. Who asks for more than all gets all.
    pub(super) fn take(&self, bytes: u64) -> Result<Share, Waiting> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes);
        match Arc::clone(&self.free).try_acquire_many_owned(bytes) {
            Ok(permit) => Ok(Share { permit: Some(permit) }),
            Err(_full) => {
                let free = Arc::clone(&self.free);
                // Nobody closes the semaphore.
                Err(Box::pin(
                    async move { Share { permit: free.acquire_many_owned(bytes).await.ok() } },
                ))
            }
        }
    }
}

/// Bytes that hold their share until the connection has written or discarded them.
pub(super) fn charged(bytes: Bytes, share: Share) -> Bytes {
    struct Charged(Bytes, #[expect(dead_code, reason = "held for its drop")] Share);

    impl AsRef<[u8]> for Charged {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    Bytes::from_owner(Charged(bytes, share))
}
