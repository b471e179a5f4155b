//! States of sequences in host memory.

use crate::cpu::Cpu;
use crate::{StateId, StateOps, StateShape};

/// States of sequences, by id and by the block that keeps the state.
#[derive(Default)]
pub struct StatePool {
    shapes: Vec<StateShape>,
    /// Blocks of each state; none where the id is free.
    states: Vec<Vec<Vec<f32>>>,
    free: Vec<usize>,
}

impl StatePool {
    /// The elements of a sequence's state in a block: of a recurrence those of each key head, one after the other.
    pub(super) fn layer(&mut self, state: StateId, layer: usize) -> &mut [f32] {
        &mut self.states[state.0 as usize][layer]
    }

    /// The same, to be read.
    pub(super) fn held(&self, state: StateId, layer: usize) -> &[f32] {
        &self.states[state.0 as usize][layer]
    }
}

impl StateOps<Self> for Cpu {
    type StatePool = StatePool;

    fn state_pool(_: &Self, shapes: &[StateShape]) -> StatePool {
        StatePool { shapes: shapes.to_vec(), ..StatePool::default() }
    }

    fn state_take(_: &Self, pool: &mut StatePool) -> StateId {
        let zeros = pool.shapes.iter().map(|shape| vec![0.0; shape.elements()]).collect();
        let at = pool.free.pop().unwrap_or_else(|| {
            pool.states.push(Vec::new());
            pool.states.len() - 1
        });
        pool.states[at] = zeros;
        StateId(at as u32)
    }

    fn state_release(_: &Self, pool: &mut StatePool, state: StateId) {
        pool.states[state.0 as usize] = Vec::new();
        pool.free.push(state.0 as usize);
    }

    fn state_copy(_: &Self, pool: &mut StatePool, from: StateId, to: StateId) {
        pool.states[to.0 as usize] = pool.states[from.0 as usize].clone();
    }
}
