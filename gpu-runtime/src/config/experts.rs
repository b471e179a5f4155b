//! Configuration of mixtures of experts.

use std::ops::Range;

use super::ModelConfig;
use crate::backend::{RouterRule, RouterScores};

/// A mixture of experts (Shazeer et al. 2017, arXiv:1701.06538): MLPs; a router chooses some of them for every
/// token.
#[derive(Clone, Debug, PartialEq)]
pub struct Experts {
    /// Number of routed experts.
    pub count: usize,
    /// Experts that this rank holds: all of them, unless ranks share them.
    pub held: Range<usize>,
    /// Width of each expert's MLP.
    pub width: usize,
    /// Width of the shared MLP that every token goes to (Dai et al. 2024, arXiv:2401.06066), if there is one.
    pub shared: Option<usize>,
    /// Whether the output of the shared MLP is multiplied by the sigmoid of a score of the token:
    /// `mlp.shared_expert_gate` of the checkpoint.
    pub shared_is_gated: bool,
    /// Width of a latent that experts read and write instead of the residual stream, with a projection to it, and one
    /// back from the sum of a token's experts.
    pub latent: Option<usize>,
    /// Rule that determines a token's experts and their weights from the router's logits.
    pub rule: RouterRule,
    /// Correction added to the experts' scores only for the choice, if the rule has one: `e_score_correction_bias` of
    /// the checkpoint (Wang et al. 2024, arXiv:2408.15664). No gradient trains it.
    pub correction: Vec<f32>,
    /// The router's module within a block.
    pub router: &'static str,
    /// How files store the experts' tensors.
    pub storage: ExpertStorage,
}

/// How Hugging Face checkpoints store the weights of a block's experts. [`ExpertStorage::Apart`],
/// [`ExpertStorage::Rows`] and [`ExpertStorage::Columns`] are distinguished by the tensors of the files, whatever is
/// usual for the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertStorage {
    /// A tensor for each projection of each expert: `mlp.experts.0.gate_proj.weight` `[outputs, inputs]`.
    Apart,
    /// All experts in one tensor, the rows of gate before those of up: `mlp.experts.gate_up_proj`
    /// `[experts, 2 · width, inputs]`, `mlp.experts.down_proj` `[experts, hidden, width]`. Experts without a gate have
    /// `mlp.experts.up_proj` `[experts, width, inputs]`.
    Rows,
    /// All experts in one tensor, inputs before outputs, gate before up: `mlp.experts.gate_up_proj`
    /// `[experts, inputs, 2 · width]`, `mlp.experts.down_proj` `[experts, width, hidden]`.
    Columns,
    /// [`ExpertStorage::Columns`], but outputs of gate and up alternate, and with biases `…_bias` `[experts, outputs]`; or in
    /// MXFP4, `…_blocks` and `…_scales`.
    Interleaved,
}

impl Experts {
    /// Returns the number of elements that an expert reads and writes in a model of width `hidden`.
    pub fn inputs(&self, hidden: usize) -> usize {
        self.latent.unwrap_or(hidden)
    }

    /// Returns the rank, among those that share the model, that has an expert. All of them have the same number of
    /// experts.
    pub fn holder(&self, expert: usize) -> usize {
        expert.checked_div(self.held.len()).unwrap_or(0)
    }

    /// Returns the maximum number of a token's experts that this rank holds.
    pub fn most_held(&self) -> usize {
        self.rule.per_token.min(self.held.len())
    }

    /// Returns the name of the tensor of [`Experts::correction`] in block `layer`, if there is one.
    pub fn correction_name(&self, layer: usize) -> Option<String> {
        let has_one = matches!(self.rule.scores, RouterScores::Sigmoid { .. });
        has_one.then(|| format!("model.layers.{layer}.{}.e_score_correction_bias", self.router))
    }
}

impl ModelConfig {
    /// Returns whether any block has experts.
    pub fn has_experts(&self) -> bool {
        self.blocks.iter().any(|block| block.experts.is_some())
    }

    /// Returns names and values of the tensors of [`Experts::correction`], block by block.
    pub fn corrections(&self) -> impl Iterator<Item = (String, &[f32])> {
        self.blocks.iter().enumerate().filter_map(|(layer, block)| {
            let experts = block.experts.as_ref()?;
            Some((experts.correction_name(layer)?, &experts.correction[..]))
        })
    }
}
