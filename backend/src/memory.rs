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

/// Has glibc's allocator keep little of what is freed; does nothing with other allocators. Meant for the start of a process
/// without an engine, whose threads of low priority could hold the lock of an arena that the others need.
///
/// - It has an arena for each core, where its default is eight: each keeps the pages of its own peak. `MALLOC_ARENA_MAX` sets
///   another number.
/// - Large allocations have pages of their own. By default, none up to the size of the largest one that was ever freed has,
///   and those of bodies leave holes between small ones. `MALLOC_MMAP_THRESHOLD_` sets another size.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    {
        /// Values of `M_ARENA_MAX` and `M_MMAP_THRESHOLD` in the header `malloc.h`.
        const ARENA_MAX: i32 = -8;
        const MMAP_THRESHOLD: i32 = -3;
        const LARGE: i32 = 256 << 10;

        unsafe extern "C" {
            /// The C library's `mallopt(3)`.
            fn mallopt(param: i32, value: i32) -> i32;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = i32::try_from(cores.max(2)).unwrap_or(i32::MAX);
        let settings = [("MALLOC_ARENA_MAX", ARENA_MAX, arenas), ("MALLOC_MMAP_THRESHOLD_", MMAP_THRESHOLD, LARGE)];
        for (variable, parameter, value) in settings {
            if std::env::var_os(variable).is_none() {
                // SAFETY: it sets a number that the allocator reads, under a lock of its own.
                unsafe { mallopt(parameter, value) };
            }
        }
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
