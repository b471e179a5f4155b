//! Numbers for handles and groups.

use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(1);

/// A number that nothing else of the process has.
pub(crate) fn number() -> usize {
    NEXT.fetch_add(1, Ordering::SeqCst)
}
