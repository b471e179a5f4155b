//! Tensors that hold several of a Hugging Face folder, or a part of one: experts, and the halves of latent attention's
//! `kv_b_proj`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::entry::Entry;
use crate::config::{LoadError, ModelConfig};

/// Part of a name between the number of a block and that of an expert.
const EXPERTS: &str = ".mlp.experts.";

/// The tensors of all experts of a block: `model.layers.0.mlp.experts.gate_proj.weight`, `[experts, outputs, inputs]`.
#[derive(Default)]
pub(super) struct ExpertStacks(BTreeMap<String, Entry>);

impl ExpertStacks {
    /// Whether a name is that of a stack.
    pub(super) fn is_stack(name: &str) -> bool {
        name.contains(EXPERTS)
    }

    /// Adds a stack, unless there is one of that name.
    ///
    /// # Errors
    /// One whose experts do not begin with blocks of their own.
    pub(super) fn add(&mut self, name: String, entry: Entry) -> Result<bool, LoadError> {
        if entry.stacked_elements().is_none() {
            let Entry { shape, dtype, .. } = entry;
            return Err(LoadError::Unsupported(format!("tensor {name} of shape {shape:?} in {dtype}")));
        }
        Ok(self.0.insert(name, entry).is_none())
    }

    /// The tensor of an expert: `model.layers.0.mlp.experts.3.gate_proj.weight`.
    pub(super) fn find(&self, name: &str) -> Option<Entry> {
        let (block, rest) = name.split_once(EXPERTS)?;
        let (expert, rest) = rest.split_once('.')?;
        self.0.get(&format!("{block}{EXPERTS}{rest}"))?.stacked(expert.parse().ok()?)
    }

    /// Names of the tensors of all experts.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(name, entry)| Some((name.split_once(EXPERTS)?, entry))).flat_map(
            |((block, rest), entry)| (0..entry.shape[0]).map(move |expert| format!("{block}{EXPERTS}{expert}.{rest}")),
        )
    }

    /// Checks that each block has as many experts as configured, before a table of them takes memory.
    pub(super) fn check(&self, config: &ModelConfig) -> Result<(), LoadError> {
        for (layer, block) in config.blocks.iter().enumerate() {
            let Some(experts) = &block.experts else { continue };
            let parts: &[&str] = if block.activation.is_gated() { &["gate_proj", "up_proj"] } else { &["up_proj"] };
            for part in parts.iter().chain(&["down_proj"]) {
                let name = format!("model.layers.{layer}{EXPERTS}{part}.weight");
                let found = &self.0.get(&name).ok_or_else(|| LoadError::MissingTensor(name.clone()))?.shape;
                let (inputs, outputs) = (experts.inputs(config.hidden_size), experts.width);
                let matrix = if *part == "down_proj" { [inputs, outputs] } else { [outputs, inputs] };
                let expected = vec![experts.count, matrix[0], matrix[1]];
                if *found != expected {
                    return Err(LoadError::WrongShape { name, found: found.clone(), expected });
                }
            }
        }
        Ok(())
    }
}

/// A block's `kv_b_proj` in halves: keys `[heads, latent, width]`, each head's transposed, and values `[heads, width, latent]`.
/// The whole has each head's rows for keys, and then those for values.
#[derive(Clone)]
pub(super) struct SplitLatent {
    pub(super) keys: Entry,
    pub(super) values: Entry,
}

impl SplitLatent {
    /// Joins two tensors; an error if their extents do not fit each other.
    pub(super) fn new(name: &str, keys: Entry, values: Entry) -> Result<Self, LoadError> {
        let fits = match (&keys.shape[..], &values.shape[..]) {
            ([heads, latent, _], [same_heads, _, same_latent]) => heads == same_heads && latent == same_latent,
            _ => false,
        };
        if fits && keys.stacked_elements().is_some() && values.stacked_elements().is_some() {
            return Ok(Self { keys, values });
        }
        Err(LoadError::Unsupported(format!(
            "{name} of attn_k_b with shape {:?} in {} and attn_v_b with shape {:?} in {}",
            keys.shape, keys.dtype, values.shape, values.dtype
        )))
    }

    /// (width of keys, width of values, width of the latents)
    fn widths(&self) -> (usize, usize, usize) {
        (self.keys.shape[2], self.values.shape[1], self.values.shape[2])
    }

    /// Extents of the whole.
    pub(super) fn shape(&self) -> Vec<usize> {
        let (keys, values, latent) = self.widths();
        vec![self.keys.shape[0] * (keys + values), latent]
    }

    /// Elements of a head.
    pub(super) fn head(&self) -> usize {
        let (keys, values, latent) = self.widths();
        (keys + values) * latent
    }

    /// Some heads of the whole; `read` reads elements of one of the halves.
    pub(super) fn heads(
        &self,
        heads: Range<usize>,
        read: impl Fn(&Entry, Range<usize>) -> Result<Vec<f32>, LoadError>,
    ) -> Result<Vec<f32>, LoadError> {
        let (width, value_width, latent) = self.widths();
        let part = |entry: &Entry, each: usize| read(entry, heads.start * each..heads.end * each);
        let keys = part(&self.keys, width * latent)?;
        let values = part(&self.values, value_width * latent)?;
        let mut whole = Vec::with_capacity(heads.len() * self.head());
        for head in 0..heads.len() {
            let keys = &keys[head * width * latent..][..width * latent];
            whole.extend((0..width).flat_map(|row| (0..latent).map(move |column| keys[column * width + row])));
            whole.extend_from_slice(&values[head * value_width * latent..][..value_width * latent]);
        }
        Ok(whole)
    }
}
