//! A pool of recurrent states, one for each sequence.

use super::Reference;
use crate::{ConvolutionShape, RecurrentShape, StateId, StateOps, StateShape};

/// State of a sequence in a block: the convolution's last inputs, oldest first, and in recurrences by value head the state
/// `[key_dim, value_dim]`.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) tail: Vec<Vec<f32>>,
    pub(super) heads: Vec<Vec<f32>>,
}

impl State {
    pub(super) fn new(shape: &RecurrentShape) -> Self {
        Self {
            tail: vec![vec![0.0; shape.channels()]; shape.kernel - 1],
            heads: vec![vec![0.0; shape.key_dim * shape.value_dim]; shape.value_heads],
        }
    }

    pub(super) fn of_convolution(shape: &ConvolutionShape) -> Self {
        Self { tail: vec![vec![0.0; shape.channels]; shape.kernel - 1], heads: Vec::new() }
    }

    fn of(shape: &StateShape) -> Self {
        match shape {
            StateShape::Recurrent(shape) => Self::new(shape),
            StateShape::Convolution(shape) => Self::of_convolution(shape),
        }
    }
}

/// States by id and block that keeps one.
#[derive(Debug, Default)]
pub struct StatePool {
    shapes: Vec<StateShape>,
    states: Vec<Vec<State>>,
}

impl StatePool {
    pub(super) fn layer(&mut self, id: StateId, layer: usize) -> &mut State {
        &mut self.states[id.0 as usize][layer]
    }
}

impl StateOps<Self> for Reference {
    type StatePool = StatePool;

    fn state_pool(_: &Self, shapes: &[StateShape]) -> StatePool {
        StatePool { shapes: shapes.to_vec(), states: Vec::new() }
    }

    fn state_take(_: &Self, pool: &mut StatePool) -> StateId {
        pool.states.push(pool.shapes.iter().map(State::of).collect());
        StateId((pool.states.len() - 1) as u32)
    }

    fn state_release(_: &Self, pool: &mut StatePool, state: StateId) {
        pool.states[state.0 as usize].clear();
    }

    fn state_copy(_: &Self, pool: &mut StatePool, from: StateId, to: StateId) {
        pool.states[to.0 as usize] = pool.states[from.0 as usize].clone();
    }
}
