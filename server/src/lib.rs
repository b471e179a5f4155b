//! The trainyard server: HTTP API, command line and the worker that joins scheduler and runtime.

pub mod api;
pub mod auth;
pub mod calls;
pub mod cli;
pub mod config;
pub mod device;
pub mod disk;
pub mod doctor;
pub mod engine;
pub mod error;
mod exports;
#[cfg(test)]
mod fuzz;
pub mod hub;
pub mod inference;
pub mod jwt;
pub mod listener;
mod machine;
pub mod metrics;
pub mod models;
mod open_files;
pub mod openapi;
pub mod parquet;
mod peer;
mod perfetto;
pub mod random;
pub mod rank_copies;
pub mod sample_stream;
mod save_locations;
pub mod signed_urls;
pub mod state;
mod stored_samples;
pub mod tls;
pub mod top;
pub mod traces;
pub mod worker;
pub mod workspace;
