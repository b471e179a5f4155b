//! Each op on the simulated device against the reference backend, on inputs of odd extents; and what happens when something fails.
#![allow(clippy::unwrap_used, reason = "tests")]

mod activation;
mod attention;
mod bias;
mod combine;
mod copies;
mod counts;
mod cubin_loading;
mod cubins;
mod embedding;
mod faults;
mod gated;
mod graphs;
mod head;
mod latent;
mod logits;
mod lora;
mod matmul;
mod mixers;
pub(super) mod mutants;
mod norm;
mod optimizer;
mod outer;
mod ptx;
mod ranks;
mod rotary;
mod routing;
mod sampling;
mod scalar_head;
pub(crate) mod simulated;
mod sinks;
mod squares;
mod support;
mod tensor_attention;
mod transfer_faults;
mod transfers;
mod vocabulary;
