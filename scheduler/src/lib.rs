//! The durable request log of Trainyard: ordering, idempotency, waiting and recovery.
//!
//! [`Scheduler`] accepts requests durably, hands them to one worker in the right order, stores what
//! came of them and wakes whoever waits. It knows neither HTTP nor tensors: payloads and results are
//! bytes that the server encodes. `docs/data-model.md` tells the tables and their transitions.

mod admission;
mod base_models;
mod catalogue;
mod claiming;
mod clock;
mod core;
mod error;
mod fetching;
mod futures;
mod leases;
mod listening;
mod metrics;
mod queue;
mod quotas;
mod scheduler;
mod sessions;
mod signals;
mod storage;
mod store;
mod submit;
mod suspicion;
mod sweep;
#[cfg(test)]
mod tests;
mod tidying;
mod types;
mod upkeep;
mod waiters;
mod work;
mod writer;

pub use clock::{Clock, SystemClock, Timestamp};
pub use error::Error;
pub use leases::WorkerOptions;
pub use metrics::Metrics;
pub use quotas::{Pause, Policies, Quota, Refusal, TenantPolicy};
pub use scheduler::{OpenSamples, Options, Scheduler, Stats};
pub use storage::{Area, Older, Pieces, Storage, StorageError};
pub use store::db::Database;
pub use store::schema::migrate;
pub use types::{
    Checkpoint, CompletionItem, Completions, Decoded, Effect, Encode, Encoding, FinishReason, NewCheckpoint, NewRun,
    NewSamplingSession, NewSession, Outcome, Page, Poll, ReadAhead, RequestKind, RequestState, Run, RunState,
    RunSubmission, SampleSubmission, SamplingSession, Session, SessionStatus, Submitted, Swept, Upkeep, Work, WorkItem,
};
