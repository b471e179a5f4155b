//! The engine through its trait: sampler equals trainer, isolation, determinism, errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod equality;
mod fairness;
mod isolation;
mod prefix;
mod saves;
mod smollm2;
mod snapshots;
mod support;
