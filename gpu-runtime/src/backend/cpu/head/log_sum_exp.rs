//! Log-sum-exp in chunks.

use super::super::Cpu;
use super::super::vexp::{exp, max, multiversion, sum_by};
use super::CHUNK;

/// Running log-sum-exp of a row.
#[derive(Clone, Copy)]
pub(super) struct LogSum {
    max: f32,
    /// Σ exp(x - max).
    sum: f32,
}

impl LogSum {
    pub(super) const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };

    /// log Σ exp.
    pub(super) fn value(self) -> f32 {
        self.max + self.sum.ln()
    }
}

multiversion! {
    /// The state with a chunk of `scale · logits` added.
    pub(super) fn add_chunk(logits: &[f32], scale: f32, state: LogSum) -> LogSum {
        let top = max(logits) * scale;
        let sum = sum_by(logits, |x| exp(x * scale - top));
        if top == f32::NEG_INFINITY {
            return state;
        }
        if top > state.max {
            LogSum { max: top, sum: state.sum * exp(state.max - top) + sum }
        } else {
            LogSum { max: state.max, sum: state.sum + sum * exp(top - state.max) }
        }
    }
}

/// log Σ exp(scale · x) of a row of logits; with scale 1 the same bits as the loss head's.
pub(in crate::backend::cpu) fn log_sum_exp(cpu: &Cpu, logits: &[f32], scale: f32) -> f32 {
    logits.chunks(CHUNK).fold(LogSum::EMPTY, |state, chunk| add_chunk(cpu.isa(), chunk, scale, state)).value()
}
