//! A small simulator: predicts the memory and speed of a layout from only the configuration of a model.
//!
//! It uses the engine's own planning: the table of parameters and how ranks share them, the memory of a training pass,
//! the packed size of weights, and the list of collectives in a pass with the bytes that the transports send in each.
//! So the predictions are for the layout that runs; tests compare them with an engine's counters. Layouts that this
//! version refuses ([`Plan::refusal`]) are planned all the same: experts and the state that replicas share are in equal
//! parts.

mod device;
mod error;
mod layout;
mod memory;
mod shapes;
mod time;
mod traffic;
mod workload;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::config::ModelConfig;
use crate::model::ParamTable;
pub use device::{Attained, Device, Host, Link, LinkError, LinkKind, Network};
pub use error::PlanError;
pub use layout::{PlannedLayout, PlannedLayoutError};
pub use memory::RankMemory;
use memory::{Form, held};
pub use shapes::{named as named_shape, names as shape_names};
use time::Costs;
pub use time::{Limit, StepTime};
pub use traffic::{Axis, Moved};
pub use workload::Workload;

/// Predicted memory and speed of a layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Layout that is planned.
    pub layout: PlannedLayout,
    /// The reason why this version does not run the layout, if it does not.
    pub refusal: Option<String>,
    /// Number of parameters of the model.
    pub parameters: u64,
    /// Number of parameters that the run trains, on all ranks.
    pub trained_parameters: u64,
    /// Memory that each rank holds.
    pub memory: RankMemory,
    /// Bytes of memory that each rank has.
    pub memory_capacity: u64,
    /// Bytes by which the layout exceeds the memory, if it does not fit.
    pub exceeds_by: Option<u64>,
    /// Number of the model's blocks that save their activations in a training pass; the others are recomputed.
    pub saved_blocks: usize,
    /// Number of blocks that the backward pass computes once more for the inputs of others, because not all of these are kept.
    pub repeated_blocks: usize,
    /// Number of the model's blocks.
    pub blocks: usize,
    /// Number of tokens of a training step on all replicas.
    pub tokens_per_step: usize,
    /// Traffic that each rank sends in a training step.
    pub training_moved: Vec<Moved>,
    /// Time of a training step.
    pub training: StepTime,
    /// Tokens that all replicas train per second.
    pub training_tokens_per_second: f64,
    /// Traffic that each rank sends in a decoding step.
    pub decoding_moved: Vec<Moved>,
    /// Time of a decoding step.
    pub decoding: StepTime,
    /// Tokens that all replicas sample per second.
    pub sampled_tokens_per_second: f64,
}

impl Plan {
    /// Returns the bytes that a rank sends per trained token, and the minimum that it must send, by
    /// [`Plan::training_moved`].
    pub fn training_bytes_per_token(&self, moved: &Moved) -> [f64; 2] {
        let tokens = (self.tokens_per_step / self.layout.dp) as f64;
        [moved.bytes as f64 / tokens, moved.least_bytes / tokens]
    }
}

/// Plans a layout.
///
/// # Errors
/// Fails if ranks cannot share the model, or if a number is 0 or out of range.
pub fn plan(
    model: &ModelConfig,
    layout: PlannedLayout,
    device: &Device,
    network: &Network,
    work: &Workload,
) -> Result<Plan, PlanError> {
    let numbers = [
        (work.microbatch_tokens, "the number of tokens of a microbatch"),
        (work.microbatches, "the number of microbatches"),
        (work.context, "the context"),
        (work.sequences, "the number of sequences"),
        (network.per_node, "the number of devices of a machine"),
        (work.lora.as_ref().map_or(1, |lora| lora.rank as usize), "the rank of the adapter"),
    ];
    if let Some((_, what)) = numbers.iter().find(|(number, _)| *number == 0) {
        return Err(PlanError::Zero(what));
    }
    // Indexers are not available on other devices: the context ends where they would begin to choose.
    let model = &if device.is_host { model.clone() } else { model.clone().without_indexer() };
    if work.context > model.max_position_embeddings {
        return Err(PlanError::Context { asked: work.context, most: model.max_position_embeddings });
    }
    let (shard, own) = layout.own(model)?;
    let device = &if device.is_host { device.shared_by(layout.world().min(network.per_node)) } else { device.clone() };
    let form = Form::of(device, work);
    let held = held(&own, &layout, device, &form, work);
    let costs = Costs { whole: model, own: &own, layout: &layout, device, network, work };
    let training_moved = traffic::training(&own, &shard, &layout, work, held.saved);
    let training = costs.training(&held, &training_moved);
    let decoding_moved = traffic::decoding(&own, &layout, work.sequences);
    let decoding = costs.decoding(&form, &held, &decoding_moved);
    let (table, replicas) = (ParamTable::new(model), layout.dp);
    let tokens_per_step = work.microbatch_tokens * work.microbatches * replicas;
    let exceeds_by = held.bytes.total().checked_sub(device.memory_bytes).filter(|bytes| *bytes > 0);
    Ok(Plan {
        layout,
        refusal: layout.refusal(model),
        parameters: table.elements() as u64,
        trained_parameters: memory::elements(&table.trained(model, work.lora.as_ref())) as u64,
        memory: held.bytes,
        memory_capacity: device.memory_bytes,
        exceeds_by,
        saved_blocks: held.saved.blocks,
        repeated_blocks: held.saved.repetitions(own.num_layers()),
        blocks: own.num_layers(),
        tokens_per_step,
        training_tokens_per_second: tokens_per_step as f64 / training.seconds,
        training_moved,
        training,
        sampled_tokens_per_second: (work.sequences * replicas) as f64 / decoding.seconds,
        decoding_moved,
        decoding,
    })
}
