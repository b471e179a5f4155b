//! Garbage collection: old results and requests in the store, and what no row names in the storage.

mod maintenance;
mod orphans;
mod rows;
mod uploads;
