//! Qwen3: RMSNorm on q and k heads, and a head width of its own.

use super::common::{Defaults, base, qwen_windows, with_blocks};
use crate::config::{Attention, Biases, HeadNorms, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "qwen3", kv_heads: Some(32), head_dim: Some(128) })?;
    let attention = keys.flag("attention_bias")?.unwrap_or(false);
    let windows = qwen_windows(&keys, base.num_layers())?;
    Ok(with_blocks(base, |layer, block| {
        block.mixer =
            Some(Attention { head_norms: HeadNorms::Heads, window: windows[layer], ..Attention::default() }.into());
        block.biases = Biases { qkv: attention, o: attention, ..Biases::default() };
    }))
}
