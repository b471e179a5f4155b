//! Log-sum-exp of logits in chunks.

use super::super::Cpu;
use super::super::vexp::{exp, max, multiversion, sum_by};
use super::CHUNK;
use crate::LogSum;

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

/// Log of the sum of exp(scale · x) over a part of a row of logits; with scale 1 the same bits as the loss head's.
pub(in crate::cpu) fn log_sum(cpu: &Cpu, logits: &[f32], scale: f32) -> LogSum {
    logits.chunks(CHUNK).fold(LogSum::EMPTY, |state, chunk| add_chunk(cpu.isa(), chunk, scale, state))
}
