//! Decoding of the images of requests, on threads of its own and within a budget of memory.
//!
//! Tenants take turns in proportion to their weights, counted in pixels, so that a tenant's images delay only its own
//! requests.

mod fair_queue;
mod gate;
mod pool;
#[cfg(test)]
pub(crate) mod testing;
mod undecoded;

pub(super) use gate::ImageGate;
pub use pool::{ImagePool, PoolSettings};
pub(super) use undecoded::{DecodedRequest, Undecoded, UndecodedContent, are_decoded};
