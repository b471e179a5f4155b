//! Matrix multiplication behind cuBLASLt's functions, in the order of a simulated stream.
//!
//! Sums are in f32 and in the order of k. With several algorithms (`CUDASIM_LT_ALGORITHMS`) each has an order of its own, and the
//! heuristic prefers another one for another number of rows, as the real library does. What is not simulated is refused with
//! `NOT_SUPPORTED`.

mod faults;
mod ffi;
mod file;
mod layout;
mod multiply;
