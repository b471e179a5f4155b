//! Values that cross the scheduler's boundary.

mod agents;
mod audit;
mod catalogue;
mod checkpoint_search;
mod decoded;
mod overview;
mod requests;
mod run_metrics;
mod run_samples;
mod search;
mod sessions;
mod tenants;
mod uploads;
mod usage;
mod work;

pub use agents::{
    AgentKey, AgentLimits, AgentMatch, AgentSession, AgentState, AgentTurn, NewAgentSession, NewAgentTurn, Rewarded,
};
pub use audit::{AuditCategory, AuditEntry, NewAuditEntry};
pub use catalogue::{
    AccessScope, Checkpoint, MaintenanceReport, NewCheckpoint, NumericsChange, Page, Run, RunFilter, RunState,
};
pub use checkpoint_search::{CheckpointPosition, CheckpointSearch, FoundCheckpoints};
pub use decoded::{Decoded, PrefetchDecoder};
pub use overview::{
    EngineReport, FailedRequest, ListedRun, QueuedRequests, RunProgress, RunRequest, TokenRate, WorkerStatus,
};
pub(crate) use requests::Replays;
pub use requests::{
    CompletionItem, Completions, Encoding, MaintenanceOp, MemoryWait, NewRun, Poll, RecordedResult, RequestKind,
    RequestState, RunSubmission, SampleSubmission, Submitted,
};
pub use run_metrics::{
    LEARNING_RATE, LOSS_PER_TOKEN, Measured, MetricCurve, MetricPoint, MetricsRange, RunCurves, RunMetrics,
};
pub(crate) use run_samples::stored_samples;
pub use run_samples::{MAX_STORED_SAMPLES, NewRunSample, RunSample, RunSamples, STORE_SAMPLES, SampleStorage};
pub use search::{
    FoundSession, FoundSessions, SearchPosition, SessionSearch, SessionTimeline, StatusFilter, TimelineRequest,
};
pub use sessions::{
    FinishReason, NewCustomLoss, NewSamplingSession, NewSession, SamplingSession, Session, SessionStatus,
};
pub use tenants::{
    ApiKey, FoundKey, KeyRefusal, Membership, NewApiKey, NewUser, Organisation, Project, Role, Scope, User,
};
pub use uploads::{NewUpload, Upload, UploadEnd, UploadState, UploadedFile};
pub use usage::{Attribution, HourlyUsage, RequestUsage, StorageInUse, StoredCheckpoint, Tokens};
pub use work::{Effect, Encode, Outcome, Work, WorkItem, WorkerWait};

/// Declares a fieldless enum that a column stores as text.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// All values, in the order of their definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name under which the value is stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Returns the value stored under `text`.
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use text_enum;
