//! Rotary embedding in both spellings: `rope_parameters`, or `rope_theta` with `rope_scaling`.

use serde_json::Value;

use crate::config::{LoadError, QueryScaling, RopeConfig, RopeScaling};
use crate::load::keys::Keys;

/// The rotary embedding of families that have one for all layers.
pub(super) fn config(keys: &Keys<'_>) -> Result<RopeConfig, LoadError> {
    with_theta(keys, 10_000.0)
}

/// The same with the family's default of the base.
pub(super) fn with_theta(keys: &Keys<'_>, default: f64) -> Result<RopeConfig, LoadError> {
    parse(keys, parameters(keys)?, "rope_theta", default)
}

/// The factor of queries by position, where `llama_4_scaling_beta` sets one.
pub(super) fn query_scaling(keys: &Keys<'_>) -> Result<Option<QueryScaling>, LoadError> {
    let Some(rope) = parameters(keys)? else { return Ok(None) };
    let Some(beta) = rope.number("llama_4_scaling_beta")?.filter(|beta| *beta != 0.0) else { return Ok(None) };
    if !beta.is_finite() {
        return Err(rope.malformed(format!("llama_4_scaling_beta is {beta}")));
    }
    Ok(Some(QueryScaling { beta, original: original_positions(keys, &rope)? }))
}

/// Parameters of the rotary embedding, under either name.
fn parameters<'k>(keys: &Keys<'k>) -> Result<Option<Keys<'k>>, LoadError> {
    match keys.object("rope_parameters")? {
        Some(parameters) => Ok(Some(parameters)),
        None => keys.object("rope_scaling"),
    }
}

/// Elements of a head of `head_dim` that are rotated: all of them, or a part of them from the first one on. The factor is `default`
/// unless it is written.
pub(super) fn rotary_dim(keys: &Keys<'_>, head_dim: usize, default: f64) -> Result<Option<usize>, LoadError> {
    let inner = parameters(keys)?.map(|p| p.number("partial_rotary_factor")).transpose()?.flatten();
    let factor = match inner {
        Some(factor) => factor,
        None => keys.number("partial_rotary_factor")?.unwrap_or(default),
    };
    let rotated = (head_dim as f64 * factor) as usize;
    if !(factor > 0.0 && factor <= 1.0) || rotated < 2 || !rotated.is_multiple_of(2) {
        return Err(keys.malformed(format!(
            "partial_rotary_factor is {factor}, expected a part of heads of {head_dim} that has an even number of elements"
        )));
    }
    Ok((rotated < head_dim).then_some(rotated))
}

/// Refuses a partial rotation, in families that rotate whole heads.
pub(super) fn refuse_partial_rotation(keys: &Keys<'_>) -> Result<(), LoadError> {
    for keys in parameters(keys)?.iter().chain([keys]) {
        if let Some(part) = keys.number("partial_rotary_factor")?.filter(|&part| part != 1.0) {
            return Err(LoadError::Unsupported(format!("partial_rotary_factor {part} (supported: 1)")));
        }
    }
    Ok(())
}

/// Factor of queries and keys by `mscale_all_dim`, in families that apply it to all of their elements; 1 where contexts
/// are not stretched.
pub(super) fn scale_of_all_dimensions(keys: &Keys<'_>) -> Result<f64, LoadError> {
    let Some(rope) = parameters(keys)? else { return Ok(1.0) };
    let Some(scale) = rope.number("mscale_all_dim")?.filter(|scale| *scale != 0.0) else { return Ok(1.0) };
    if kind(&rope)? == "default" {
        return Ok(1.0);
    }
    let factor = rope.required_number("factor").and_then(|value| positive(&rope, "factor", value))?;
    positive(&rope, "mscale_all_dim", yarn_scale(factor, scale))
}

/// The scaling that is named.
fn kind<'k>(rope: &Keys<'k>) -> Result<&'k str, LoadError> {
    match rope.text("rope_type")? {
        Some(kind) => Ok(kind),
        None => Ok(rope.text("type")?.unwrap_or("default")),
    }
}

/// YaRN's scale of rotated vectors for a context that is stretched by a factor.
fn yarn_scale(factor: f64, scale: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 }
}

/// Reads an object of parameters, if there is one; missing keys are read from the outer object, the base under
/// `theta_key`.
pub(super) fn parse(
    keys: &Keys<'_>,
    parameters: Option<Keys<'_>>,
    theta_key: &str,
    default_theta: f64,
) -> Result<RopeConfig, LoadError> {
    let inner_theta = parameters.map(|p| p.number("rope_theta")).transpose()?.flatten();
    let theta = match inner_theta {
        Some(theta) => theta,
        None => keys.number(theta_key)?.unwrap_or(default_theta),
    };
    positive(keys, theta_key, theta)?;
    let scaling = parameters.map_or(Ok(RopeScaling::None), |p| scaling(keys, &p))?;
    Ok(RopeConfig { theta, scaling })
}

