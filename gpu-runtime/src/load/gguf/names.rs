//! llama.cpp's tensor names and their Hugging Face counterparts.

use super::architecture::Architecture;
use super::conversion::Form;
use crate::config::split_block;

/// Divisors of the rotary frequencies: those of Llama 3, and those of LongRoPE within and beyond the context of pre-training.
pub(super) const ROPE_FREQS: &str = "rope_freqs.weight";
pub(super) const ROPE_SHORT: &str = "rope_factors_short.weight";
pub(super) const ROPE_LONG: &str = "rope_factors_long.weight";

/// Tensors of a block whose extents llama.cpp's converter changes.
const FORMS: [(&str, Form); 8] = [
    ("conv.conv.weight", Form::Kernel),
    ("linear_attn.A_log", Form::Vector),
    ("linear_attn.conv1d.weight", Form::Kernel),
    ("mixer.A_log", Form::Vector),
    ("mixer.D", Form::Vector),
    ("mixer.conv1d.weight", Form::Kernel),
    ("mixer.norm.weight", Form::Vector),
    ("mlp.shared_expert_gate.weight", Form::Row),
];

/// Tensors of a block that are not the weight or bias of a module in Hugging Face's folders.
const WHOLE: [(&str, &str); 2] =
    [("attn_sinks.weight", "self_attn.sinks"), ("exp_probs_b.bias", "mlp.gate.e_score_correction_bias")];

/// Whether a tensor has divisors of rotary frequencies, which are not parameters.
pub(super) fn is_rope(family: &Architecture, name: &str) -> bool {
    name == ROPE_FREQS || (family.has_long_factors && [ROPE_SHORT, ROPE_LONG].contains(&name))
}

/// Number of the block that a tensor of the file belongs to.
pub(super) fn block(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

/// Extents of a tensor in Hugging Face's folders, by its name there, where they differ from those of the file.
pub(super) fn form(canonical: &str) -> Option<Form> {
    let (_, rest) = split_block(canonical)?;
    FORMS.iter().find(|(name, _)| *name == rest).map(|(_, form)| *form)
}

/// The Hugging Face name of a tensor, without the number of an expert if it holds all of them; `None` for a tensor that
/// the family does not have.
pub(super) fn canonical(family: &Architecture, name: &str) -> Option<String> {
    match name {
        "token_embd.weight" => return Some("model.embed_tokens.weight".to_owned()),
        name if name == family.final_norm => return Some("model.norm.weight".to_owned()),
        "output.weight" => return Some("lm_head.weight".to_owned()),
        _ => {}
    }
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let layer: u32 = layer.parse().ok()?;
    if let Some((_, own)) = family.whole.iter().chain(&WHOLE).find(|(name, _)| *name == rest) {
        return Some(format!("model.layers.{layer}.{own}"));
    }
    let (module, parameter) = rest.rsplit_once('.')?;
    if !matches!(parameter, "weight" | "bias") {
        return None;
    }
    let module = family.module(module)?;
    Some(format!("model.layers.{layer}.{module}.{parameter}"))
}
