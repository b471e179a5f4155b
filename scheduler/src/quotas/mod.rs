//! Limits on the usage of a tenant: fair-share weights, quotas and rate limits. Free of input and output; the time is
//! an argument.

pub(crate) mod admission;
mod granted;
mod grants;
mod limits;
mod policy;
mod refusal;
#[cfg(test)]
mod tests;
mod throttle;
mod token_bucket;
mod training;

use crate::Timestamp;
use crate::execution::crashes::CrashRecord;

pub(crate) use granted::Granted;
pub use grants::Policies;
pub(crate) use grants::{Grants, StoredGrant};
pub use limits::{Limit, LimitChanges, LimitOutOfRange, TenantLimits};
pub use policy::TenantPolicy;
pub use refusal::{Quota, Refusal};
pub use throttle::Pause;
pub(crate) use throttle::Throttle;
pub(crate) use token_bucket::{BucketLevel, TokenBucket};
pub(crate) use training::QueuedTraining;
pub use training::TrainingLimits;

/// Properties of a request that scheduling and quotas need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Tokens that count against the tenant's quotas.
    pub(crate) tokens: u64,
    /// Time when the request was submitted.
    pub(crate) accepted: Timestamp,
    /// Crashes that the request may have caused.
    pub(crate) crashes: CrashRecord,
}

impl Cost {
    /// Returns the cost of a request that was accepted just now.
    pub(crate) fn new(tokens: u64, accepted: Timestamp) -> Self {
        Self { tokens, accepted, crashes: CrashRecord::default() }
    }
}
