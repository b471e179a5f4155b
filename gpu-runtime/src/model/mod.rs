//! The decoder: weights, adapters, and its forward and backward passes over packed batches.

#![expect(clippy::too_many_arguments, reason = "ops take operands with extents and strides, as BLAS does")]

mod adapter;
mod backward;
mod forward;
mod gradient;
mod lora;
mod memory;
mod params;
mod score;
mod train;
mod weights;

pub use adapter::{Adapter, LoraPair, Module};
pub use forward::{Activations, Group, Kept, Pass, PassInput, forward};
pub use gradient::GradientSum;
pub use memory::PassMemory;
pub use params::{Gradients, ParamLayout, ParamSpec};
pub use score::{ScoredRows, score_rows};
pub use train::{TrainGroup, TrainOutput, train_pass};
pub use weights::{Layer, Linear, Weights};
