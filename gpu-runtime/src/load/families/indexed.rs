//! GLM-5 (`glm_moe_dsa`) and DeepSeek-V3.2 (`deepseek_v32`; DeepSeek-AI 2025, arXiv:2512.02556): DeepSeek-V3's blocks, in which a
//! query attends to the `index_topk` positions that an indexer chooses. Indexers are never trained: their tensors are kept for
//! checkpoints.

use super::deepseek_v3::{self, Routing};
use crate::config::{Indexer, LoadError, ModelConfig, Spelling};
use crate::load::keys::Keys;

const GLM: Routing = Routing { groups: 1, chosen_groups: 1, scaling: 2.5, dense_blocks: 3 };
/// Defaults of keys that a configuration omits.
const CHOSEN: usize = 2048;
const HEAD_DIM: usize = 128;
const SHARED_EVERY: usize = 1;
const SHARED_OFFSET: usize = 2;
const KEPT: &[&str] = &[Indexer::PREFIX];

/// A family's defaults of keys about indexers.
struct Defaults {
    heads: usize,
    interleaved: bool,
}

pub(super) fn glm(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let defaults = Defaults { heads: 32, interleaved: true };
    of(&keys, "glm_moe_dsa", deepseek_v3::with_routing(&keys, &GLM)?, &defaults)
}

pub(super) fn deepseek(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let defaults = Defaults { heads: 64, interleaved: false };
    of(&keys, "deepseek_v32", deepseek_v3::with_routing(&keys, &deepseek_v3::ROUTING)?, &defaults)
}

fn of(keys: &Keys<'_>, arch: &'static str, base: ModelConfig, defaults: &Defaults) -> Result<ModelConfig, LoadError> {
    check_layers(keys, &base)?;
    let spelling = Spelling { kept_in_blocks: KEPT, ..base.spelling.clone() };
    let indexer = indexer(keys, &base, defaults)?;
    // Among no more positions than are chosen, a query attends to all of them.
    let indexer = Some(indexer).filter(|indexer| indexer.count < base.max_position_embeddings);
    Ok(ModelConfig { arch, indexer, spelling, ..base })
}

fn indexer(keys: &Keys<'_>, base: &ModelConfig, defaults: &Defaults) -> Result<Indexer, LoadError> {
    let size = |key: &str, default: usize| if keys.is_written(key) { keys.required_size(key) } else { Ok(default) };
    let (count, dim) = (size("index_topk", CHOSEN)?, size("index_head_dim", HEAD_DIM)?);
    let (rotated, queries) = base.latent.map_or((0, None), |latent| (latent.rope_dim, latent.query_rank));
    if dim < rotated {
        return Err(keys.malformed(format!("index_head_dim is {dim}, less than qk_rope_head_dim, {rotated}")));
    }
    if queries.is_none() {
        return Err(LoadError::Unsupported("q_lora_rank null (supported: a number, with index_topk)".to_owned()));
    }
    Ok(Indexer {
        count,
        heads: size("index_n_heads", defaults.heads)?,
        dim,
        interleaved: keys.flag("indexer_rope_interleave")?.unwrap_or(defaults.interleaved),
        layers: layers(keys, base.num_layers())?,
    })
}

/// Whether each block has an indexer of its own: `indexer_types`, else `index_topk_pattern`, else by `index_topk_freq` and
/// `index_skip_topk_offset`.
fn layers(keys: &Keys<'_>, count: usize) -> Result<Vec<bool>, LoadError> {
    let (key, layers) = if let Some(types) = keys.list("indexer_types")? {
        let is_full = |kind: &serde_json::Value| match kind.as_str() {
            Some("full") => Ok(true),
            Some("shared") => Ok(false),
            _ => Err(LoadError::Unsupported(format!("indexer_types {kind} (supported: full, shared)"))),
        };
        ("indexer_types", types.iter().map(is_full).collect::<Result<Vec<_>, _>>()?)
    } else if let Some(pattern) = keys.text("index_topk_pattern")? {
        let is_full = |kind: char| match kind {
            'F' => Ok(true),
            'S' => Ok(false),
            _ => Err(LoadError::Unsupported(format!("index_topk_pattern {kind:?} (supported: F, S)"))),
        };
        ("index_topk_pattern", pattern.chars().map(is_full).collect::<Result<Vec<_>, _>>()?)
    } else {
        let freq = match keys.is_written("index_topk_freq") {
            true => keys.required_size("index_topk_freq")?,
            false => SHARED_EVERY,
        };
        let offset = keys.size("index_skip_topk_offset")?.unwrap_or(SHARED_OFFSET);
        let is_full = |layer: usize| (layer + 1).saturating_sub(offset).is_multiple_of(freq);
        ("index_topk_freq", (0..count).map(is_full).collect())
    };
    if layers.len() != count {
        return Err(keys.malformed(format!("{key} has {} entries for {count} layers", layers.len())));
    }
    match layers.first() {
        Some(false) => {
            Err(keys.malformed(format!("{key}: layer 0 is shared, but a shared layer needs a full layer before it")))
        }
        _ => Ok(layers),
    }
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
            "mlp_layer_types of layer {layer} (supported: {}, as set by first_k_dense_replace)",
            expected(layer)
        ))),
    }
}
