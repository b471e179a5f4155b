//! States of sequences on the device: one slice for each, with a part for every block that keeps one.

use std::sync::{Arc, Mutex, PoisonError};

use super::Cuda;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::sequences::DeviceSequences;
use crate::backend::{Span, StateId, StateOps, StateShape};

/// The sequences of a call, and its number of rows.
struct LastSequences {
    spans: Vec<Span>,
    rows: usize,
    sequences: Arc<DeviceSequences>,
}

/// States by id. Blocks of a pass have the same sequences, so their tables are kept from one block to the next.
#[derive(Default)]
pub struct StatePool {
    /// First element of each block's part of a state.
    layers: Vec<usize>,
    elements: usize,
    /// None where the id is free.
    states: Vec<Option<Slice<f32>>>,
    free: Vec<u32>,
    last: Mutex<Option<LastSequences>>,
}

impl StatePool {
    fn new(shapes: &[StateShape]) -> Self {
        let mut elements = 0;
        let first = |shape: &StateShape| {
            elements += shape.elements();
            elements - shape.elements()
        };
        Self { layers: shapes.iter().map(first).collect(), elements, ..Self::default() }
    }

    fn forget_addresses(&mut self) {
        *self.last.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn take(&mut self, device: &CudaDevice) -> Result<StateId> {
        self.forget_addresses();
        let zeros = device.zeros(self.elements)?;
        let id = self.free.pop().unwrap_or_else(|| {
            self.states.push(None);
            (self.states.len() - 1) as u32
        });
        self.states[id as usize] = Some(zeros);
        Ok(StateId(id))
    }

    fn release(&mut self, StateId(id): StateId) {
        self.forget_addresses();
        self.states[id as usize] = None;
        self.free.push(id);
    }

    fn copy(&mut self, from: StateId, to: StateId) -> Result {
        let states = self.states.get_disjoint_mut([from.0 as usize, to.0 as usize]);
        match states {
            Ok([Some(from), Some(to)]) => to.copy_from(0, from, 0..from.len()),
            _ => unreachable!("a state does not exist, or is used twice"),
        }
    }

    /// First element of a block's part of a state.
    pub(super) fn layer(&self, layer: usize) -> usize {
        self.layers[layer]
    }

    fn address(&self, span: &Span) -> u64 {
        let state = span.state.and_then(|StateId(id)| self.states[id as usize].as_ref());
        state.map_or(0, Slice::address)
    }

    /// The tables of a pass's sequences.
    pub(super) fn sequences(&self, device: &CudaDevice, spans: &[Span], rows: usize) -> Result<Arc<DeviceSequences>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = &*last
            && (&of.spans[..], of.rows) == (spans, rows)
        {
            return Ok(of.sequences.clone());
        }
        // Its memory is free before the next tables take theirs, so that passes which repeat have the same addresses.
        *last = None;
        let states: Vec<u64> = spans.iter().map(|span| self.address(span)).collect();
        let sequences = Arc::new(DeviceSequences::upload(device, spans, &states, rows)?);
        *last = Some(LastSequences { spans: spans.to_vec(), rows, sequences: sequences.clone() });
        Ok(sequences)
    }
}

/// The tables of sequences that have no states.
pub(super) fn whole_sequences(device: &CudaDevice, spans: &[Span], rows: usize) -> Result<DeviceSequences> {
    DeviceSequences::upload(device, spans, &vec![0; spans.len()], rows)
}

impl StateOps<Self> for Cuda {
    type StatePool = StatePool;

    fn state_pool(_: &Self, shapes: &[StateShape]) -> StatePool {
        StatePool::new(shapes)
    }

    fn state_take(cuda: &Self, pool: &mut StatePool) -> StateId {
        cuda.done(pool.take(&cuda.device))
    }

    fn state_release(_: &Self, pool: &mut StatePool, state: StateId) {
        pool.release(state);
    }

    fn state_copy(cuda: &Self, pool: &mut StatePool, from: StateId, to: StateId) {
        cuda.done(pool.copy(from, to));
    }
}
