//! Penalties, biases and `min_p` of a sample, as clients write them.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use trainyard_protocol::limits::MAX_LOGIT_BIASES;
use trainyard_protocol::{OpError, SamplingControls};

use super::SamplingParams;

/// A `logit_bias`: an object of token ids in decimal, each with a number. Token ids rise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogitBias(Vec<(u32, f32)>);

impl LogitBias {
    /// Token ids, rising, with their biases.
    pub fn entries(&self) -> &[(u32, f32)] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for LogitBias {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = LogitBias;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of token ids, each with a number")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LogitBias, A::Error> {
        let mut biases = Vec::new();
        while let Some((token, bias)) = map.next_entry::<String, f64>()? {
            let id: u32 =
                token.parse().map_err(|_| A::Error::custom(format_args!("logit_bias: {token:?} is not a token id")))?;
            biases.push((id, bias as f32));
            if biases.len() > MAX_LOGIT_BIASES {
                return Err(A::Error::custom(format_args!("logit_bias: more than {MAX_LOGIT_BIASES} tokens")));
            }
        }
        biases.sort_unstable_by_key(|(token, _)| *token);
        Ok(LogitBias(biases))
    }
}

/// The controls that were asked for.
///
/// # Errors
/// The user's, by field.
pub(super) fn controls(params: &SamplingParams) -> Result<SamplingControls, OpError> {
    let controls = SamplingControls {
        min_p: params.min_p as f32,
        presence_penalty: params.presence_penalty as f32,
        frequency_penalty: params.frequency_penalty as f32,
        repetition_penalty: params.repetition_penalty as f32,
        logit_bias: params.logit_bias.clone().unwrap_or_default().0,
        json_schema: params.json_schema.as_ref().map(serde_json::Value::to_string),
    };
    controls.check()?;
    Ok(controls)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_taken_over_and_absent_ones_are_off() {
        let read = |body| controls(&serde_json::from_value(body).unwrap()).unwrap();
        assert_eq!(read(json!({})), SamplingControls::default());
        assert_eq!(read(json!({"logit_bias": null})), SamplingControls::default());
        let body = json!({
            "min_p": 0.25, "presence_penalty": -0.5, "frequency_penalty": 1, "repetition_penalty": 1.5,
            "logit_bias": {"50": -100, "7": 1.5}, "json_schema": {"type": "string"},
        });
        let expected = SamplingControls {
            min_p: 0.25,
            presence_penalty: -0.5,
            frequency_penalty: 1.0,
            repetition_penalty: 1.5,
            logit_bias: vec![(7, 1.5), (50, -100.0)],
            json_schema: Some(r#"{"type":"string"}"#.to_owned()),
        };
        assert_eq!(read(body), expected);
    }
}
