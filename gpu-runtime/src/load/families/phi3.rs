//! Phi-3, Phi-3.5 and Phi-4 (Microsoft 2024, arXiv:2404.14219): Llama with fused projections, heads that may be rotated in part, and
//! contexts that are stretched by a factor for each frequency.

use super::common::{Defaults, base, rms_norm_eps, window, with_blocks};
use super::rope;
use crate::config::{Attention, FusedRows, LoadError, ModelConfig, Spelling};
use crate::load::keys::Keys;

const FUSED: &[FusedRows] = &[
    FusedRows { module: "self_attn.qkv_proj", parts: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"] },
    FusedRows { module: "mlp.gate_up_proj", parts: &["mlp.gate_proj", "mlp.up_proj"] },
];

pub(super) fn config(keys: Keys<'_>) -> Result<ModelConfig, LoadError> {
    let base = base(&keys, &Defaults { arch: "phi3", kv_heads: None, head_dim: None })?;
    let window = if keys.is_written("sliding_window") { window(&keys)? } else { None };
    let config = ModelConfig {
        rms_norm_eps: rms_norm_eps(&keys, 1e-5)?,
        rotary_dim: rope::rotary_dim(&keys, base.head_dim, 1.0)?,
        spelling: Spelling { fused: FUSED, ..Spelling::default() },
        ..base
    };
    Ok(with_blocks(config, |_, block| block.mixer = Some(Attention { window, ..Attention::default() }.into())))
}
