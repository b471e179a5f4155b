//! Checks of a request before it is queued.

use trainyard_protocol::limits::{MAX_NUM_SAMPLES, MAX_TOPK_LOGPROBS, MIN_TEMPERATURE};
use trainyard_protocol::{OpError, Sample, SamplingParams};

/// The prompt as token ids of the vocabulary.
pub(super) fn check_tokens(prompt: &[i64], vocab: usize) -> Result<Vec<u32>, OpError> {
    if prompt.is_empty() {
        return Err(OpError::user("prompt: at least one token is required"));
    }
    let check = |(i, id): (usize, &i64)| {
        u32::try_from(*id).ok().filter(|id| (*id as usize) < vocab).ok_or_else(|| {
            OpError::user(format!("prompt: token {id} at position {i} is outside the vocabulary of {vocab}"))
        })
    };
    prompt.iter().enumerate().map(check).collect()
}

/// Checks counts and options that depend on the prompt's length.
pub(super) fn check_counts(request: &Sample, prompt: usize) -> Result<(), OpError> {
    if request.num_samples == 0 || request.num_samples > MAX_NUM_SAMPLES {
        return Err(OpError::user(format!(
            "num_samples: {} is not between 1 and {MAX_NUM_SAMPLES}",
            request.num_samples
        )));
    }
    for (name, k) in [
        ("topk_prompt_logprobs", request.topk_prompt_logprobs),
        ("topk_sample_logprobs", request.topk_sample_logprobs),
        ("prompt_alt_tokens_k", request.prompt_alt_tokens_k),
    ] {
        if k > MAX_TOPK_LOGPROBS {
            return Err(OpError::user(format!("{name}: {k} is more than {MAX_TOPK_LOGPROBS}")));
        }
    }
    if let Some(n) = request.prompt_logprobs_last_n {
        if !request.prompt_logprobs {
            return Err(OpError::user("prompt_logprobs_last_n: requires prompt_logprobs"));
        }
        if n == 0 || n as usize >= prompt {
            return Err(OpError::user(format!("prompt_logprobs_last_n: {n} is not between 1 and {}", prompt - 1)));
        }
    }
    Ok(())
}

/// Checks how tokens are to be sampled; errors name the field. `stop` is checked where it is compiled,
/// when a stop matcher is made.
pub(super) fn validate_params(params: &SamplingParams) -> Result<(), OpError> {
    let SamplingParams { max_tokens, temperature, top_k, top_p, controls, .. } = params;
    if *max_tokens == Some(0) {
        return Err(OpError::user("sampling_params.max_tokens: must be at least 1"));
    }
    if !(temperature.is_finite() && (*temperature == 0.0 || *temperature >= MIN_TEMPERATURE)) {
        return Err(OpError::user(format!(
            "sampling_params.temperature: {temperature} is neither 0 nor finite and at least {MIN_TEMPERATURE}"
        )));
    }
    if *top_k == Some(0) {
        return Err(OpError::user("sampling_params.top_k: must be at least 1, or -1 to switch it off"));
    }
    if !(*top_p > 0.0 && *top_p <= 1.0) {
        return Err(OpError::user(format!("sampling_params.top_p: {top_p} is outside (0, 1]")));
    }
    controls.check()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{SamplingControls, Stop};

    use super::*;

    #[test]
    fn parameters_are_named() {
        let good = SamplingParams {
            max_tokens: None,
            seed: 0,
            stop: Stop::Default,
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            controls: Default::default(),
        };
        validate_params(&good).unwrap();
        let cases = [
            ("max_tokens", SamplingParams { max_tokens: Some(0), ..good.clone() }),
            ("temperature", SamplingParams { temperature: -0.1, ..good.clone() }),
            ("temperature", SamplingParams { temperature: f32::NAN, ..good.clone() }),
            ("temperature", SamplingParams { temperature: 1e-38, ..good.clone() }),
            ("top_k", SamplingParams { top_k: Some(0), ..good.clone() }),
            (
                "min_p",
                SamplingParams { controls: SamplingControls { min_p: 2.0, ..good.controls.clone() }, ..good.clone() },
            ),
            ("top_p", SamplingParams { top_p: 0.0, ..good.clone() }),
            ("top_p", SamplingParams { top_p: 1.1, ..good.clone() }),
            ("top_p", SamplingParams { top_p: f32::NAN, ..good.clone() }),
        ];
        for (name, params) in cases {
            let message = validate_params(&params).unwrap_err().message;
            assert!(message.starts_with(&format!("sampling_params.{name}: ")), "{message}");
        }
    }
}
