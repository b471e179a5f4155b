//! Llama, Llama 3 and models with the same configuration (SmolLM2).

use super::common::{Defaults, base, with_blocks};
use crate::config::{Biases, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "llama", kv_heads: None, head_dim: None })?;
    let attention = keys.flag("attention_bias")?.unwrap_or(false);
    let biases = Biases { qkv: attention, o: attention, mlp: keys.flag("mlp_bias")?.unwrap_or(false), router: false };
    Ok(with_blocks(base, |_, block| block.biases = biases))
}
