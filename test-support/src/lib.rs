//! Support for tests of several crates: mutated inputs of decoders, a count of allocated memory, and the choice between parameters
//! that stand for others and all.
//!
//! A crate that depends on this one for its tests counts all their allocations ([`heap`]).
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

mod coverage;
pub mod full;
mod guided;
pub mod heap;
pub mod mutate;
mod processor_time;
mod random;
mod values;
