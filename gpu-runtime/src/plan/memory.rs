//! Memory of a rank: base weights, the state of a run, a training pass, keys and values.

use serde::Serialize;
use trainyard_protocol::LoraSpec;

use super::device::Device;
use super::layout::PlannedLayout;
use super::workload::Workload;
use crate::backend::{AttentionShape, Backend, Dtype, HostBackend, HostKernels, KV_BLOCK, Tensors};
use crate::collective::{COMMUNICATOR_BYTES, communicators, exchange_bytes};
use crate::config::{Experts, ModelConfig};
use crate::engine::saved_by_blocks;
use crate::model::zero::replicas::part_elements;
use crate::model::{
    AdaptedModule, Adapter, Model, ParamSpec, ParamTable, PassMemory, Saved, Units, Weights, lookup_bytes, packed_bytes,
};

/// AdamW's first and second.
const MOMENTS: usize = 2;

/// Memory of one rank, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankMemory {
    /// Base weights in the form that passes read, and rotary tables.
    pub base_weights: u64,
    /// The weights of a run that passes read: its adapter, or all parameters.
    pub run_weights: u64,
    /// The run's parameters in f32.
    pub masters: u64,
    /// The run's optimizer moments.
    pub moments: u64,
    /// The run's accumulated gradients.
    pub gradients: u64,
    /// A training pass over a microbatch.
    pub activations: u64,
    /// Keys and values of a training pass over a microbatch, or of all sampled sequences: whichever are more.
    pub kv: u64,
    /// Buffers of exchanges between devices, and those of NCCL's communicators, an assumption.
    pub exchanges: u64,
    /// Bytes that a device reserves for itself.
    pub reserved: u64,
}

