//! llama.cpp's tensor names and their Hugging Face counterparts.

use super::architecture::Architecture;

/// Tensors of a block that are not the weight or bias of a module in Hugging Face's folders.
const WHOLE: [(&str, &str); 2] =
    [("attn_sinks.weight", "self_attn.sinks"), ("exp_probs_b.bias", "mlp.gate.e_score_correction_bias")];

/// The Hugging Face name of a tensor, without the number of an expert if it holds all of them; `None` for a tensor that
/// the family does not have.
pub(super) fn canonical(family: &Architecture, name: &str) -> Option<String> {
    match name {
        "token_embd.weight" => return Some("model.embed_tokens.weight".to_owned()),
        "output_norm.weight" => return Some("model.norm.weight".to_owned()),
        "output.weight" => return Some("lm_head.weight".to_owned()),
        _ => {}
    }
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let layer: u32 = layer.parse().ok()?;
    if let Some((_, own)) = WHOLE.iter().find(|(name, _)| *name == rest) {
        return Some(format!("model.layers.{layer}.{own}"));
    }
    let (module, parameter) = rest.rsplit_once('.')?;
    if !matches!(parameter, "weight" | "bias") {
        return None;
    }
    let module = family.module(module)?;
    Some(format!("model.layers.{layer}.{module}.{parameter}"))
}
