//! Matrix multiplication behind cuBLASLt's functions, in the order of a simulated stream.
//!
//! Sums are in f32 and in the order of k, whatever algorithm is asked for: results do not depend on a batch's size, which
//! the real library promises only for a fixed algorithm. What is not simulated is refused with `NOT_SUPPORTED`.

mod ffi;
mod file;
mod layout;
mod multiply;
