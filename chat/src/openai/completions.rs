//! `POST completions`: from its body to settings.

use trainyard_wire::openai::{CompletionRequest, StopStrings};

use super::super::settings::{
    MAX_COMPLETIONS, MAX_LOGPROBS, Settings, count, stop_strings, top_k, unsupported, within,
};
use super::controls;
use crate::error::ChatError;

/// `max_tokens` of a request that does not set it.
const DEFAULT_MAX_TOKENS: u32 = 16;

/// Returns the settings of a request, checked.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn settings(request: &CompletionRequest) -> Result<Settings, ChatError> {
    let logprobs = request.logprobs.map(|most| count("logprobs", most, 0, MAX_LOGPROBS)).transpose()?;
    Ok(Settings {
        n: count("n", request.n.unwrap_or(1), 1, MAX_COMPLETIONS)?,
        // A sample has at least one token.
        max_tokens: Some(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS).max(1)),
        temperature: within("temperature", request.temperature.unwrap_or(1.0), 0.0, 2.0)?,
        top_p: within("top_p", request.top_p.unwrap_or(1.0), 0.0, 1.0)?,
        top_k: top_k(request.top_k)?,
        seed: request.seed,
        stop: stop_strings("stop", request.stop.clone().map(StopStrings::into_vec).unwrap_or_default())?,
        logprobs,
        token_ids: request.return_token_ids,
        controls: controls::checked(request.controls(), None)?,
        forced_calls: None,
    })
}

/// Refuses fields that would change the answer and are not supported.
///
/// # Errors
/// [`ChatError::Invalid`], which names the field.
pub fn check_unsupported(request: &CompletionRequest) -> Result<(), ChatError> {
    let not = "is not supported";
    let best_of = request.best_of.is_some_and(|best| best != request.n.unwrap_or(1));
    unsupported("best_of", best_of, "only the value of n is supported")?;
    unsupported("suffix", request.suffix.as_deref().is_some_and(|suffix| !suffix.is_empty()), not)?;
    unsupported("echo", request.echo && request.stream, "is not supported in streams")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};
    use trainyard_wire::json::parse;

    use super::*;

    fn checked(extra: &Value) -> Result<Settings, ChatError> {
        let mut body = json!({"model": "m", "prompt": "Hi"});
        extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        let request: CompletionRequest = parse(body.to_string().as_bytes())?;
        check_unsupported(&request)?;
        settings(&request)
    }

    #[test]
    fn settings_have_the_defaults_of_the_api() {
        assert_eq!(checked(&json!({})).unwrap(), Settings { max_tokens: Some(16), ..Settings::default() });
        assert_eq!(checked(&json!({"max_tokens": 0, "echo": true, "logprobs": 0})).unwrap().max_tokens, Some(1));
        assert_eq!(checked(&json!({"min_p": 0.5})).unwrap().controls.min_p, 0.5);
        for prompt in [json!("a"), json!(["a", "b"]), json!([1, 2]), json!([[1], [2, 3]])] {
            assert!(checked(&json!({"prompt": prompt})).is_ok());
        }
    }

    #[test]
    fn refusals_name_the_field() {
        for (extra, text) in [
            (json!({"foo": 1}), "unknown field `foo`"),
            (json!({"prompt": [1, "a"]}), "prompt: expected a string"),
            (json!({"logprobs": 21}), "logprobs: 21"),
            (json!({"best_of": 2}), "best_of: only the value of n"),
            (json!({"suffix": "x"}), "suffix: is not supported"),
            (json!({"echo": true, "stream": true}), "echo: is not supported in streams"),
            (json!({"presence_penalty": 2.5}), "presence_penalty: 2.5 is outside [-2, 2]"),
        ] {
            let refused = checked(&extra).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
    }
}
