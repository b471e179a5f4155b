//! Usage of an organisation: in the form that the SDK reads, and as CSV.

mod period;
mod storage;

pub(in crate::api) mod admin_usage_csv;
pub(in crate::api) mod billing_storage;
pub(in crate::api) mod billing_usage;

/// Number of bytes in a gigabyte.
const GIGABYTE: f64 = 1e9;
