//! Conversions by llama.cpp's converter, as data: names, extents and values that differ from the Hugging Face folder that a
//! file was made from.

use serde_json::{Map, Value};

use super::metadata::GgufFile;
use crate::config::LoadError;

/// Settings of `config.json` that a family has in addition to the common ones.
type Settings = fn(&GgufFile, &mut Map<String, Value>) -> Result<(), LoadError>;

/// Elements of a head that are rotated by their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rotation {
    /// All elements of a head.
    Whole,
    /// The first elements of a head; the file has their number.
    Part,
    /// Attention has no positions.
    None,
}

/// A module of a block whose rows are those of two modules of a file, one after the other.
pub(super) struct JoinedRows {
    pub(super) whole: &'static str,
    pub(super) parts: [&'static str; 2],
}

/// A family in GGUF files.
pub(super) struct Architecture {
    /// `general.architecture`, and the prefix of its metadata keys.
    pub(super) name: &'static str,
    /// `model_type` in Hugging Face's spelling.
    pub(super) model_type: &'static str,
    /// Class of the model in `transformers`.
    pub(super) class: &'static str,
    /// llama.cpp's names of tensors within a block that are not the weight or bias of a module there, and Hugging Face's.
    pub(super) whole: &'static [(&'static str, &'static str)],
    /// llama.cpp's module names within a block and Hugging Face's, where they differ from [`COMMON_MODULES`].
    pub(super) modules: &'static [(&'static str, &'static str)],
    /// Modules whose rows a file has in two modules of a block: both names as in Hugging Face's folders.
    pub(super) joined: &'static [JoinedRows],
    /// Name of the norm behind the last block.
    pub(super) final_norm: &'static str,
    /// Whether the halves of each head's q and k rows are interleaved.
    pub(super) interleaves_heads: bool,
    /// Whether 1 was added to the weights of norms.
    pub(super) adds_one_to_norms: bool,
    /// Whether value heads of recurrences are sorted by their number within a group before their key head.
    pub(super) tiles_value_heads: bool,
    pub(super) rotation: Rotation,
    /// Whether files have divisors of rotary frequencies for contexts within and beyond that of pre-training.
    pub(super) has_long_factors: bool,
    /// Whether the last blocks of files may be those that only predict further tokens.
    pub(super) predicts_further: bool,
    /// Whether files have a number of key heads for each block, which is 0 where a block has no attention.
    pub(super) has_heads_by_block: bool,
    /// Whether there may be blocks with an MLP in place of experts.
    pub(super) has_mlp: bool,
    /// Settings that are true if some block has a tensor of this name.
    pub(super) tensor_settings: &'static [(&'static str, &'static str)],
    /// Whether blocks have experts.
    pub(super) has_experts: bool,
    /// Whether queries, keys and values come from latents; heads have extents of their own then.
    pub(super) has_latent_attention: bool,
    pub(super) settings: Settings,
}

/// Modules of a block that most families have: llama.cpp's name, Hugging Face's name.
pub(super) const COMMON_MODULES: [(&str, &str); 11] = [
    ("attn_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

pub(super) const ATTENTION_BIAS: (&str, &str) = ("attention_bias", "self_attn.q_proj.bias");
pub(super) const MLP_BIAS: (&str, &str) = ("mlp_bias", "mlp.up_proj.bias");

/// Llama, which other families are described by their differences from.
pub(super) const LLAMA: Architecture = Architecture {
    name: "llama",
    model_type: "llama",
    class: "LlamaForCausalLM",
    whole: &[],
    modules: &[],
    joined: &[],
    final_norm: "output_norm.weight",
    interleaves_heads: true,
    adds_one_to_norms: false,
    tiles_value_heads: false,
    rotation: Rotation::Whole,
    has_long_factors: false,
    predicts_further: false,
    has_heads_by_block: false,
    has_mlp: true,
    tensor_settings: &[ATTENTION_BIAS, MLP_BIAS],
    has_experts: false,
    has_latent_attention: false,
    settings: |_, _| Ok(()),
};

impl Architecture {
    /// Hugging Face's name of a module within a block.
    pub(super) fn module(&self, name: &str) -> Option<&'static str> {
        let of = |modules: &'static [(&str, &str)]| modules.iter().find(|(own, _)| *own == name).map(|(_, hf)| *hf);
        of(self.modules).or_else(|| of(&COMMON_MODULES))
    }
}
