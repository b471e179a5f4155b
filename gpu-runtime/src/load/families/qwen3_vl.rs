//! Qwen3-VL (Qwen Team 2025, arXiv:2511.21631): Qwen3's blocks, dense or with experts, behind a vision tower whose features are
//! also added to the first blocks' output.

use super::common::text_config;
use super::{qwen3, qwen3_moe, vision_qwen};
use crate::config::{Block, ExpertStorage, LoadError, ModelConfig, RouterRule, Spelling};
use crate::load::keys::Keys;

/// Frequencies of time, row and column, unless a configuration sets others.
const SECTIONS: [usize; 3] = [24, 20, 20];
/// Base of the frequencies, unless a configuration sets another.
const THETA: f64 = 500_000.0;

pub(super) fn dense(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let text = text_config(&keys)?;
    with_tower(&keys, &text, ModelConfig { arch: "qwen3_vl", ..qwen3::config(text)? })
}

pub(super) fn experts(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let text = text_config(&keys)?;
    let mut config = ModelConfig { arch: "qwen3_vl_moe", ..qwen3_moe::config(text)? };
    for experts in config.blocks.iter_mut().filter_map(|block: &mut Block| block.experts.as_mut()) {
        experts.rule = RouterRule::softmax(experts.rule.per_token, true);
        // As in released files.
        experts.storage = ExpertStorage::Columns;
    }
    with_tower(&keys, &text, config)
}

fn with_tower(keys: &Keys<'_>, text: &Keys<'_>, mut config: ModelConfig) -> Result<ModelConfig, LoadError> {
    let tied = keys.flag("tie_word_embeddings")?;
    config.tie_word_embeddings = tied.unwrap_or(config.tie_word_embeddings);
    config.spelling = Spelling { prefixes: vision_qwen::PREFIXES, ..config.spelling };
    config.ropes = vec![super::rope::with_theta(text, THETA)?];
    vision_qwen::with_tower(keys, text, config, SECTIONS, true)
}
