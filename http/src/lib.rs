//! HTTP without an API: a listener with TLS and limits on connections, the origin of calls, and answers of known length.
//!
//! What a request asks, who may ask it and how much of its body is kept belong to the server.

pub mod answer;
pub mod listener;
pub mod open_files;
pub mod peer;
pub mod shutdown;
pub mod tls;
