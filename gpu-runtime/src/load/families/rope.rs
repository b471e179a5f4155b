//! Rotary embedding in both spellings: `rope_parameters`, or `rope_theta` with `rope_scaling`.

use crate::config::{LoadError, RopeConfig, RopeScaling};
use crate::load::keys::Keys;

/// The rotary embedding of families that have one for all layers.
pub(super) fn config(keys: &Keys<'_>) -> Result<RopeConfig, LoadError> {
    let parameters = match keys.object("rope_parameters")? {
        Some(parameters) => Some(parameters),
        None => keys.object("rope_scaling")?,
    };
    parse(keys, parameters, "rope_theta", 10_000.0)
}

/// From an object of parameters, if there is one; what it does not say is in the outer object, the base under `theta_key`.
pub(super) fn parse(
    keys: &Keys<'_>,
    parameters: Option<Keys<'_>>,
    theta_key: &str,
    default_theta: f64,
) -> Result<RopeConfig, LoadError> {
    for keys in parameters.iter().chain([keys]) {
        if let Some(part) = keys.number("partial_rotary_factor")?.filter(|&part| part != 1.0) {
            return Err(LoadError::Unsupported(format!("partial_rotary_factor {part} (supported: 1)")));
        }
    }
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
    let kind = match rope.text("rope_type")? {
        Some(kind) => kind,
        None => rope.text("type")?.unwrap_or("default"),
    };
    let given = |key| rope.required_number(key).and_then(|value| positive(rope, key, value));
    match kind {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear { factor: given("factor")? }),
        "llama3" => {
            let (low, high) = (given("low_freq_factor")?, given("high_freq_factor")?);
            if high <= low {
                return Err(rope.malformed(format!("high_freq_factor {high} is not above low_freq_factor {low}")));
            }
            let original = match rope.size("original_max_position_embeddings")? {
                Some(original) if original > 0 => original,
                _ => outer.required_size("max_position_embeddings")?,
            };
            Ok(RopeScaling::Llama3 {
                factor: given("factor")?,
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_position_embeddings: original,
            })
        }
        other => Err(LoadError::Unsupported(format!("rope scaling {other:?} (supported: default, linear, llama3)"))),
    }
}

fn positive(keys: &Keys<'_>, key: &str, value: f64) -> Result<f64, LoadError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(keys.malformed(format!("{key} is {value}"))) }
}
