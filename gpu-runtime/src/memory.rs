//! Memory that is free but not given back.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call of the C library's allocator"))]

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Who keeps memory that is not in use, for later.
pub(crate) trait Spare: Send + Sync {
    /// Frees all that is not in use.
    fn give_back(&self);
}

/// All that were registered and still exist.
static SPARES: Mutex<Vec<Weak<dyn Spare>>> = Mutex::new(Vec::new());

/// Has a spare called by [`give_back`] as long as it exists.
pub(crate) fn register(spare: &Arc<dyn Spare>) {
    let mut spares = SPARES.lock().unwrap_or_else(PoisonError::into_inner);
    spares.retain(|spare| spare.strong_count() > 0);
    spares.push(Arc::downgrade(spare));
}

/// Gives free memory back to the operating system: buffers that engines keep for their next pass, and what the C library's
/// allocator would hold on to, the most that was ever needed at once (the latter with glibc alone). For times when the
/// process has nothing to do: a pass asks the system again for what it needs. Takes a few milliseconds and does not wait for
/// other threads, but they may wait for it to allocate.
pub fn give_back() {
    let spares: Vec<_> =
        SPARES.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    spares.iter().for_each(|spare| spare.give_back());
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            /// malloc_trim(3).
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: it may be called at any time by any thread, and touches only memory that nobody has allocated.
        unsafe { malloc_trim(0) };
    }
}
