//! How long a run is served: a value, whose end is the end. What ends is the hatch's affair.

use core::fmt;
use std::sync::Mutex;

/// One run being served. Dropping it ends that, by what [`Hatch::open`](crate::Hatch::open) says.
#[must_use = "dropping it ends the serving"]
pub struct Serving {
    /// In a lock only so that a `Serving` may be shared between threads.
    end: Mutex<Option<End>>,
}

/// What ends the serving.
type End = Box<dyn FnOnce() + Send>;

impl Serving {
    /// One that ends by a call of `end`, on the thread that drops it.
    pub fn new(end: impl FnOnce() + Send + 'static) -> Self {
        Self { end: Mutex::new(Some(Box::new(end))) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let end = self.end.get_mut().unwrap_or_else(|poison| poison.into_inner()).take();
        if let Some(end) = end {
            end();
        }
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Serving;

    #[test]
    fn it_ends_once_and_by_its_drop() {
        let ends = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ends);
        let serving = Serving::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ends.load(Ordering::Relaxed), 0);
        drop(serving);
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn it_can_be_kept_anywhere() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<Serving>();
    }
}
