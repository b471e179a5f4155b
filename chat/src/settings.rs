//! Sampling settings of the compatible APIs.

use trainyard_protocol::limits::{MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, MIN_TEMPERATURE};
use trainyard_protocol::{SamplingControls, SamplingParams, Stop};
use trainyard_wire::json::fold_seed;

use super::forced_calls::ForcedCalls;
use super::output::OutputFormat;
use super::texts::EndToken;
use crate::error::ChatError;

/// Maximum number of completions of one request.
pub const MAX_COMPLETIONS: u32 = 128;
/// Maximum number of stop strings: one less than the engine accepts, because an end token may need one.
const MOST_STRINGS: usize = MAX_STOP_STRINGS - 1;
/// Maximum number of candidates per token.
pub const MAX_LOGPROBS: u32 = 20;

/// Checked settings for sampling the completions of one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Number of completions of the prompt.
    pub n: u32,
    /// Maximum number of tokens of each completion; up to the context limit if `None`.
    pub max_tokens: Option<u32>,
    /// Temperature, where 0 is greedy.
    pub temperature: f64,
    /// Probability mass of the candidates to sample from.
    pub top_p: f64,
    /// Number of candidates to sample from; `None` for all.
    pub top_k: Option<u32>,
    /// Seed as the client sent it.
    pub seed: Option<i128>,
    /// Strings that end a completion, without being part of it.
    pub stop: Vec<String>,
    /// Number of candidates to return with the log-probabilities; `None` for no log-probabilities.
    pub logprobs: Option<u32>,
    /// Whether to return the ids of tokens.
    pub token_ids: bool,
    /// Penalties, biases and other controls, within their ranges.
    pub controls: SamplingControls,
    /// Calls of tools that the model must make.
    pub forced_calls: Option<ForcedCalls>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            n: 1,
            max_tokens: None,
            temperature: 1.0,
            top_p: 1.0,
            top_k: None,
            seed: None,
            stop: Vec::new(),
            logprobs: None,
            token_ids: false,
            controls: SamplingControls::default(),
            forced_calls: None,
        }
    }
}

/// Checks that a number is within a range; the error contains the field's name.
///
/// # Errors
/// Fails if it is outside of the range or not a number.
pub(crate) fn within(field: &str, value: f64, least: f64, most: f64) -> Result<f64, ChatError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(ChatError::invalid(format!("{field}: {value} is not between {least} and {most}")))
}

/// Checks that a count is within a range; the error contains the field's name.
///
/// # Errors
/// Fails if it is outside of the range.
pub(crate) fn count(field: &str, value: u32, least: u32, most: u32) -> Result<u32, ChatError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(ChatError::invalid(format!("{field}: {value} is not between {least} and {most}")))
}

/// Refuses a setting that this server does not implement.
///
/// # Errors
/// Fails if `set` is true.
pub(crate) fn unsupported(field: &str, set: bool, reason: &str) -> Result<(), ChatError> {
    if set { Err(ChatError::invalid(format!("{field}: {reason}"))) } else { Ok(()) }
}

/// The `k` of top-k; -1 and 0 disable it.
///
/// # Errors
/// Fails if it is less than -1 or too large.
pub(crate) fn top_k(value: Option<i64>) -> Result<Option<u32>, ChatError> {
    match value {
        None | Some(-1 | 0) => Ok(None),
        Some(k) => match u32::try_from(k) {
            Ok(k) => Ok(Some(k)),
            Err(_) => {
                Err(ChatError::invalid(format!("top_k: expected -1 or 0 (off), or 1 to {}, found {k}", u32::MAX)))
            }
        },
    }
}

/// Checks stop strings against their limits.
///
/// # Errors
/// Fails if there are too many, or one is empty or too long.
pub(crate) fn stop_strings(field: &str, strings: Vec<String>) -> Result<Vec<String>, ChatError> {
    let refuse = |text: String| Err(ChatError::invalid(format!("{field}: {text}")));
    if strings.len() > MOST_STRINGS {
        return refuse(format!("{} strings, at most {MOST_STRINGS} are allowed", strings.len()));
    }
    if strings.iter().any(String::is_empty) {
        return refuse("an empty string would stop everything".to_owned());
    }
    if strings.iter().any(|string| string.len() > MAX_STOP_STRING_BYTES) {
        return refuse(format!("a string is longer than {MAX_STOP_STRING_BYTES} bytes"));
    }
    Ok(strings)
}

