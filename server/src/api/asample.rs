//! `POST asample`.

use axum::extract::State;
use trainyard_protocol::{BaseModel, SamplingSessionId};
use trainyard_scheduler::SampleSubmission;

use super::body::JsonBody;
use super::create_model::check_number;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::codec::{Payload, SamplePayload};
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::sampling::SampleRequest;

/// After how many seconds a client that was put off should try again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Draws completions of a prompt. Identified by sampling session and `seq_id`, which orders nothing.
#[utoipa::path(
    post, path = "/api/v1/asample", tag = "sampling", request_body = SampleRequest,
    responses((status = 200, body = SubmitResponse), Refusals),
)]
pub(super) async fn asample(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<SampleRequest>,
) -> Reply<SubmitResponse> {
    check_number("seq_id", request.seq_id)?;
    let (id, seq_id) = (SamplingSessionId::new(request.sampling_session_id.clone()), request.seq_id);
    let session = state.scheduler.sampling_session(&tenant, &id).await?;
    let payload = request.into_payload(|| (state.random)())?;
    check_against_model(&payload, state.require_model(&session.base_model)?)?;
    check_queue(&state)?;
    let num_samples = payload.num_samples;
    let payload = Payload::Sample(Box::new(payload));
    let (identity, payload) = (payload.identity()?, payload.encode()?);
    let submission = SampleSubmission { sampling_session: id, seq_id, num_samples, payload, identity };
    let submitted = state.scheduler.submit_sample(&tenant, submission).await?;
    Ok(Answer(SubmitResponse {
        request_id: submitted.request_id.to_string(),
        model_id: None,
        sample_sequence_ids: Some(submitted.sample_sequence_ids),
    }))
}

fn check_against_model(payload: &SamplePayload, model: &BaseModel) -> Result<(), ApiError> {
    let vocabulary = model.vocab_size as i64;
    if let Some((at, id)) = payload.prompt.iter().enumerate().find(|&(_, id)| !(0..vocabulary).contains(id)) {
        return Err(ApiError::invalid(format!("prompt: token {at} is {id}, outside the vocabulary of {vocabulary}")));
    }
    // Without max_tokens there must still be room for one token.
    let (prompt, limit) = (payload.prompt.len(), model.max_context_length);
    let max_tokens = payload.max_tokens.map_or(1, |count| count as usize);
    if prompt.saturating_add(max_tokens) > limit {
        return Err(ApiError::invalid(format!(
            "Prompt length plus max_tokens exceeds the model's context window: {prompt} + {max_tokens} > {limit}"
        )));
    }
    Ok(())
}

/// Puts a sample off while too many wait; the client sends the same request again.
fn check_queue(state: &AppState) -> Result<(), ApiError> {
    let (queued, most) = (state.scheduler.stats().queued, state.limits.max_queued_samples);
    if queued < most {
        return Ok(());
    }
    let message = format!("{queued} requests are queued, at most {most} are taken; try again");
    Err(ApiError::Busy { message, retry_after_seconds: RETRY_AFTER_SECONDS })
}
