//! A count of the bytes that a thread allocates.

#![allow(unsafe_code, reason = "an allocator that counts, for tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes held, and the most since `peak` began.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

/// Runs `work`, and returns its result and the most bytes that it held at once beyond those held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = work();
    (result, (HELD.get().1 - before).unsigned_abs())
}

/// Bytes that the thread holds.
pub fn held() -> isize {
    HELD.get().0
}

fn count(bytes: isize) {
    // The counter of an ending thread may no longer exist.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist while the bytes are copied.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}
