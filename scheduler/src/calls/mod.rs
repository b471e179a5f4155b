//! The calls of the API and the worker: each file serves one kind of call from start to commit.

mod agents;
mod base_models;
mod catalogue;
pub(crate) mod checkpoint_copy;
mod checkpoint_search;
mod completion;
mod futures;
pub(crate) mod look;
mod metric_curves;
mod overview;
mod records;
pub(crate) mod run_metrics;
pub(crate) mod run_samples;
mod secrets;
pub(crate) mod sessions;
pub(crate) mod streams;
mod submit;
pub(crate) mod tenants;
pub(crate) mod upload_checks;
pub(crate) mod uploads;
mod usage;
mod write_probe;
