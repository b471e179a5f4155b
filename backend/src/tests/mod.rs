//! Ops of the processor against the reference, and against what they mean.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod convolution;
mod family;
mod latent;
mod ops;
mod recurrent;
mod routing;
mod vision;
mod vocabulary;
