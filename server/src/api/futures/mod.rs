//! Results of requests: waiting for them, and cancelling them.

pub(super) mod cancel_future;
pub(super) mod retrieve_future;
pub(super) mod retrieve_futures;
