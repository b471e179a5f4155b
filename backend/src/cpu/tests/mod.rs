//! Every kernel against candle's autograd, in f64: values and gradients, on every instruction set that this processor
//! has. Also batch invariance: a row's bits depend only on that row.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod attention;
mod attention_kv;
mod distributions;
mod elementwise;
mod head;
mod invariance;
mod memory;
mod norm;
mod operands;
mod rope;
mod support;
