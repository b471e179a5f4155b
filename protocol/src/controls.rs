//! Settings of sampling beyond temperature, top-k and top-p: penalties, biases and `min_p`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::OpError;
use crate::limits::{
    MAX_LOGIT_BIAS, MAX_LOGIT_BIASES, MAX_PENALTY, MAX_REPETITION_PENALTY, MAX_SCHEMA_BYTES, MAX_SCHEMA_VALUES,
};

/// Changes of the logits that tokens are sampled from; off by default. They change which tokens are sampled, never the
/// log-probabilities that are returned: those are the model's.
///
/// The changes are applied in this order, for a token of logit `l` that the sequence has sampled `n` times (OpenAI's
/// definitions; the repetition penalty is that of Keskar et al. 2019, as in vLLM): `l + logit_bias`; where the token is
/// in the prompt or was sampled, `l / repetition_penalty` if `l > 0`, else `l * repetition_penalty`;
/// `l - frequency_penalty * n - presence_penalty` if `n > 0`; the temperature; `min_p`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplingControls {
    /// Smallest probability of a sampled token as a fraction of the most likely token's, in [0, 1]; 0 turns it off.
    #[serde(skip_serializing_if = "is_zero")]
    pub min_p: f32,
    /// Lowers the logits of sampled tokens, in [-2, 2].
    #[serde(skip_serializing_if = "is_zero")]
    pub presence_penalty: f32,
    /// Lowers the logit of a token each time it has been sampled, in [-2, 2].
    #[serde(skip_serializing_if = "is_zero")]
    pub frequency_penalty: f32,
    /// Divides or multiplies the logits of tokens that are in the prompt or were sampled, in (0, 100]; 1 turns it off.
    #[serde(skip_serializing_if = "is_one")]
    pub repetition_penalty: f32,
    /// Token ids in ascending order, each with the number that is added to its logit, in [-100, 100].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logit_bias: Vec<(u32, f32)>,
    /// A JSON schema, as JSON, that the text must follow. Tokens that violate it are not sampled; the sequence ends
    /// when the JSON value is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<String>,
    /// Text around the value of `json_schema`, by which a chat template marks calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_marks: Option<CallMarks>,
}

/// How a chat template marks calls of tools, each of which is a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMarks {
    /// Text before a call.
    pub before: String,
    /// Text after a call.
    pub after: String,
    /// Text between two calls; `None` if there is exactly one.
    pub between: Option<String>,
}

fn is_zero(value: &f32) -> bool {
    *value == 0.0
}

fn is_one(value: &f32) -> bool {
    *value == 1.0
}

impl Default for SamplingControls {
    fn default() -> Self {
        Self {
            min_p: 0.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            repetition_penalty: 1.0,
            logit_bias: Vec::new(),
            json_schema: None,
            call_marks: None,
        }
    }
}

impl SamplingControls {
    /// Whether these settings bias or penalise logits.
    pub fn changes_logits(&self) -> bool {
        let Self { presence_penalty, frequency_penalty, repetition_penalty, logit_bias, .. } = self;
        *presence_penalty != 0.0 || *frequency_penalty != 0.0 || *repetition_penalty != 1.0 || !logit_bias.is_empty()
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A user error that names the field.
    pub fn check(&self) -> Result<(), OpError> {
        let refuse = |message: String| Err(OpError::user(format!("sampling_params.{message}")));
        if !(0.0..=1.0).contains(&self.min_p) {
            return refuse(format!("min_p: {} is outside [0, 1]", self.min_p));
        }
        for (name, penalty) in
            [("presence_penalty", self.presence_penalty), ("frequency_penalty", self.frequency_penalty)]
        {
            if !(-MAX_PENALTY..=MAX_PENALTY).contains(&penalty) {
                return refuse(format!("{name}: {penalty} is outside [-{MAX_PENALTY}, {MAX_PENALTY}]"));
            }
        }
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty <= MAX_REPETITION_PENALTY) {
            let penalty = self.repetition_penalty;
            return refuse(format!("repetition_penalty: {penalty} is outside (0, {MAX_REPETITION_PENALTY}]"));
        }
        if self.logit_bias.len() > MAX_LOGIT_BIASES {
            let tokens = self.logit_bias.len();
            return refuse(format!("logit_bias: {tokens} tokens, at most {MAX_LOGIT_BIASES} are allowed"));
        }
        if let Some((token, bias)) =
            self.logit_bias.iter().find(|(_, bias)| !(-MAX_LOGIT_BIAS..=MAX_LOGIT_BIAS).contains(bias))
        {
            return refuse(format!("logit_bias: {bias} for token {token} is outside [-100, 100]"));
        }
        if !self.logit_bias.is_sorted_by(|(a, _), (b, _)| a < b) {
            return refuse("logit_bias: a token is listed twice or out of order".to_owned());
        }
        self.json_schema.as_deref().map_or(Ok(()), check_schema)
    }

