//! Every backend against PyTorch, and against the reference backend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod cuda;
mod divided;
mod family;
mod golden;
mod latent;
mod ops;
mod sharded;
mod vocabulary;
