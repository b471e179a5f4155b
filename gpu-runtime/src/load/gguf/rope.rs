//! Rotary scaling of a GGUF file, in the spelling of `config.json`.

use serde_json::{Map, Value, json};

use super::metadata::GgufFile;
use super::names::{ROPE_FREQS, ROPE_LONG, ROPE_SHORT};
use super::own::Own;
use super::tensors::GgufSource;
use crate::config::LoadError;

/// The family with latent attention, and the one whose queries are scaled by position.
const LATENT: &str = "deepseek2";
const SCALED_QUERIES: &str = "mistral3";

/// Llama 3's ramp; llama.cpp stores only the factors that follow from it.
const LOW: f64 = 1.0;
const HIGH: f64 = 4.0;
const ORIGINAL_CONTEXT: u64 = 8192;

/// The value of `rope_scaling`: null if the frequencies are as trained.
pub(super) fn scaling(
    file: &GgufFile,
    arch: &'static str,
    theta: f64,
    tensors: &GgufSource,
) -> Result<Value, LoadError> {
    if let Some(factors) = tensors.rope_factors(ROPE_FREQS)? {
        return llama3(file, arch, theta, &factors);
    }
    match [ROPE_SHORT, ROPE_LONG].map(|name| tensors.rope_factors(name)) {
        [Ok(None), Ok(None)] => {}
        [Ok(Some(short)), Ok(Some(long))] => return longrope(&Own { file, arch }, &short, &long),
        [Ok(None), Ok(Some(_))] => return Err(LoadError::MissingTensor(ROPE_SHORT.to_owned())),
        [Ok(Some(_)), Ok(None)] => return Err(LoadError::MissingTensor(ROPE_LONG.to_owned())),
        [Err(error), _] | [_, Err(error)] => return Err(error),
    }
    let kind = file.text(&format!("{arch}.rope.scaling.type"))?.unwrap_or("none");
    let factor = match file.number(&format!("{arch}.rope.scaling.factor"))? {
        Some(factor) => Some(factor),
        None => file.number(&format!("{arch}.rope.scale_linear"))?,
    };
    match (kind, factor) {
        // Files without a type are scaled linearly if they have a factor.
        ("none", None) => Ok(Value::Null),
        ("none", Some(1.0)) => Ok(Value::Null),
        ("linear", Some(factor)) => Ok(json!({"rope_type": "linear", "factor": factor})),
        ("none", Some(factor)) if file.value(&format!("{arch}.rope.scaling.type")).is_none() => {
            Ok(json!({"rope_type": "linear", "factor": factor}))
        }
        ("none", Some(_)) => Ok(Value::Null),
        ("yarn", Some(factor)) => yarn(file, arch, factor),
        ("linear" | "yarn", None) => Err(file.malformed(format!("metadata key {arch}.rope.scaling.factor is missing"))),
        (other, _) => {
            Err(LoadError::Unsupported(format!("rope scaling {other:?} (supported: none, linear, llama3, yarn)")))
        }
    }
}

/// LongRoPE (Ding et al. 2024, arXiv:2402.13753). The scale of rotated vectors is written where it is not the recommended one.
fn longrope(own: &Own<'_>, short: &[f32], long: &[f32]) -> Result<Value, LoadError> {
    let original = own.positive("rope.scaling.original_context_length")?;
    let stretched = own.required("context_length")? as f64 / original as f64;
    let recommended = if stretched <= 1.0 { 1.0 } else { (1.0 + stretched.ln() / (original as f64).ln()).sqrt() };
    let written = own.number("rope.scaling.attn_factor")?.unwrap_or(1.0);
    let mut scaling = Map::new();
    scaling.insert("rope_type".into(), "longrope".into());
    scaling.insert("short_factor".into(), short.iter().copied().map(decimal).collect());
    scaling.insert("long_factor".into(), long.iter().copied().map(decimal).collect());
    scaling.insert("original_max_position_embeddings".into(), original.into());
    if !is_stored_as(recommended, written) {
        scaling.insert("attention_factor".into(), written.into());
    }
    Ok(Value::Object(scaling))
}