    /// Checks the tokens against a vocabulary.
    ///
    /// # Errors
    /// A user error that names the field.
    pub fn check_vocabulary(&self, vocab_size: usize) -> Result<(), OpError> {
        match self.logit_bias.iter().find(|(token, _)| *token as usize >= vocab_size) {
            None => Ok(()),
            Some((token, _)) => Err(OpError::user(format!(
                "sampling_params.logit_bias: token {token} is outside the vocabulary of {vocab_size}"
            ))),
        }
    }
}

/// Refuses text that is not a schema, and large schemas, before anything compiles them.
fn check_schema(text: &str) -> Result<(), OpError> {
    let refuse = |message: String| Err(OpError::user(format!("sampling_params.json_schema: {message}")));
    if text.len() > MAX_SCHEMA_BYTES {
        return refuse(format!("has {} bytes, at most {MAX_SCHEMA_BYTES} are allowed", text.len()));
    }
    match serde_json::from_str(text) {
        Err(error) => refuse(format!("is not JSON: {error}")),
        Ok(schema @ Value::Object(_)) if values(&schema) <= MAX_SCHEMA_VALUES => Ok(()),
        Ok(Value::Object(_)) => refuse(format!("has more than {MAX_SCHEMA_VALUES} values")),
        Ok(_) => refuse("must be an object".to_owned()),
    }
}

/// Counts the values in a JSON value, itself included. Recursion is safe: the parser limits nesting to 128 levels.
fn values(value: &Value) -> usize {
    let within = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(fields) => fields.values().map(values).sum(),
        _ => 0,
    };
    1 + within
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_is_off_is_not_stored() {
        let off = SamplingControls::default();
        assert_eq!(serde_json::to_string(&off).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<SamplingControls>("{}").unwrap(), off);
        let on = SamplingControls { min_p: 0.1, logit_bias: vec![(3, -1.5), (7, 2.0)], ..off };
        let text = serde_json::to_string(&on).unwrap();
        assert_eq!(text, r#"{"min_p":0.1,"logit_bias":[[3,-1.5],[7,2.0]]}"#);
        assert_eq!(serde_json::from_str::<SamplingControls>(&text).unwrap(), on);
    }

    #[test]
    fn ranges_are_checked_by_name() {
        let off = SamplingControls::default;
        let with_schema = |schema| SamplingControls { json_schema: Some(schema), ..off() };
        off().check().unwrap();
        let limits = SamplingControls {
            min_p: 1.0,
            presence_penalty: -2.0,
            frequency_penalty: 2.0,
            repetition_penalty: 100.0,
            logit_bias: vec![(0, -100.0), (9, 100.0)],
            json_schema: Some(format!(r#"{{"enum": [{}]}}"#, vec!["1"; MAX_SCHEMA_VALUES - 2].join(","))),
            call_marks: None,
        };
        limits.check().unwrap();
        limits.check_vocabulary(10).unwrap();
        assert!(limits.check_vocabulary(9).unwrap_err().message.contains("logit_bias: token 9"));
        for (name, bad) in [
            ("min_p", SamplingControls { min_p: -0.1, ..off() }),
            ("min_p", SamplingControls { min_p: f32::NAN, ..off() }),
            ("presence_penalty", SamplingControls { presence_penalty: 2.5, ..off() }),
            ("frequency_penalty", SamplingControls { frequency_penalty: f32::NEG_INFINITY, ..off() }),
            ("repetition_penalty", SamplingControls { repetition_penalty: 0.0, ..off() }),
            ("repetition_penalty", SamplingControls { repetition_penalty: f32::NAN, ..off() }),
            ("logit_bias", SamplingControls { logit_bias: vec![(1, 100.5)], ..off() }),
            ("logit_bias", SamplingControls { logit_bias: vec![(1, 1.0), (1, 2.0)], ..off() }),
            ("logit_bias", SamplingControls { logit_bias: (0..1_025).map(|id| (id, 1.0)).collect(), ..off() }),
            ("json_schema", with_schema("true".to_owned())),
            ("json_schema", with_schema("{".to_owned())),
            ("json_schema", with_schema(format!("{{\"const\": \"{}\"}}", "x".repeat(MAX_SCHEMA_BYTES)))),
            ("json_schema", with_schema(format!(r#"{{"enum": [{}]}}"#, vec!["1"; MAX_SCHEMA_VALUES].join(",")))),
            ("json_schema", with_schema("[".repeat(1_000))),
        ] {
            let message = bad.check().unwrap_err().message;
            assert!(message.starts_with(&format!("sampling_params.{name}: ")), "{message}");
        }
    }
}