fn scaling(outer: &Keys<'_>, rope: &Keys<'_>) -> Result<RopeScaling, LoadError> {
    let kind = kind(rope)?;
    let given = |key| rope.required_number(key).and_then(|value| positive(rope, key, value));
    match kind {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear { factor: given("factor")? }),
        "llama3" => {
            let (low, high) = (given("low_freq_factor")?, given("high_freq_factor")?);
            if high <= low {
                return Err(rope.malformed(format!("high_freq_factor {high} is not above low_freq_factor {low}")));
            }
            let original = original_positions(outer, rope)?;
            Ok(RopeScaling::Llama3 {
                factor: given("factor")?,
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_position_embeddings: original,
            })
        }
        "yarn" if rope.value("short_factor").is_none() => yarn(outer, rope),
        // Older files of Phi-3 name it otherwise.
        "longrope" | "su" | "yarn" => long(outer, rope),
        other => {
            let supported = "default, linear, llama3, yarn, longrope";
            Err(LoadError::Unsupported(format!("rope scaling {other:?} (supported: {supported})")))
        }
    }
}

/// YaRN, with the attention factor that it recommends unless one is written.
fn yarn(outer: &Keys<'_>, rope: &Keys<'_>) -> Result<RopeScaling, LoadError> {
    let number = |key, default| match rope.number(key)? {
        Some(value) => positive(rope, key, value),
        None => Ok(default),
    };
    let factor = rope.required_number("factor").and_then(|value| positive(rope, "factor", value))?;
    let recommended = |scale: f64| yarn_scale(factor, scale);
    let scales = [rope.number("mscale")?, rope.number("mscale_all_dim")?];
    let attention_factor = match (rope.number("attention_factor")?, scales) {
        (Some(value), _) => positive(rope, "attention_factor", value)?,
        (None, [Some(scale), Some(all)]) if scale != 0.0 && all != 0.0 => recommended(scale) / recommended(all),
        _ => recommended(1.0),
    };
    let (beta_fast, beta_slow) = (number("beta_fast", 32.0)?, number("beta_slow", 1.0)?);
    positive(rope, "attention_factor", attention_factor)?;
    Ok(RopeScaling::Yarn {
        factor,
        beta_fast,
        beta_slow,
        truncate: rope.flag("truncate")?.unwrap_or(true),
        attention_factor,
        original_max_position_embeddings: original_positions(outer, rope)?,
    })
}

/// LongRoPE within the context of pre-training, with the attention factor that it recommends unless one is written.
fn long(outer: &Keys<'_>, rope: &Keys<'_>) -> Result<RopeScaling, LoadError> {
    let list = rope.list("short_factor")?.ok_or_else(|| rope.malformed("short_factor is missing"))?;
    let factor = |value: &Value| match value.as_f64() {
        Some(factor) => positive(rope, "short_factor", factor),
        None => Err(rope.malformed(format!("short_factor has {value}, expected numbers"))),
    };
    let factors = list.iter().map(factor).collect::<Result<Vec<f64>, _>>()?;
    let original = original_positions(outer, rope)?;
    let stretched = match rope.number("factor")? {
        Some(factor) => positive(rope, "factor", factor)?,
        None => outer.required_size("max_position_embeddings")? as f64 / original as f64,
    };
    let attention_factor = match rope.number("attention_factor")? {
        Some(factor) => factor,
        None if stretched <= 1.0 => 1.0,
        None => (1.0 + stretched.ln() / (original as f64).ln()).sqrt(),
    };
    positive(rope, "attention_factor", attention_factor)?;
    Ok(RopeScaling::Long { factors, attention_factor, original_max_position_embeddings: original })
}

/// The context of pre-training: the model's own, unless written.
fn original_positions(outer: &Keys<'_>, rope: &Keys<'_>) -> Result<usize, LoadError> {
    for keys in [rope, outer] {
        if let Some(original) = keys.size("original_max_position_embeddings")?.filter(|original| *original > 0) {
            return Ok(original);
        }
    }
    outer.required_size("max_position_embeddings")
}

fn positive(keys: &Keys<'_>, key: &str, value: f64) -> Result<f64, LoadError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(keys.malformed(format!("{key} is {value}"))) }
}