/// The number that was meant before it was stored in single precision.
fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Whether a number that was stored in single precision was this one.
fn is_stored_as(value: f64, stored: f64) -> bool {
    value as f32 == stored as f32
}

/// YaRN (Peng et al. 2023, arXiv:2309.00071), with the scale of rotated vectors that it recommends. Files of latent attention
/// say what queries and keys are scaled by, as a tenth of `mscale_all_dim`; rotated vectors are not scaled then. Files of
/// Ministral 3 have `mscale_all_dim` itself, beside an `mscale` of 1.
fn yarn(file: &GgufFile, arch: &str, factor: f64) -> Result<Value, LoadError> {
    let key = |name: &str| format!("{arch}.rope.scaling.{name}");
    let recommended = 0.1 * factor.max(1.0).ln() + 1.0;
    for name in ["yarn_ext_factor", "yarn_attn_factor", "attn_factor"] {
        let is_usual = |found: f64| found == 1.0 || (name == "yarn_attn_factor" && is_stored_as(recommended, found));
        if let Some(found) = file.number(&key(name))?.filter(|found| !is_usual(*found)) {
            return Err(LoadError::Unsupported(format!("{} {found} (supported: 1)", key(name))));
        }
    }
    let mut scaling = Map::new();
    scaling.insert("rope_type".into(), "yarn".into());
    scaling.insert("factor".into(), factor.into());
    if let Some(original) = file.integer(&key("original_context_length"))? {
        scaling.insert("original_max_position_embeddings".into(), original.into());
    }
    for (name, setting) in [("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")] {
        if let Some(value) = file.number(&key(name))? {
            scaling.insert(setting.into(), value.into());
        }
    }
    if let Some(tenth) = file.number(&key("yarn_log_multiplier"))?.filter(|tenth| *tenth != 0.0) {
        if ![LATENT, SCALED_QUERIES].contains(&arch) {
            return Err(LoadError::Unsupported(format!("{} {tenth} (supported: 0)", key("yarn_log_multiplier"))));
        }
        // In as many digits as single precision has, in which it was stored.
        let scale = if arch == LATENT { decimal((tenth * 10.0) as f32) } else { tenth.into() };
        scaling.insert("mscale".into(), if arch == LATENT { scale.clone() } else { Value::from(1.0) });
        scaling.insert("mscale_all_dim".into(), scale);
    }
    Ok(Value::Object(scaling))
}

/// Recognises the factors of Llama 3; any others (longrope, a hand-made table) are refused.
fn llama3(file: &GgufFile, arch: &str, theta: f64, factors: &[f32]) -> Result<Value, LoadError> {
    let original = file.integer(&format!("{arch}.rope.scaling.original_context_length"))?.unwrap_or(ORIGINAL_CONTEXT);
    let factor = factors.iter().fold(1.0_f64, |most, &f| most.max(f64::from(f)));
    let agrees = |(pair, &found): (usize, &f32)| {
        let exponent = 2.0 * pair as f64 / (2.0 * factors.len() as f64);
        let wavelength = std::f64::consts::TAU * theta.powf(exponent);
        let smooth = ((original as f64 / wavelength - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        let expected = 1.0 / ((1.0 - smooth) / factor + smooth);
        (f64::from(found) - expected).abs() <= 1e-3 * expected
    };
    if !factors.iter().enumerate().all(agrees) {
        return Err(LoadError::Unsupported("rope_freqs.weight with factors other than Llama 3's".into()));
    }
    if factor == 1.0 {
        return Ok(Value::Null);
    }
    Ok(json!({
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": LOW,
        "high_freq_factor": HIGH,
        "original_max_position_embeddings": original,
    }))
}
