//! How long steps take: arithmetic over sustained speed, as in the roofline model (Williams et al. 2009,
//! doi:10.1145/1498765.1498785), and the time of exchanges, which do not overlap with computation.

use serde::Serialize;

use super::device::{Device, Network};
use super::layout::PlannedLayout;
use super::memory::{Form, Held, adapter_multiplications, elements, expert_elements, experts_of, multiplications};
use super::traffic::Moved;
use super::workload::Workload;
use crate::backend::CHUNK;
use crate::config::{ModelConfig, RecurrentShape};
use crate::model::ParamTable;

/// The part of a step that takes most time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Multiplications take most time.
    Compute,
    /// Reading and writing the device's memory takes most time.
    MemoryBandwidth,
    /// Collectives take most time.
    Interconnect,
}

impl Limit {
    /// Returns the name of the limit in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::MemoryBandwidth => "memory bandwidth",
            Self::Interconnect => "interconnect",
        }
    }
}

/// Seconds of a step on each rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepTime {
    /// Seconds if only multiplications took time.
    pub compute: f64,
    /// Seconds if only the device's memory took time.
    pub memory: f64,
    /// Seconds of the collectives.
    pub interconnect: f64,
    /// Seconds of the step: the longer of the first two, plus the collectives.
    pub seconds: f64,
    /// The part that takes most time.
    pub limit: Limit,
}

impl StepTime {
    fn new(compute: f64, memory: f64, interconnect: f64) -> Self {
        let local = if compute >= memory { (Limit::Compute, compute) } else { (Limit::MemoryBandwidth, memory) };
        let limit = if interconnect > local.1 { Limit::Interconnect } else { local.0 };
        Self { compute, memory, interconnect, seconds: local.1 + interconnect, limit }
    }
}

/// Passes over the weights of a block: forward, and backward with respect to its input.
const PASSES: f64 = 2.0;
/// Multiplications of attention's backward pass, relative to the forward pass: five products, one of which repeats the
/// forward pass's first, to its two (Dao 2023, arXiv:2307.08691).
const ATTENTION_BACKWARD: f64 = 2.5;
/// Arrays that AdamW reads (parameter, gradient, two moments) and writes (all but the gradient).
const OPTIMIZER_ARRAYS: usize = 7;

/// Costs of a rank's part of a model.
pub(super) struct Costs<'a> {
    pub(super) whole: &'a ModelConfig,
    pub(super) own: &'a ModelConfig,
    pub(super) layout: &'a PlannedLayout,
    pub(super) device: &'a Device,
    pub(super) network: &'a Network,
    pub(super) work: &'a Workload,
}

impl Costs<'_> {
    /// Time of a training step.
    pub(super) fn training(&self, held: &Held, moved: &[Moved]) -> StepTime {
        let Self { own, work, .. } = self;
        let rows = work.microbatch_tokens as f64;
        let [blocks, head, lora] = self.multiplications();
        let attention = self.attention(own.num_layers(), 0.5);
        let layers = own.num_layers();
        let computed_again = layers - held.saved.blocks + held.saved.repetitions(layers);
        let recomputed = computed_again as f64 / layers.max(1) as f64;
        // A multiplication is two operations. Gradients of weights are those of what is trained.
        let weight_gradients = if work.lora.is_some() { lora } else { blocks + head };
        let forward = blocks + lora;
        let operations = 2.0 * (PASSES * (forward + head) + weight_gradients + recomputed * forward)
            + attention * (1.0 + ATTENTION_BACKWARD + recomputed);
        let compute = rows * operations / self.device.flops(work.dtype);
        let read = held.pass_weights as f64 * (PASSES + recomputed) + 2.0 * held.saved_bytes as f64;
        let trained = elements(&ParamTable::new(own).trained(own, work.lora.as_ref())) * size_of::<f32>();
        let gradients = if work.lora.is_some() { 0 } else { 2 * trained };
        let optimizer = (OPTIMIZER_ARRAYS * trained / self.layout.dp) as f64;
        let times = work.microbatches as f64;
        let memory = (times * (read + gradients as f64) + optimizer) / self.device.read();
        StepTime::new(times * compute, memory, self.interconnect(moved))
    }

    /// A decoding step: one token for each sequence.
    pub(super) fn decoding(&self, form: &Form, held: &Held, moved: &[Moved]) -> StepTime {
        let Self { own, work, .. } = self;
        let rows = work.sequences as f64;
        let [blocks, head, lora] = self.multiplications();
        let operations = 2.0 * (blocks + head + lora) + self.attention(own.num_layers(), 1.0);
        // Of all experts, those that no row goes to are not read.
        let unused =
            experts_of(self.whole).map_or(0.0, |(count, chosen)| (1.0 - chosen as f64 / count as f64).powf(rows));
        let weights = held.pass_weights as f64 - unused * (expert_elements(own) * work.dtype.bytes()) as f64;
        let keys = rows * (work.context * form.kv_token(own)) as f64;
        let memory = (weights + keys) / self.device.read();
        StepTime::new(rows * operations / self.device.flops(work.dtype), memory, self.interconnect(moved))
    }

    /// Multiply-adds of a row in a rank's blocks, unembedding and adapter.
    fn multiplications(&self) -> [f64; 3] {
        // Rows go to experts evenly: to the same fraction of each rank's.
        let (fraction, routed) = experts_of(self.whole).map_or((0.0, 0.0), |(count, chosen)| {
            (chosen as f64 / count as f64, chosen as f64 / self.layout.replica() as f64)
        });
        let [blocks, head] = multiplications(self.own, fraction);
        let lora = self.work.lora.as_ref();
        [blocks, head, lora.map_or(0.0, |lora| adapter_multiplications(self.own, lora, routed))]
    }

    /// Operations of attention for a row: products with the keys and values of a part of the context, or of the window.
    fn attention(&self, layers: usize, part: f64) -> f64 {
        let of = |layer: usize| {
            let context = self.work.context as f64 * part;
            let block = &self.own.blocks[layer];
            let window = block.attention().and_then(|attention| attention.window);
            let seen = window.map_or(context, |window| context.min(window as f64));
            let attention = block.attention().map_or(0.0, |_| 4.0 * seen * self.own.q_width() as f64);
            let convolution = block.convolution().map_or(0.0, |shape| 2.0 * (shape.kernel * shape.channels) as f64);
            attention + convolution + block.recurrence().map_or(0.0, recurrent_operations)
        };
        (0..layers).map(of).sum()
    }

    fn interconnect(&self, moved: &[Moved]) -> f64 {
        let of = |moved: &Moved| {
            let (ranks, stride) = moved.axis.group(self.layout);
            let link = self.network.link(self.device, ranks, stride);
            moved.bytes as f64 / (link.bandwidth * self.device.attained.link) + moved.calls as f64 * link.latency
        };
        // A sum of nothing would be -0.
        moved.iter().map(of).fold(0.0, |sum, seconds| sum + seconds)
    }
}

/// Operations of a recurrence for a row: reading the state for its key and its query, the products with half a chunk of earlier
/// rows, and writing to the state.
fn recurrent_operations(shape: &RecurrentShape) -> f64 {
    let state = 3 * shape.key_dim * shape.value_dim;
    let chunk = CHUNK * (shape.key_dim + shape.value_dim);
    2.0 * (shape.value_heads * (state + chunk)) as f64
}
