//! Rotary scaling of a GGUF file, in the spelling of `config.json`.

use serde_json::{Value, json};

use super::metadata::GgufFile;
use crate::config::LoadError;

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
        ("linear", None) => Err(file.malformed(format!("metadata key {arch}.rope.scaling.factor is missing"))),
        (other, _) => Err(LoadError::Unsupported(format!("rope scaling {other:?} (supported: none, linear, llama3)"))),
    }
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
