//! What an organisation used: as the SDK reads it, and as CSV.

mod period;
mod storage;

pub(in crate::api) mod admin_usage_csv;
pub(in crate::api) mod billing_storage;
pub(in crate::api) mod billing_usage;

/// Bytes of a gigabyte.
const GIGABYTE: f64 = 1e9;
