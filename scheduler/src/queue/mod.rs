//! The order of execution, in memory: pending requests, and requests that the worker has.
//!
//! The queue is a plain state machine without input or output. A call changes it and leaves the consequences in
//! [`QueueEffects`]: requests to end, leases to release, payloads to read. The store is its log: its whole state can be
//! rebuilt from rows.

mod dispatch;
mod drain;
mod effects;
mod eviction;
mod failures;
mod memory;
mod payloads;
mod quarantine;
mod replay;
mod request;
mod run_execution;
mod run_leases;
mod run_queue;
mod run_requests;
mod run_snapshots;
mod sample_capacity;
mod samples;
mod sessions;
mod shared;
mod snapshots;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use effects::{Fence, Fetch, QueueEffects, Rejected};
pub(crate) use failures::{creation_failed, session_ended};
pub(crate) use request::{AcceptedRequest, InFlightRequest, PayloadSlot, QueuedRequest};
pub(crate) use run_queue::{History, Replayed, RunQueue};
pub(crate) use run_snapshots::maintenance_request;
pub(crate) use sample_capacity::ClaimBudget;
pub(crate) use samples::ClaimedSample;
pub(crate) use shared::SharedQueue;
pub(crate) use state::Queue;
