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
//! | `submit`, `dispatch`, `completion`, `futures`, `streams`, `records`, `sessions`, `catalogue`, `checkpoint_copy`, `base_models`, `secrets`, `maintenance`, `tenants`, `usage`, `run_metrics`, `metric_curves`, `overview` | the calls of API and worker |
//! | `queue_effects` | effects of the queue's changes as writes |
//! | `audit`, `rejection`, `run_snapshots`, `quarantine`, `lease`, `gc`, `payloads`, `notifications`, `progress_exchange` | writes and background tasks |
//! | `writer`, `write` | the writer, and what it writes |
//! | `core` | the state that all of these share |
//! | `queue` | the order of execution, a state machine in memory |
//! | `store`, `storage`, `quotas`, `types` | tables, bytes, limits, values |

mod actor;
mod admission;
mod audit;
mod backup;
mod base_models;
mod caches;
mod catalogue;
mod checkpoint_copy;
mod checkpoint_search;
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
mod metric_curves;
mod metrics;
mod notifications;
mod options;
mod origin;
mod outdated;
mod overview;
mod payloads;
mod progress;
mod progress_exchange;
mod quarantine;
mod queue;
mod queue_effects;
mod quotas;
mod records;
mod rejection;
mod run_metrics;
mod run_samples;
mod run_snapshots;
mod scheduler;
mod secrets;
mod sessions;
mod signals;
mod storage;
mod store;
mod streams;
mod submit;
mod tenants;
#[cfg(test)]
mod tests;
mod trace_context;
mod types;
mod upload_checks;
mod uploads;
mod usage;
mod waiters;
mod work_log;
mod write;
mod writer;

pub use actor::Actor;
pub use backup::{Backup, BackupError, Manifest, Restore, backup, restore, verify as verify_backup};
pub use checkpoint_copy::{CopyDestination, NewCopy};
pub use clock::{Clock, SystemClock, Timestamp};
pub use error::Error;
pub use look::{StoreState, StoreUnusable, look_at_store};
pub use metrics::Metrics;
pub use options::{NumericsMismatch, Options, WorkerOptions};
pub use origin::{Executed, ExecutionObserver, Origin, Stages};
pub use progress::WatchedSample;
pub use quotas::{
    Limit, LimitChanges, LimitOutOfRange, Pause, Policies, Quota, Refusal, TenantLimits, TenantPolicy, TrainingLimits,
};
pub use run_metrics::{MetricsReader, MetricsWatch};
pub use run_samples::SamplesWatch;
pub use scheduler::{OpenSamples, Scheduler, Stats};
pub use sessions::MAX_CUSTOM_LOSSES;
pub use storage::{Area, Older, Pieces, Storage, StorageError};
pub use store::db::Database;
pub use store::schema::migrate;
pub use streams::SampleWatch;
pub use tenants::Directory;
pub use trace_context::TraceContext;
pub use types::{
    AccessScope, ApiKey, AuditCategory, AuditEntry, Checkpoint, CompletionItem, Completions, Decoded, Effect, Encode,
    Encoding, FinishReason, FoundKey, FoundSession, FoundSessions, KeyRefusal, MaintenanceOp, MaintenanceReport,
    Membership, MemoryWait, NewApiKey, NewAuditEntry, NewCheckpoint, NewCustomLoss, NewRun, NewSamplingSession,
    NewSession, NewUser, NumericsChange, Organisation, Outcome, Page, Poll, PrefetchDecoder, Project, RecordedResult,
    RequestKind, RequestState, Role, Run, RunFilter, RunState, RunSubmission, SampleSubmission, SamplingSession, Scope,
    SearchPosition, Session, SessionSearch, SessionStatus, SessionTimeline, StatusFilter, Submitted, TimelineRequest,
    User, Work, WorkItem, WorkerWait,
};
pub use types::{Attribution, HourlyUsage, RequestUsage, StorageInUse, StoredCheckpoint, Tokens};
pub use types::{CheckpointPosition, CheckpointSearch, FoundCheckpoints};
pub use types::{
    EngineReport, FailedRequest, ListedRun, QueuedRequests, RunProgress, RunRequest, TokenRate, WorkerStatus,
};
pub use types::{MAX_STORED_SAMPLES, NewRunSample, RunSample, RunSamples, STORE_SAMPLES, SampleStorage};
pub use types::{Measured, MetricCurve, MetricPoint, MetricsRange, RunCurves, RunMetrics};
pub use types::{NewUpload, Upload, UploadEnd, UploadState, UploadedFile};
pub use uploads::MAX_OPEN_UPLOADS;
