//! Which run a hatch is opened for. A number and no handle: nothing can be done to a run with it.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run, told apart from every other run of this process.
///
/// It is the host's word, never the guest's: it comes from the listener that a connection was
/// accepted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u64);

impl RunId {
    /// One that no other call in this process returns. They count up from one.
    #[must_use]
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run-{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::RunId;

    #[test]
    fn no_two_are_the_same() {
        let threads = [(); 4].map(|()| thread::spawn(|| [(); 100].map(|()| RunId::next())));
        let ids = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        assert_eq!(ids.collect::<HashSet<_>>().len(), 400);
    }

    #[test]
    fn it_is_written_as_a_word() {
        assert_eq!(RunId(7).to_string(), "run-7");
    }
}
