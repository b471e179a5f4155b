//! What an organisation used: as the SDK reads it, and as CSV.

mod period;
mod storage;

pub(super) mod admin_usage_csv;
pub(super) mod billing_storage;
pub(super) mod billing_usage;

/// Bytes of a gigabyte.
const GIGABYTE: f64 = 1e9;
