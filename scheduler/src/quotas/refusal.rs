//! The error of a request that exceeds a quota.

use std::fmt;
use std::time::Duration;

/// A limit on the usage of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    /// Number of live runs.
    Runs,
    /// Tokens of unfinished requests.
    QueuedTokens,
    /// Number of tokens started per minute.
    TokensPerMinute,
    /// Bytes of the tenant's checkpoints.
    StorageBytes,
    /// Unfinished requests of a run.
    RunQueuedRequests,
    /// Bytes of the payloads of a run's unfinished requests.
    RunQueuedBytes,
    /// Unfinished requests of all runs.
    QueuedRequests,
    /// Bytes of the payloads of unfinished requests of all runs.
    QueuedBytes,
    /// Number of unfinished samples.
    QueuedSamples,
    /// Number of sessions that are open or ended within the retention time.
    Sessions,
}

impl Quota {
    /// All quotas, in the order of their definition.
    pub const ALL: [Self; 10] = [
        Self::Runs,
        Self::QueuedTokens,
        Self::TokensPerMinute,
        Self::StorageBytes,
        Self::RunQueuedRequests,
        Self::RunQueuedBytes,
        Self::QueuedRequests,
        Self::QueuedBytes,
        Self::QueuedSamples,
        Self::Sessions,
    ];

    /// Returns the name in the configuration file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "max_runs",
            Self::QueuedTokens => "max_queued_tokens",
            Self::TokensPerMinute => "tokens_per_minute",
            Self::StorageBytes => "max_storage_bytes",
            Self::RunQueuedRequests => "max_run_queued_requests",
            Self::RunQueuedBytes => "max_run_queued_bytes",
            Self::QueuedRequests => "max_queued_requests",
            Self::QueuedBytes => "max_queued_bytes",
            Self::QueuedSamples => "max_queued_samples",
            Self::Sessions => "max_sessions",
        }
    }
}

/// A request that would exceed a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Quota that would be exceeded.
    pub quota: Quota,
    /// Value of the quota: runs, sessions, tokens, tokens per minute, requests or bytes.
    pub limit: u64,
    /// Present usage, in the same unit.
    pub used: u64,
    /// Usage that the request would add, in the same unit; 0 if it is not known beforehand.
    pub asked: u64,
    /// Time until a retry makes sense; zero when waiting does not help.
    pub retry_after: Duration,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quota, limit, used, asked, .. } = self;
        let name = quota.name();
        match quota {
            Quota::Runs => write!(f, "quota {name}: {used} of {limit} training runs are live")?,
            Quota::Sessions => write!(f, "quota {name}: {used} of {limit} sessions are open or ended recently")?,
            Quota::QueuedTokens => {
                write!(f, "quota {name}: {used} of {limit} tokens are queued, and this request has {asked}")?;
            }
            Quota::TokensPerMinute => write!(f, "quota {name}: {limit} tokens per minute are used up")?,
            Quota::RunQueuedRequests => write!(f, "quota {name}: {used} of {limit} requests of this run are queued")?,
            Quota::QueuedRequests => write!(f, "quota {name}: {used} of {limit} training requests are queued")?,
            Quota::QueuedSamples => write!(f, "quota {name}: {used} of {limit} samples are waiting or running")?,
            Quota::RunQueuedBytes => {
                write!(
                    f,
                    "quota {name}: requests of this run with {used} of {limit} bytes are queued, and this one has {asked}"
                )?;
            }
            Quota::QueuedBytes => {
                write!(
                    f,
                    "quota {name}: training requests with {used} of {limit} bytes are queued, and this one has {asked}"
                )?;
            }
            Quota::StorageBytes if *asked == 0 => {
                write!(f, "quota {name}: {used} of {limit} bytes are stored or being saved")?
            }
            Quota::StorageBytes => {
                write!(
                    f,
                    "quota {name}: {used} of {limit} bytes are stored or being saved, and this checkpoint has about {asked}"
                )?;
            }
        }
        match quota {
            Quota::StorageBytes => f.write_str("; delete checkpoints or let them expire"),
            Quota::Runs => f.write_str("; finish a session to free its runs"),
            Quota::Sessions => f.write_str("; use open sessions again, or wait until ended ones are deleted"),
            Quota::RunQueuedRequests
            | Quota::RunQueuedBytes
            | Quota::QueuedRequests
            | Quota::QueuedBytes
            | Quota::QueuedSamples => f.write_str("; wait for results before sending more"),
            Quota::QueuedTokens | Quota::TokensPerMinute => Ok(()),
        }
    }
}