impl Settings {
    /// Completes the settings for a prompt that expects output of this format. Returns the format of what is sampled.
    ///
    /// # Errors
    /// [`ChatError::Invalid`] if calls are required that can't be forced.
    pub fn fit(&mut self, format: OutputFormat) -> Result<OutputFormat, ChatError> {
        match self.forced_calls.take() {
            Some(calls) => calls.apply(&mut self.controls, format),
            // JSON is all that the reply consists of.
            None if self.controls.json_schema.is_some() => Ok(OutputFormat::default()),
            None => Ok(format),
        }
    }

    /// Converts the settings to those of the engine, with an end token in addition to the model's. If the client set no
    /// seed, `random` makes one.
    pub fn params(&self, end: Option<&EndToken>, random: impl FnOnce() -> u64) -> SamplingParams {
        let stop = match (self.stop.as_slice(), end) {
            ([], None) => Stop::Default,
            ([], Some(end)) => Stop::Tokens(vec![end.id.into()]),
            (strings, None) => Stop::Strings(strings.to_vec()),
            // The engine reads special tokens as their text.
            (strings, Some(end)) => Stop::Strings(strings.iter().chain([&end.text]).cloned().collect()),
        };
        let greedy = self.temperature < f64::from(MIN_TEMPERATURE);
        SamplingParams {
            max_tokens: self.max_tokens,
            seed: self.seed.map_or_else(|| fold_seed(random().into()), fold_seed),
            stop,
            temperature: if greedy { 0.0 } else { self.temperature as f32 },
            top_k: self.top_k,
            // With 0, only the most likely token is a candidate.
            top_p: (self.top_p as f32).max(f32::MIN_POSITIVE),
            controls: self.controls.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn settings_become_parameters() {
        let params = Settings::default().params(None, || 7);
        assert_eq!((params.seed, params.temperature, params.top_p, params.stop), (7, 1.0, 1.0, Stop::Default));
        let edge = Settings { temperature: 1e-9, top_p: 0.0, seed: Some(-1), ..Settings::default() }.params(None, || 7);
        assert_eq!((edge.temperature, edge.seed), (0.0, (1 << 63) - 1));
        assert!(edge.top_p > 0.0);
    }

    #[test]
    fn an_end_token_adds_to_what_stops() {
        let end = EndToken { id: 7, text: "<|end|>".to_owned() };
        let stop = |strings: &[&str], end| {
            let stop = strings.iter().map(|&string| string.to_owned()).collect();
            Settings { stop, ..Settings::default() }.params(end, || 7).stop
        };
        assert_eq!(stop(&[], Some(&end)), Stop::Tokens(vec![7]));
        assert_eq!(stop(&["a"], Some(&end)), Stop::Strings(vec!["a".to_owned(), "<|end|>".to_owned()]));
        assert_eq!(stop(&["a"], None), Stop::Strings(vec!["a".to_owned()]));
    }

    #[test]
    fn values_outside_of_their_range_are_refused_by_name() {
        assert_eq!(
            within("temperature", 3.0, 0.0, 2.0).unwrap_err().to_string(),
            "temperature: 3 is not between 0 and 2"
        );
        assert!(within("temperature", f64::NAN, 0.0, 2.0).is_err());
        assert_eq!(count("n", 0, 1, 128).unwrap_err().to_string(), "n: 0 is not between 1 and 128");
        assert_eq!((top_k(Some(-1)).unwrap(), top_k(Some(5)).unwrap()), (None, Some(5)));
        assert!(top_k(Some(-2)).is_err());
        assert!(stop_strings("stop", vec![String::new()]).is_err());
        assert!(stop_strings("stop", vec!["a".to_owned(); 65]).unwrap_err().to_string().contains("65 strings"));
    }
}