impl RankMemory {
    /// Returns the sum of all parts, in bytes.
    pub fn total(&self) -> u64 {
        self.parts().into_iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the bytes that a run takes.
    pub fn run(&self) -> u64 {
        self.run_weights + self.masters + self.moments + self.gradients
    }

    /// Returns the parts by name, in the order of tables.
    pub fn parts(&self) -> [(&'static str, u64); 9] {
        [
            ("base weights", self.base_weights),
            ("run: weights of passes", self.run_weights),
            ("run: masters", self.masters),
            ("run: moments", self.moments),
            ("run: gradients", self.gradients),
            ("activations", self.activations),
            ("keys and values", self.kv),
            ("exchanges", self.exchanges),
            ("reserved by the device", self.reserved),
        ]
    }
}

/// The form in which a device holds a model.
pub(super) enum Form {
    /// The host's kernels, as the engine plans with them.
    Host(Box<HostBackend>),
    /// Matrices without padding and transposes, activations in the type of the weights.
    RowMajor(Dtype),
}

impl Form {
    pub(super) fn of(device: &Device, work: &Workload) -> Self {
        if !device.is_host {
            return Self::RowMajor(work.dtype);
        }
        let kernels = work.kernels.unwrap_or_else(HostKernels::detect);
        Self::Host(Box::new(HostBackend::with_isa(1, kernels).with_dtype(work.dtype)))
    }

    fn element(&self) -> usize {
        match self {
            Self::Host(_) => HostBackend::ACTIVATION_BYTES,
            Self::RowMajor(dtype) => dtype.bytes(),
        }
    }

    /// Weights of a model, with transposes where a run `trains` through them; norms and biases, in f32, may be there twice.
    fn weights(&self, own: &ModelConfig, table: &ParamTable, trains: bool) -> usize {
        match self {
            Self::Host(backend) => Weights::planned_bytes(&**backend, own, trains),
            Self::RowMajor(dtype) => table.specs.iter().map(|spec| matrix_bytes(spec, *dtype)).sum(),
        }
    }

    /// Bytes by which base weights are smaller in their blocks.
    fn saved(&self, own: &ModelConfig, work: &Workload) -> usize {
        match self {
            Self::Host(backend) => saved_by_blocks(&**backend, own, &work.blocks),
            Self::RowMajor(_) => 0,
        }
    }

    /// Indexers, which only the host computes.
    fn indexers(&self, own: &ModelConfig) -> usize {
        match self {
            Self::Host(backend) => Model::planned_indexer_bytes(&**backend, own),
            Self::RowMajor(_) => 0,
        }
    }

    fn adapter(&self, own: &ModelConfig, lora: &LoraSpec) -> usize {
        match self {
            Self::Host(backend) => Adapter::planned_bytes(&**backend, own, lora, true),
            Self::RowMajor(dtype) => dtype.bytes() * elements(&ParamTable::of_adapter(own, lora)),
        }
    }

    /// A parameter of a run.
    fn packed(&self, param: &ParamSpec, trains: bool) -> usize {
        match self {
            Self::Host(backend) => packed_bytes(&**backend, param, trains),
            Self::RowMajor(dtype) => matrix_bytes(param, *dtype),
        }
    }

    fn kv_block(&self, shape: &AttentionShape) -> usize {
        match self {
            Self::Host(backend) => backend.kv_block_bytes(shape),
            Self::RowMajor(dtype) => KV_BLOCK * shape.layers * 2 * shape.kv_width() * dtype.bytes(),
        }
    }

    /// Bytes of keys and values of a token.
    pub(super) fn kv_token(&self, own: &ModelConfig) -> usize {
        self.kv_block(&own.attention_shape()) / KV_BLOCK
    }
}

fn matrix_bytes(spec: &ParamSpec, dtype: Dtype) -> usize {
    match spec.shape.len() {
        1 => 2 * spec.len() * size_of::<f32>(),
        _ => spec.len() * dtype.bytes(),
    }
}

pub(super) fn elements(specs: &[ParamSpec]) -> usize {
    specs.iter().map(ParamSpec::len).sum()
}

/// Memory that a rank holds.
pub(super) struct Held {
    pub(super) bytes: RankMemory,
    /// What a training pass keeps for its backward pass.
    pub(super) saved: Saved,
    /// Bytes of the weights that a pass reads.
    pub(super) pass_weights: usize,
    /// Bytes of activations that a pass writes and reads again.
    pub(super) saved_bytes: usize,
}

/// Memory of a rank with the part `own` of a model. As many blocks save their activations as the device has room for,
/// and the others are recomputed.
pub(super) fn held(own: &ModelConfig, layout: &PlannedLayout, device: &Device, form: &Form, work: &Workload) -> Held {
    let table = ParamTable::new(own);
    let trained = elements(&table.trained(own, work.lora.as_ref())) * size_of::<f32>();
    let weights = form.weights(own, &table, true);
    let by_blocks = if work.lora.is_some() { form.saved(own, work) } else { 0 };
    // Runs of all parameters pass through weights of their own.
    let base_weights = form.weights(own, &table, work.lora.is_some()).saturating_sub(by_blocks)
        + form.indexers(own)
        + own.rope_bytes()
        + own.tower_bytes(work.dtype.bytes());
    // Of what replicas share.
    let part = |bytes: usize| bytes.div_ceil(layout.dp);
    let run_weights = match &work.lora {
        Some(lora) => form.adapter(own, lora),
        None => {
            // Sums of tied embeddings are apart.
            let lookups =
                if own.tie_word_embeddings { own.vocab_rows() * own.hidden_size * size_of::<f32>() } else { 0 };
            weights + lookups
        }
    };
    // A replica's part while it updates it.
    let updated = if layout.dp > 1 { part(trained) } else { 0 };
    let kv_token = form.kv_token(own);
    let kv = work.sequences * work.context.next_multiple_of(KV_BLOCK) * kv_token;
    let mut bytes = RankMemory {
        base_weights: base_weights as u64,
        run_weights: run_weights as u64,
        masters: (trained + updated) as u64,
        moments: (MOMENTS * part(trained)) as u64,
        // That of the request in progress, and the accumulated one.
        gradients: (trained + part(trained)) as u64,
        activations: 0,
        kv: kv as u64,
        exchanges: exchanges(layout, device),
        reserved: device.reserved_bytes,
    };
    if layout.divides(work) {
        let divided = divided_run(own, layout, form);
        let RankMemory { base_weights, kv, exchanges, reserved, .. } = bytes;
        bytes = RankMemory { base_weights, kv, exchanges, reserved, ..divided };
    }
    let kv_block = form.kv_block(&own.attention_shape().of_one_layer());
    let (element, adapters) = (form.element(), work.lora.iter());
    let pass = match form {
        Form::Host(_) => PassMemory::planned(own, element, kv_block, adapters),
        Form::RowMajor(_) => PassMemory::planned_on_gpu(own, element, kv_block, adapters),
    };
    let left = device.memory_bytes.saturating_sub(bytes.total());
    let saved = match layout.divides(work) {
        true => pass.saved_once_within(work.microbatch_tokens, left as usize),
        false => pass.saved_within(work.microbatch_tokens, left as usize),
    };
    let buffers = |saved: Saved| pass.bytes(work.microbatch_tokens, saved) as u64;
    // Passes over images and of training take turns.
    bytes.activations = buffers(saved).max(own.tower_pass_bytes() as u64);
    let pass_weights = weights.saturating_sub(by_blocks) + if work.lora.is_some() { run_weights } else { 0 };
    Held { bytes, saved, pass_weights, saved_bytes: buffers(Saved::with_all_inputs(own.num_layers())) as usize }
}

/// Bytes of exchanges between devices. A processor's are memory of a moment, which plans do not count.
fn exchanges(layout: &PlannedLayout, device: &Device) -> u64 {
    if device.is_host {
        return 0;
    }
    let communicators = communicators(layout.tp, layout.dp, layout.ep);
    (exchange_bytes(layout.tp, layout.dp, layout.ep) + communicators * COMMUNICATOR_BYTES) as u64
}

/// Memory of a rank for a run whose parameters replicas divide: parts of everything, and the maximum that a pass has
/// gathered.
fn divided_run(own: &ModelConfig, layout: &PlannedLayout, form: &Form) -> RankMemory {
    let table = ParamTable::new(own);
    let trained = table.trained(own, None);
    let part = part_elements(trained.iter().map(ParamSpec::len), layout.dp) * size_of::<f32>();
    let gathered =
        Units::of(&table, &trained).memory(&trained, |param, trains| form.packed(param, trains), lookup_bytes(own));
    RankMemory {
        run_weights: gathered.weights as u64,
        masters: part as u64,
        moments: (MOMENTS * part) as u64,
        gradients: (2 * part + gathered.gradients) as u64,
        ..RankMemory::default()
    }
}

/// Multiply-adds of a row in the matrices of a rank's blocks, and in its unembedding. `chosen` is the fraction of the rank's
/// experts that a row goes to on average.
pub(super) fn multiplications(own: &ModelConfig, chosen: f64) -> [f64; 2] {
    let table = ParamTable::new(own);
    let is_block = |index: &usize| *index != table.embed && *index != table.head;
    let matrices = table.specs.iter().enumerate().filter(|(index, spec)| is_block(index) && spec.shape.len() > 1);
    let all: usize = matrices.map(|(_, spec)| spec.len()).sum();
    let experts = expert_elements(own);
    let blocks = (all - experts) as f64 + experts as f64 * chosen;
    [blocks, (own.vocab_rows() * own.hidden_size) as f64]
}

/// Like [`multiplications`], but for an adapter; a rank computes `routed` rows of experts per row.
pub(super) fn adapter_multiplications(own: &ModelConfig, lora: &LoraSpec, routed: f64) -> f64 {
    let of = |module: AdaptedModule| {
        let (outputs, inputs) = module.extents;
        let rows = module.experts.map_or(1.0, |_| routed);
        rows * ((outputs + inputs) * lora.rank as usize) as f64
    };
    ParamTable::adapted_modules(own, lora).into_iter().map(of).sum()
}

/// Elements of the matrices of a rank's experts.
pub(super) fn expert_elements(own: &ModelConfig) -> usize {
    // gate, up and down.
    let of = |experts: &Experts| experts.held.len() * 3 * experts.width * own.hidden_size;
    own.blocks.iter().filter_map(|block| block.experts.as_ref()).map(of).sum()
}

/// Experts of a block, and those of a row; `None` where no block has any.
pub(super) fn experts_of(c: &ModelConfig) -> Option<(usize, usize)> {
    let of = |experts: &Experts| (experts.count, experts.rule.per_token);
    c.blocks.iter().filter_map(|block| block.experts.as_ref()).map(of).max()
}
