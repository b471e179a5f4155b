//! The durable request log of Trainyard: ordering, idempotency, waiting and recovery.
//!
//! [`Scheduler`] accepts requests durably, hands them to one worker in the right order, stores their results and wakes
//! waiting clients. It knows neither HTTP nor tensors: payloads and results are bytes that the server encodes.
//! `docs/design/data-model.md` describes the tables and their transitions.
//!
//! Folders import from the top of this list to the bottom:
//!
//! | | |
//! |---|---|
//! | `scheduler.rs` | the handle [`Scheduler`]: opening, closing, counters |
//! | `backup` | consistent copies of store and storage, taken beside running schedulers |
//! | `gc` | maintenance: expires sessions, removes rows and objects that nothing needs |
//! | `calls` | the calls of the API and the worker, one file for each kind |
//! | `execution` | the way of a request from the queue to the worker and back, and crashes |
//! | `lease` | leases of runs and claims on samples |
//! | `writer` | the task that commits all changes, in batches |
//! | `processes` | processes on one database: locks, notifications, outdated programs |
//! | `context` | state of the process that all of these share: options, clock, errors, caches, waiters |
//! | `progress` | tokens of samples in execution |
//! | `metrics` | counters, gauges and histograms |
//! | `queue` | the order of execution: a state machine in memory |
//! | `store` | the tables, one file for each |
//! | `quotas` | weights, quotas and rate limits of tenants |
//! | `budgets` | bounds on what one call reads at once, and on what is kept |
//! | `types` | values that cross the scheduler's boundary |
//!
//! Imports against this direction are limited to a few names:
//!
//! - Every folder may use the small values of `context`: [`Timestamp`], [`Error`], [`Actor`], locks and wakeups.
//! - `context/core.rs` contains the state of every part. The part defines the struct, with private fields:
//!   `lease/claims.rs`, `lease/heartbeats.rs`, `lease/worker_numerics.rs`, `execution/prefetch.rs`,
//!   `execution/cancellations.rs`, `gc/orphan_progress.rs`, `processes/schema_watch.rs`.
//! - Calls and background tasks add methods to [`Scheduler`], which stands at the top.
//! - `lease`, `context`, `queue` and `store` use the records of crashes in `execution/crashes.rs`.
//! - `context` and `progress` use `processes/signals.rs`.
//! - `quotas/admission.rs` uses `store` and `context/core.rs`, in the transaction that accepts a request.

mod backup;
pub mod budgets;
mod calls;
mod context;
mod execution;
mod gc;
mod lease;
mod metrics;
mod processes;
mod progress;
mod queue;
mod quotas;
mod scheduler;
mod store;
#[cfg(test)]
mod tests;
mod types;
mod writer;

pub use backup::{Backup, BackupError, Manifest, Restore, backup, restore, verify as verify_backup};
pub use calls::checkpoint_copy::{CopyDestination, NewCopy};
pub use calls::look::{StoreState, StoreUnusable, look_at_store};
pub use calls::run_metrics::{MetricsReader, MetricsWatch};
pub use calls::run_samples::SamplesWatch;
pub use calls::sessions::MAX_CUSTOM_LOSSES;
pub use calls::streams::SampleWatch;
pub use calls::tenants::Directory;
pub use calls::uploads::MAX_OPEN_UPLOADS;
pub use context::actor::Actor;
pub use context::clock::{Clock, SystemClock, Timestamp};
pub use context::error::Error;
pub use context::options::{NumericsMismatch, Options, WorkerOptions};
pub use context::origin::{Executed, ExecutionObserver, Origin, Stages};
pub use context::trace_context::TraceContext;
pub use metrics::Metrics;
pub use progress::WatchedSample;
pub use quotas::{
    Limit, LimitChanges, LimitOutOfRange, Pause, Policies, Quota, Refusal, TenantLimits, TenantPolicy, TrainingLimits,
};
pub use scheduler::{OpenSamples, Scheduler, Stats};
pub use store::audit::ExportedEntry;
pub use store::db::Database;
pub use store::schema::migrate;
pub use types::{
    AccessScope, ApiKey, AuditCategory, AuditEntry, Checkpoint, CompletionItem, Completions, Decoded, Effect, Encode,
    Encoding, FinishReason, FoundKey, FoundSession, FoundSessions, KeyRefusal, MaintenanceOp, MaintenanceReport,
    Membership, MemoryWait, NewApiKey, NewAuditEntry, NewCheckpoint, NewCustomLoss, NewRun, NewSamplingSession,
    NewSession, NewUser, NumericsChange, Organisation, Outcome, Page, Poll, PrefetchDecoder, Project, RecordedResult,
    RequestKind, RequestState, Role, Run, RunFilter, RunState, RunSubmission, SampleSubmission, SamplingSession, Scope,
    SearchPosition, Session, SessionSearch, SessionStatus, SessionTimeline, StatusFilter, Submitted, TimelineRequest,
    User, Work, WorkItem, WorkerWait,
};
pub use types::{
    AgentKey, AgentLimits, AgentMatch, AgentSession, AgentState, AgentTurn, NewAgentSession, NewAgentTurn, Rewarded,
};
pub use types::{Attribution, HourlyUsage, RequestUsage, StorageInUse, StoredCheckpoint, Tokens};
pub use types::{CheckpointPosition, CheckpointSearch, FoundCheckpoints};
pub use types::{
    EngineReport, FailedRequest, ListedRun, QueuedRequests, RunProgress, RunRequest, TokenRate, WorkerStatus,
};
pub use types::{
    LEARNING_RATE, LOSS_PER_TOKEN, Measured, MetricCurve, MetricPoint, MetricsRange, RunCurves, RunMetrics,
};
pub use types::{MAX_STORED_SAMPLES, NewRunSample, RunSample, RunSamples, STORE_SAMPLES, SampleStorage};
pub use types::{NewUpload, Upload, UploadEnd, UploadState, UploadedFile};
