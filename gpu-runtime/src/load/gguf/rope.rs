//! Rotary scaling of a GGUF file, in the spelling of `config.json`.

use serde_json::{Map, Value, json};

use super::metadata::GgufFile;
use crate::config::LoadError;

/// The family with latent attention.
const LATENT: &str = "deepseek2";

/// Llama 3's ramp; llama.cpp stores only the factors that follow from it.
const LOW: f64 = 1.0;
const HIGH: f64 = 4.0;
const ORIGINAL_CONTEXT: u64 = 8192;

/// The value of `rope_scaling`: null if the frequencies are as trained.
pub(super) fn scaling(file: &GgufFile, arch: &str, theta: f64, factors: Option<&[f32]>) -> Result<Value, LoadError> {
    if let Some(factors) = factors {
        return llama3(file, arch, theta, factors);
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

/// YaRN (Peng et al. 2023, arXiv:2309.00071), with the scale of rotated vectors that it recommends. Files of latent attention
/// say what queries and keys are scaled by, as a tenth of `mscale_all_dim`; rotated vectors are not scaled then.
fn yarn(file: &GgufFile, arch: &str, factor: f64) -> Result<Value, LoadError> {
    let key = |name: &str| format!("{arch}.rope.scaling.{name}");
    for name in ["yarn_ext_factor", "yarn_attn_factor", "attn_factor"] {
        if let Some(found) = file.number(&key(name))?.filter(|found| *found != 1.0) {
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
        if arch != LATENT {
            return Err(LoadError::Unsupported(format!("{} {tenth} (supported: 0)", key("yarn_log_multiplier"))));
        }
        // In as many digits as single precision has, in which it was stored.
        let scale = ((tenth * 10.0) as f32).to_string().parse::<f64>().unwrap_or(tenth * 10.0);
        scaling.insert("mscale".into(), scale.into());
        scaling.insert("mscale_all_dim".into(), scale.into());
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
