//! Keys of `adapter_config.json` that make PEFT compute something else than `W + (alpha / r) B A` on the base model's own `W`.

use serde_json::{Map, Value};

/// The keys, with the value that changes nothing. Neither do `null`, an empty list and an empty object.
const VARIANTS: [(&str, Option<&str>); 17] = [
    ("use_dora", Some("false")),
    ("use_qalora", Some("false")),
    ("use_bdlora", Some("false")),
    ("kasa_config", None),
    ("use_kasa", Some("false")),
    ("monteclora_config", None),
    ("lora_bias", Some("false")),
    ("fan_in_fan_out", Some("false")),
    ("bias", Some("\"none\"")),
    ("modules_to_save", None),
    ("rank_pattern", None),
    ("alpha_pattern", None),
    ("layer_replication", None),
    ("target_parameters", None),
    ("trainable_token_indices", None),
    ("alora_invocation_tokens", None),
    ("arrow_config", None),
];

/// How the matrices were first set. Methods that are not listed here (PiSSA, OLoRA, CorDA, LoftQ, …) also change the base
/// model, on which the adapter then stands.
const INITIALISATION: &str = "init_lora_weights";
const NEUTRAL: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// Whether the scale is `alpha / sqrt(r)` in place of `alpha / r`.
const RANK_STABILIZED: &str = "use_rslora";

/// A key at fault.
#[derive(Debug, PartialEq)]
pub(super) struct Variant<'a> {
    pub(super) key: &'static str,
    pub(super) found: &'a Value,
    /// Values that are supported.
    pub(super) expected: String,
}

/// The first key of a configuration with another value than LoRA has.
pub(super) fn variant(config: &Map<String, Value>) -> Option<Variant<'_>> {
    if let Some(found) = config.get(INITIALISATION).filter(|value| !is_neutral(value)) {
        let names = NEUTRAL.map(|name| format!("{name:?}")).join(", ");
        let expected = format!("true, false, {names}: other methods change the base model as well");
        return Some(Variant { key: INITIALISATION, found, expected });
    }
    let found = config.get(RANK_STABILIZED).filter(|value| !value.is_null() && !value.is_boolean());
    let stabilized = found.map(|found| Variant { key: RANK_STABILIZED, found, expected: "true or false".to_owned() });
    first_other(config, &VARIANTS).or(stabilized)
}

/// The alpha with which `alpha / r` is the scale of a configuration: `alpha sqrt(r)` if it asks for rank stabilisation
/// (Kalajdzievski 2023, arXiv:2312.03732).
pub(super) fn plain_alpha(config: &Map<String, Value>, alpha: f32, rank: u64) -> f32 {
    let stabilized = config.get(RANK_STABILIZED).and_then(Value::as_bool).unwrap_or(false);
    if stabilized { alpha * (rank as f32).sqrt() } else { alpha }
}

/// The first of some keys with another value than the one that it is listed with.
pub(super) fn first_other<'a>(
    config: &'a Map<String, Value>,
    keys: &[(&'static str, Option<&str>)],
) -> Option<Variant<'a>> {
    keys.iter().find_map(|&(key, neutral)| {
        // The JSON text: a string that says "false" is not `false`.
        let found = config.get(key).filter(|value| !is_empty(value) && neutral != Some(&value.to_string()))?;
        Some(Variant { key, found, expected: neutral.unwrap_or("null").to_owned() })
    })
}

fn is_neutral(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(name) => NEUTRAL.iter().any(|neutral| name.eq_ignore_ascii_case(neutral)),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

impl Variant<'_> {
    /// What is wrong, after the name of the file.
    pub(super) fn reason(&self) -> String {
        let Self { key, found, expected } = self;
        let mut text = found.to_string();
        if text.len() > 80 {
            text = format!("this {}", if found.is_object() { "object" } else { "value" });
        }
        format!("{key}: {text} is not supported; expected {expected}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn key_of(config: &Value) -> Option<&'static str> {
        variant(config.as_object().unwrap()).map(|variant| variant.key)
    }

    #[test]
    fn initialisations_that_leave_the_base_as_it_is_are_neutral() {
        assert_eq!(key_of(&json!({})), None);
        for neutral in [json!(true), json!(false), json!(null), json!("gaussian"), json!("Gaussian"), json!("eva")] {
            assert_eq!(key_of(&json!({"init_lora_weights": neutral})), None);
        }
        assert_eq!(key_of(&json!({"init_lora_weights": "orthogonal", "eva_config": {"rho": 2.0}})), None);
        for other in ["pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga", "of_a_later_version", ""] {
            assert_eq!(key_of(&json!({"init_lora_weights": other})), Some("init_lora_weights"), "{other}");
        }
        assert_eq!(key_of(&json!({"init_lora_weights": 1})), Some("init_lora_weights"));
        let config = json!({"init_lora_weights": "pissa"});
        let reason = variant(config.as_object().unwrap()).unwrap().reason();
        assert!(
            reason.starts_with("init_lora_weights: \"pissa\" is not supported; expected true, false, \"gau"),
            "{reason}"
        );
    }

    #[test]
    fn other_forward_passes_are_found() {
        assert_eq!(key_of(&json!({"kasa_config": {"beta": 1e-4}})), Some("kasa_config"));
        assert_eq!(key_of(&json!({"kasa_config": null, "use_dora": "false"})), Some("use_dora"));
        assert_eq!(key_of(&json!({"use_dora": false, "rank_pattern": {}, "bias": "none"})), None);
        assert_eq!(key_of(&json!({"use_rslora": "true"})), Some("use_rslora"));
    }

    #[test]
    fn rank_stabilisation_is_another_alpha() {
        for (config, alpha) in [
            (json!({}), 8.0),
            (json!({"use_rslora": false}), 8.0),
            (json!({"use_rslora": null}), 8.0),
            (json!({"use_rslora": true}), 32.0),
        ] {
            assert_eq!(variant(config.as_object().unwrap()), None);
            assert_eq!(plain_alpha(config.as_object().unwrap(), 8.0, 16), alpha, "{config}");
        }
    }
}
