//! The decoder, written once for all devices and families: weights, adapters, and forward and backward passes over packed
//! batches.

mod adapted;
mod adapter;
mod attention;
mod backward;
mod backward_pass;
mod block_pass;
mod block_weights;
mod convolution;
mod early_end;
mod exchanges;
mod expert_ranks;
mod experts;
mod forward;
mod gradient;
mod image_rows;
mod indexer;
mod indexer_weights;
mod latent;
mod latent_weights;
mod linear;
mod loss_head;
mod memory;
mod mixer_params;
mod mixer_weights;
mod mlp_parts;
mod mlp_weights;
mod mrope;
mod norm_weight;
mod packing;
mod param_value;
mod params;
mod parts;
mod pass_kv;
mod pass_losses;
mod planned_weights;
mod projection;
mod recompute;
mod recurrence;
mod scalar_head;
mod score;
mod shard;
mod shard_axis;
mod shared_expert;
mod train;
mod vocabulary;
mod weights;
pub(crate) mod zero;

#[cfg(test)]
pub(crate) use crate::backend::kv::KvCache;
pub(crate) use crate::backend::kv::{KvBlock, KvSequence, RecurrentState};
#[cfg(test)]
pub(crate) use crate::backend::rope::rope_table;
pub(crate) use adapted::AdaptedModule;
pub(crate) use adapter::{Adapter, RowGroup};
pub(crate) use early_end::EarlyEnd;
pub(crate) use exchanges::{
    Exchange, Members, backward_exchanges, embedding_exchanges, forward_exchanges, gradient_exchanges, logit_exchanges,
    loss_exchanges,
};
pub(crate) use forward::{PassInput, forward};
pub(crate) use gradient::{GradientSum, gradient_norm};
pub(crate) use image_rows::{ImageRows, PassImages};
pub(crate) use memory::PassMemory;
pub(crate) use mrope::{ImageGrid, coordinates};
pub(crate) use param_value::ParamValue;
pub(crate) use params::{Init, ParamSpec, ParamTable, TrainedParams};
#[cfg(test)]
pub(crate) use parts::PART_ROWS;
pub(crate) use pass_losses::{FailedDatum, GroupOutput, TrainOutput};
pub(crate) use projection::Projection;
pub(crate) use recompute::Saved;
pub(crate) use scalar_head::{NAMES as SCALAR_HEAD_NAMES, RunHead};
pub(crate) use score::target_logprobs;
pub(crate) use shard::Shard;
#[cfg(test)]
pub(crate) use shard_axis::ShardAxis;
#[cfg(test)]
pub(crate) use train::train_pass;
pub(crate) use train::{PassBounds, TrainGroup, TrainWeights, train_pass_within};
pub(crate) use vocabulary::{LastRows, LogitBuffer};
pub(crate) use weights::{Model, Weights, WholeModel};
pub(crate) use zero::gathered::{GatheredPass, gathered_weights};
pub(crate) use zero::units::{ROUND_ROWS, UnitTraffic, Units, lookup_bytes, packed_bytes};
pub(crate) use zero::weight_source::WeightSource;

#[cfg(test)]
mod tests;
