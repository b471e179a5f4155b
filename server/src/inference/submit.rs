//! Submission of samples to the scheduler, for every API.

use trainyard_protocol::limits::{check_candidates, check_targets};
use trainyard_protocol::{BaseModel, DecodedImages, PreparedContent, Sample, SamplingSessionId, Stop, TenantId};
use trainyard_scheduler::{Decoded, SampleSubmission, Submitted};
use trainyard_wire::images::{ImageLimits, ImageRules, file_pixels};
use trainyard_wire::payload::{CodecError, Payload};

use crate::error::ApiError;
use crate::state::AppState;

/// Seconds after which a client should repeat a sample that was rejected with 429.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A sample as a client identifies it.
pub(crate) struct NewSample {
    /// Sampling session from which it samples.
    pub(crate) sampling_session: SamplingSessionId,
    /// Number that identifies the sample in its sampling session.
    pub(crate) seq_id: i64,
    pub(crate) sample: Sample,
    /// Whether the server chose its seed.
    pub(crate) server_seed: bool,
    /// Whether its log-probabilities are kept for losses that use them.
    pub(crate) recorded: bool,
}

impl From<CodecError> for ApiError {
    fn from(error: CodecError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Checks a sample against its model and submits it.
///
/// # Errors
/// Fails if the model does not accept it, too many are pending or a quota is used up.
pub(crate) async fn submit(
    state: &AppState,
    tenant: &TenantId,
    model: &BaseModel,
    new: NewSample,
) -> Result<Submitted, ApiError> {
    let NewSample { sampling_session, seq_id, sample, server_seed, recorded } = new;
    check_against_model(&sample, model)?;
    if let Err(full) = check_queue(state, tenant)
        && !state.scheduler.knows_sample(tenant, &sampling_session, seq_id).await?
    {
        return Err(full);
    }
    if !sample.images.is_empty() {
        state.take_pixels(tenant, file_pixels(&sample.images))?;
    }
    let (num_samples, tokens) = (sample.num_samples, sample.tokens(model.max_context_length));
    let payload = Payload::Sample { sample: Box::new(sample), server_seed };
    let (identity, bytes) = (payload.identity()?, payload.encode()?);
    let decoded = match payload {
        // Images are decoded by the worker.
        Payload::Sample { sample, .. } => {
            Decoded::new(PreparedContent::Sample { sample, images: DecodedImages::new() })
        }
        _ => Decoded::default(),
    };
    let submission =
        SampleSubmission { sampling_session, seq_id, num_samples, payload: bytes, decoded, identity, tokens, recorded };
    Ok(state.scheduler.submit_sample(tenant, submission).await?)
}

/// Refuses a sample that its model can't execute.
///
/// # Errors
///
/// A user error that names the field at fault.
pub(crate) fn check_against_model(sample: &Sample, model: &BaseModel) -> Result<(), ApiError> {
    sample.params.controls.check_vocabulary(model.vocab_size)?;
    let vocabulary = model.vocab_size as i64;
    if let Stop::Tokens(tokens) = &sample.params.stop
        && let Some(id) = tokens.iter().find(|&id| !(0..vocabulary).contains(id))
    {
        return Err(ApiError::invalid(format!(
            "sampling_params.stop: token {id} is outside the vocabulary of {vocabulary}"
        )));
    }
    if let Some((at, id)) = sample.prompt.iter().enumerate().find(|&(_, id)| !(0..vocabulary).contains(id)) {
        return Err(ApiError::invalid(format!("prompt: token {at} is {id}, outside the vocabulary of {vocabulary}")));
    }
    ImageRules::new(model, ImageLimits::default())
        .check_tokens(&sample.prompt, &sample.images)
        .map_err(|text| ApiError::invalid(format!("prompt: {text}")))?;
    if let Some(targets) = &sample.target_prompt_logprobs {
        check_targets(targets.shape[1] as u64, model.vocab_size)
            .map_err(|text| ApiError::invalid(format!("target_prompt_logprobs: {text}")))?;
    }
    let most = sample.max_new_tokens(model.max_context_length)?;
    let scored = sample.prompt_logprobs_last_n.map_or(sample.prompt.len(), |rows| rows as usize);
    let (samples, topk) = (sample.num_samples, sample.topk_sample_logprobs);
    check_candidates(samples, most, topk, scored, sample.topk_prompt_logprobs)?;
    Ok(())
}

/// Rejects a sample with 429 while too many are pending, of the tenant by its own limit or of all tenants; the client
/// sends the same request again.
///
/// A tenant with less than an even share of the queue of all is accepted all the same, so that another tenant's queue does
/// not keep it out.
///
/// # Errors
/// Fails if too many are pending.
pub(crate) fn check_queue(state: &AppState, tenant: &TenantId) -> Result<(), ApiError> {
    let (open, most) = (state.scheduler.open_samples(tenant), state.limits.max_queued);
    state.scheduler.admit_queued_sample(tenant, open.own)?;
    if open.all < most || open.own < most / open.tenants.max(1) {
        return Ok(());
    }
    let message =
        format!("{} of your samples are waiting or running, the most that the server accepts now; try again", open.own);
    Err(ApiError::Busy { message, retry_after_seconds: RETRY_AFTER_SECONDS })
}
