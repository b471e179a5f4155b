//! Garbage collection: old results and requests in the store, and objects in the storage that no row names.

mod ended;
pub(crate) mod ended_progress;
mod maintenance;
mod metrics;
pub(crate) mod orphan_progress;
mod orphans;
mod rows;
mod uploads;
mod usage;
