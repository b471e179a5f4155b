//! States of fixed size that some mixers keep per sequence, instead of the keys and values of all tokens.

use super::mixer_shapes::StateShape;
use crate::tensors::Tensors;
use crate::types::StateId;

/// The pool of sequences' states on a backend `B`.
pub trait StateOps<B: Tensors> {
    /// Pool of states: each state has a part for every block that keeps one.
    type StatePool: Send + Sync;

    /// Returns a pool for a model's blocks that keep a state, first to last.
    fn state_pool(backend: &B, shapes: &[StateShape]) -> Self::StatePool;

    /// Allocates a zero state: that of a sequence without tokens.
    fn state_take(backend: &B, pool: &mut Self::StatePool) -> StateId;

    /// Frees a state; its id may be reused.
    fn state_release(backend: &B, pool: &mut Self::StatePool, state: StateId);

    /// Overwrites state `to` with state `from`.
    fn state_copy(backend: &B, pool: &mut Self::StatePool, from: StateId, to: StateId);
}
