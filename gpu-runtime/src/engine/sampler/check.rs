//! What a request must satisfy before it is queued.

use trainyard_protocol::limits::{MAX_NUM_SAMPLES, MAX_TOPK_LOGPROBS};
use trainyard_protocol::{OpError, Sample, SamplingParams};

/// The prompt as token ids of the vocabulary.
pub(super) fn check_tokens(prompt: &[i64], vocab: usize) -> Result<Vec<u32>, OpError> {
    if prompt.is_empty() {
        return Err(OpError::user("prompt: must hold at least one token"));
    }
    let check = |(i, id): (usize, &i64)| {
        u32::try_from(*id).ok().filter(|id| (*id as usize) < vocab).ok_or_else(|| {
            OpError::user(format!("prompt: token {id} at position {i} is outside the vocabulary of {vocab}"))
        })
    };
    prompt.iter().enumerate().map(check).collect()
}

/// Tokens that a sequence may get.
pub(super) fn max_new_tokens(params: &SamplingParams, prompt: usize, context: usize) -> Result<usize, OpError> {
    let exceeds = |new: usize| {
        OpError::user(format!(
            "Prompt length plus max_tokens exceeds the model's context window: {prompt} + {new} > {context}"
        ))
    };
    match params.max_tokens {
        Some(new) if prompt + new as usize > context => Err(exceeds(new as usize)),
        Some(new) => Ok(new as usize),
        None if prompt >= context => Err(exceeds(1)),
        None => Ok(context - prompt),
    }
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
            return Err(OpError::user("prompt_logprobs_last_n: needs prompt_logprobs"));
        }
        if n == 0 || n as usize >= prompt {
            return Err(OpError::user(format!("prompt_logprobs_last_n: {n} is not between 1 and {}", prompt - 1)));
        }
    }
    Ok(())
}
