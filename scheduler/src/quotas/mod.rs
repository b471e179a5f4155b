//! What a tenant may use: shares, quotas and the pace of its requests. Free of input and output; the time is an
//! argument.

mod bucket;
mod policy;
mod refusal;
#[cfg(test)]
mod tests;
mod throttle;

use crate::Timestamp;
use crate::suspicion::Suspicion;

pub(crate) use bucket::{Bucket, Level};

pub use policy::{Policies, TenantPolicy};
pub use refusal::{Quota, Refusal};
pub use throttle::Pause;
pub(crate) use throttle::Throttle;

/// What a request is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// What it takes of its tenant's quotas.
    pub(crate) tokens: u64,
    /// When it was submitted.
    pub(crate) accepted: Timestamp,
    /// What is held against it.
    pub(crate) suspicion: Suspicion,
}

impl Cost {
    /// What a request costs that was accepted just now.
    pub(crate) fn new(tokens: u64, accepted: Timestamp) -> Self {
        Self { tokens, accepted, suspicion: Suspicion::default() }
    }
}
