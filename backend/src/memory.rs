//! Memory that the process has allocated but does not use.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call of the C library's allocator"))]

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Memory that is retained for reuse.
pub(crate) trait Cache: Send + Sync {
    /// Frees all of it that is not in use.
    fn clear(&self);
}

/// Registered caches; some may have been dropped.
static CACHES: Mutex<Vec<Weak<dyn Cache>>> = Mutex::new(Vec::new());

/// Registers a cache for [`release_free`] to clear as long as the cache exists.
pub(crate) fn register(cache: &Arc<dyn Cache>) {
    let mut caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    caches.retain(|cache| cache.strong_count() > 0);
    caches.push(Arc::downgrade(cache));
}

/// Returns free memory to the operating system: buffers that engines retain for their next pass, and what [`trim`] returns.
/// Meant for times when the process is idle, because the next pass has to allocate its buffers again.
pub fn release_free() {
    let caches: Vec<_> =
        CACHES.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    caches.iter().for_each(|cache| cache.clear());
    trim();
}

/// Limits glibc's allocator to an arena for each core, where its default is eight; does nothing with other allocators, and
/// where `MALLOC_ARENA_MAX` is set. Each arena keeps the pages of its own peak. Meant for the start of a process without an
/// engine, whose threads of low priority could hold the lock of an arena that the others need.
pub fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    {
        /// The value of `M_ARENA_MAX` in the header `malloc.h`.
        const ARENA_MAX: i32 = -8;

        unsafe extern "C" {
            /// The C library's `mallopt(3)`.
            fn mallopt(param: i32, value: i32) -> i32;
        }
        if std::env::var_os("MALLOC_ARENA_MAX").is_some() {
            return;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // SAFETY: it sets a number that the allocator reads, under a lock of its own.
        unsafe { mallopt(ARENA_MAX, i32::try_from(cores.max(2)).unwrap_or(i32::MAX)) };
    }
}

/// Returns the memory to the operating system that glibc's allocator retains, up to the peak use; does nothing with other
/// allocators. Takes a few milliseconds and does not wait for other threads; threads that allocate may wait for it.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            /// The C library's `malloc_trim(3)`.
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: it may be called at any time by any thread, and touches only memory that nobody has allocated.
        unsafe { malloc_trim(0) };
    }
}
