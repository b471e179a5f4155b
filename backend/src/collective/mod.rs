//! Ranks that compute one model together exchange rows, gradients and plans through a [`Collective`].
//!
//! Contracts that hold on every transport:
//! - **Order of sums.** A reduction adds the ranks' values element by element in the order of ranks, beginning with rank 0.
//!   So its bits depend only on the number of ranks, not on timing or the transport, and are the same on all
//!   ranks.
//! - **Agreement.** All ranks call the same collectives with the same extents in the same order. A rank that calls another
//!   one, is lost, or does not join within the time limit fails the call on every rank with an error that names it.
//! - **Failure is final.** After an error every further call on the same ranks fails with it: a worker that lost a rank
//!   ends, and its leases bring its runs to another.

mod call;
mod device_memory;
mod fragment;
mod local;
mod meter;
mod payload;
mod rank;
mod ranks;
mod single;
mod subgroup;
mod tcp;
mod volume;

#[cfg(test)]
mod tests;

pub use call::{Call, CollectiveError, Operation};
pub use device_memory::DEVICE_PIECE;
pub use device_memory::{COMMUNICATOR_BYTES, DeviceMemory, communicators, exchange_bytes};
pub use fragment::pieces;
pub use fragment::{Extent, Fragment};
pub use local::{LocalRank, local_ranks};
pub use meter::CollectiveUse;
pub use payload::Payload;
pub use rank::{Collective, slice_of};
pub use ranks::Ranks;
pub use single::Single;
pub use tcp::{Heartbeat, MessageLink, MessageSender, Rendezvous, TcpRank};
pub use volume::CollectiveKind;
