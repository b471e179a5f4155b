//! The decoder, written once for all devices and families: weights, adapters, and forward and backward passes over packed
//! batches.

mod adapter;
mod backward;
mod forward;
mod gradient;
mod kv;
mod linear;
mod memory;
mod params;
mod rope;
mod score;
mod train;
mod weights;

pub(crate) use adapter::{Adapter, RowGroup};
pub(crate) use forward::{PassInput, forward};
pub(crate) use gradient::GradientSum;
#[cfg(test)]
pub(crate) use kv::KvCache;
pub(crate) use kv::{KvBlock, KvSequence};
pub(crate) use memory::PassMemory;
pub(crate) use params::{AdaptedModule, Init, ParamSpec, ParamTable, Projection};
#[cfg(test)]
pub(crate) use rope::rope_table;
pub(crate) use score::{logits, target_logprobs};
pub(crate) use train::{TrainGroup, TrainOutput, train_pass};
pub(crate) use weights::{Model, Weights};

#[cfg(test)]
mod tests;
