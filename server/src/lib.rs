//! The trainyard server: HTTP API, command line and the worker that joins scheduler and runtime.

pub mod codec;
pub mod wire;
pub mod worker;
