//! HTTP without an API: a listener with TLS and limits on connections, the origin of calls, and answers of known
//! length.
//!
//! The meaning of requests, authorisation, and memory for bodies are the server's part.

pub mod answer;
pub mod listener;
pub mod open_files;
pub mod peer;
pub mod shutdown;
pub mod tls;
