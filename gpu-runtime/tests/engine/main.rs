//! The engine through its trait: equality of sampler and trainer, isolation, determinism, errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod checksums;
mod controls;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cuda_processes;
#[cfg(feature = "cuda")]
mod cuda_ranks;
#[cfg(feature = "cuda")]
mod cuda_saves;
mod divided;
mod equality;
mod experts;
mod fairness;
mod images;
mod isolation;
mod packed;
mod prefix;
mod rank_memory;
mod ranks;
mod replicas;
mod saves;
mod scalar_head;
mod smollm2;
mod snapshots;
mod support;
