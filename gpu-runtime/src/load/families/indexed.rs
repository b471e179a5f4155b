//! GLM-5 (`glm_moe_dsa`) and DeepSeek-V3.2 (DeepSeek-AI 2025, arXiv:2512.02556): DeepSeek-V3's blocks, in which a query attends to the
//! `index_topk` positions that an indexer chooses. Among so few positions it attends to all of them, so the context ends there, and
//! the indexer's tensors are kept for checkpoints only.

use super::deepseek_v3::{self, Routing};
use crate::config::{LoadError, ModelConfig, Spelling};
use crate::load::keys::Keys;

const GLM: Routing = Routing { groups: 1, chosen_groups: 1, scaling: 2.5, dense_blocks: 3 };
/// Positions that a query attends to, unless a configuration sets another number.
const CHOSEN: usize = 2048;
const KEPT: &[&str] = &["self_attn.indexer."];

pub(super) fn glm(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    of(&keys, "glm_moe_dsa", deepseek_v3::with_routing(&keys, &GLM)?)
}

pub(super) fn deepseek(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    of(&keys, "deepseek_v32", deepseek_v3::with_routing(&keys, &deepseek_v3::ROUTING)?)
}

fn of(keys: &Keys<'_>, arch: &'static str, base: ModelConfig) -> Result<ModelConfig, LoadError> {
    check_layers(keys, &base)?;
    let chosen = if keys.is_written("index_topk") { keys.required_size("index_topk")? } else { CHOSEN };
    if chosen < base.max_position_embeddings {
        tracing::warn!(
            context = chosen,
            "{arch}: a longer context needs the indexer, which is not supported; the context ends at index_topk"
        );
    }
    let spelling = Spelling { kept_in_blocks: KEPT, ..base.spelling.clone() };
    let max_position_embeddings = base.max_position_embeddings.min(chosen);
    Ok(ModelConfig { arch, max_position_embeddings, spelling, ..base })
}

/// Refuses an `mlp_layer_types` that differs from what `first_k_dense_replace` says.
fn check_layers(keys: &Keys<'_>, config: &ModelConfig) -> Result<(), LoadError> {
    let Some(types) = keys.list("mlp_layer_types")? else { return Ok(()) };
    let expected = |layer: usize| if config.blocks[layer].experts.is_some() { "sparse" } else { "dense" };
    let differs = (0..config.num_layers()).find(|layer| types.get(*layer).is_none_or(|kind| kind != expected(*layer)));
    match differs {
        None if types.len() == config.num_layers() => Ok(()),
        None => Err(keys.malformed(format!(
            "mlp_layer_types has {} entries for {} layers",
            types.len(),
            config.num_layers()
        ))),
        Some(layer) => Err(LoadError::Unsupported(format!(
            "mlp_layer_types of layer {layer} (supported: {}, as first_k_dense_replace says)",
            expected(layer)
        ))),
    }
}
