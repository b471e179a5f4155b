//! Each op on the simulated device against the reference backend, on inputs of odd extents; and what happens when something fails.
#![allow(clippy::unwrap_used, reason = "tests")]

mod activation;
mod attention;
mod embedding;
mod faults;
mod head;
mod lora;
mod matmul;
mod norm;
mod optimizer;
mod ptx;
mod rotary;
mod sampling;
mod simulated;
mod squares;
mod support;
