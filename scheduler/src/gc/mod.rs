//! Garbage collection: old results and requests in the store, and objects in the storage that no row names.

mod maintenance;
mod orphans;
mod rows;
mod uploads;
