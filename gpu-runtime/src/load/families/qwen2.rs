//! Qwen2 and Qwen2.5: biases on q, k and v.

use super::common::{Defaults, base, qwen_windows, with_blocks};
use crate::config::{Attention, Biases, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "qwen2", kv_heads: Some(32), head_dim: None })?;
    let windows = qwen_windows(&keys, base.num_layers())?;
    Ok(with_blocks(base, |layer, block| {
        block.mixer = Some(Attention { window: windows[layer], ..Attention::default() }.into());
        block.biases = Biases { qkv: true, ..Biases::default() };
    }))
}
