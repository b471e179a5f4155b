//! The trainyard server: HTTP API, command line and the worker that joins scheduler and runtime.

pub mod api;
pub mod auth;
pub mod bodies;
mod budgets;
pub mod calls;
pub mod cli;
pub mod config;
pub mod device;
pub mod disk;
pub mod doctor;
mod endpoint;
pub mod engine;
pub mod error;
mod exports;
pub mod features;
#[cfg(test)]
mod fuzz;
#[cfg_attr(not(feature = "cuda"), path = "gpu_missing.rs")]
mod gpu;
pub mod hub;
pub mod inference;
pub mod jwt;
mod linked;
mod machine;
pub mod metrics;
pub mod models;
pub mod openapi;
pub mod parquet;
mod perfetto;
mod pixel_rate;
pub mod random;
pub mod rank_copies;
pub mod sample_stream;
mod save_locations;
pub mod signed_urls;
pub mod state;
mod store_probe;
mod stored_samples;
#[cfg(feature = "top")]
pub mod top;
#[cfg_attr(not(feature = "otlp"), path = "traces_missing.rs")]
pub mod traces;
mod upload_digests;
pub mod worker;
pub mod workspace;
