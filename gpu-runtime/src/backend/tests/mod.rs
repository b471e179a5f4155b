//! Models on every backend against PyTorch, and on GPUs against the reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod cuda;
mod divided;
mod golden;
mod indexer;
mod recompute;
mod sharded;
mod vision;
