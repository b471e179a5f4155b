//! Garbage collection: old results and requests in the store, and objects in the storage that no row names.

mod maintenance;
pub(crate) mod orphan_progress;
mod orphans;
mod rows;
mod uploads;
mod usage;
