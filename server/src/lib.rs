//! The trainyard server: HTTP API, command line and the worker that joins scheduler and runtime.

pub mod api;
pub mod auth;
pub mod calls;
pub mod cli;
pub mod codec;
pub mod config;
pub mod disk;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod hub;
pub mod inference;
pub mod listener;
mod machine;
pub mod metrics;
pub mod models;
pub mod openapi;
pub mod random;
pub mod sample_stream;
pub mod signed_urls;
pub mod state;
pub mod tls;
pub mod traces;
pub mod wire;
pub mod worker;
pub mod workspace;
