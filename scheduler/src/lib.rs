//! The durable request log of Trainyard: ordering, idempotency, waiting and recovery.
//!
//! [`Scheduler`] accepts requests durably, hands them to one worker in the right order, stores their results and wakes
//! waiting clients. It knows neither HTTP nor tensors: payloads and results are bytes that the server encodes.
//! `docs/data-model.md` describes the tables and their transitions.
//!
//! Modules import in one direction, from the top of this list to the bottom:
//!
//! | | |
//! |---|---|
//! | `scheduler` | opening and closing |
//! | `backup` | copies of store and storage, beside running schedulers |
//! | `submit`, `dispatch`, `completion`, `futures`, `streams`, `sessions`, `catalogue`, `base_models`, `maintenance` | the calls of API and worker |
//! | `queue_effects` | effects of the queue's changes as writes |
//! | `rejection`, `run_snapshots`, `quarantine`, `lease`, `gc`, `payloads`, `notifications`, `progress_exchange` | writes and background tasks |
//! | `writer`, `write` | the writer, and what it writes |
//! | `core` | the state that all of these share |
//! | `queue` | the order of execution, a state machine in memory |
//! | `store`, `storage`, `quotas`, `types` | tables, bytes, limits, values |

mod admission;
mod backup;
mod base_models;
mod caches;
mod catalogue;
mod clock;
mod completion;
mod core;
mod crashes;
mod database_lock;
mod dispatch;
mod drain;
mod ended;
mod error;
mod futures;
mod gc;
mod lease;
mod lock;
mod look;
mod maintenance;
mod memory_waits;
mod metrics;
mod notifications;
mod options;
mod origin;
mod outdated;
mod payloads;
mod progress;
mod progress_exchange;
mod quarantine;
mod queue;
mod queue_effects;
mod quotas;
mod rejection;
mod run_snapshots;
mod scheduler;
mod sessions;
mod signals;
mod storage;
mod store;
mod streams;
mod submit;
#[cfg(test)]
mod tests;
mod trace_context;
mod types;
mod waiters;
mod work_log;
mod write;
mod writer;

pub use backup::{Backup, BackupError, Manifest, Restore, backup, restore, verify as verify_backup};
pub use clock::{Clock, SystemClock, Timestamp};
pub use error::Error;
pub use look::{StoreState, StoreUnusable, look_at_store};
pub use metrics::Metrics;
pub use options::{NumericsMismatch, Options, WorkerOptions};
pub use origin::{Executed, ExecutionObserver, Origin, Stages};
pub use progress::WatchedSample;
pub use quotas::{Pause, Policies, Quota, Refusal, TenantPolicy, TrainingLimits};
pub use scheduler::{OpenSamples, Scheduler, Stats};
pub use storage::{Area, Older, Pieces, Storage, StorageError};
pub use store::db::Database;
pub use store::schema::migrate;
pub use streams::SampleWatch;
pub use trace_context::TraceContext;
pub use types::{
    Checkpoint, CompletionItem, Completions, Decoded, Effect, Encode, Encoding, FinishReason, MaintenanceOp,
    MaintenanceReport, MemoryWait, NewCheckpoint, NewRun, NewSamplingSession, NewSession, NumericsChange, Outcome,
    Page, Poll, PrefetchDecoder, RequestKind, RequestState, Run, RunState, RunSubmission, SampleSubmission,
    SamplingSession, Session, SessionStatus, Submitted, Work, WorkItem, WorkerWait,
};
