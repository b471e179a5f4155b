//! Every backend against PyTorch, and against the reference backend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod convolution;
mod cuda;
mod divided;
mod family;
mod golden;
mod indexer;
mod latent;
mod ops;
mod recompute;
mod recurrent;
pub(in crate::backend) mod routing;
mod sharded;
mod vision;
mod vocabulary;
