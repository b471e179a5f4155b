//! Memory that is free but not given back.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call of the C library's allocator"))]

/// Gives freed memory back to the operating system, which keeps the C library's allocator from holding on to the most
/// that was ever needed at once. Does nothing where the C library is another one than glibc. Takes a few milliseconds
/// and does not wait for other threads, but they may wait for it to allocate.
pub fn give_back() {
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
