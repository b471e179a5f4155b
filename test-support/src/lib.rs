//! Support for tests of several crates: mutated inputs of decoders, and a count of allocated memory.
//!
//! A crate that depends on this one for its tests counts all their allocations ([`heap`]).
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

mod coverage;
mod guided;
pub mod heap;
pub mod mutate;
mod processor_time;
mod random;
mod values;
