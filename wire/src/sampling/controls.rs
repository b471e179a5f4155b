//! Penalties, biases and `min_p` of a sample, as clients write them.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use trainyard_protocol::limits::MAX_LOGIT_BIASES;

/// Biases of logits, written as an object with token ids in decimal as keys. The entries are sorted by token id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogitBias(Vec<(u32, f32)>);

impl LogitBias {
    /// Returns token ids in ascending order, each with its bias.
    pub(crate) fn to_vec(&self) -> Vec<(u32, f32)> {
        self.0.clone()
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;
    use trainyard_protocol::SamplingControls;

    use super::super::SamplingParams;

    #[test]
    fn fields_are_taken_over_and_absent_ones_are_off() {
        let read = |body| serde_json::from_value::<SamplingParams>(body).unwrap().controls().unwrap();
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
            call_marks: None,
        };
        assert_eq!(read(body), expected);
    }
}
