//! Llama, Llama 3 and what shares their configuration (SmolLM2).

use super::{Defaults, base};
use crate::config::{Arch, LoadError, ModelConfig};
use crate::load::keys::Keys;

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: Arch::Llama, kv_heads: None, head_dim: None })?;
    let attention_bias = keys.flag("attention_bias")?.unwrap_or(false);
    Ok(ModelConfig {
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        mlp_bias: keys.flag("mlp_bias")?.unwrap_or(false),
        ..base
    })
}
