//! `/console/data/runs/{run_id}/samples`: the newest stored samples of a run, as text and as tokens.

use std::sync::Arc;

use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use trainyard_protocol::{RunId, TenantId};
use trainyard_scheduler::{MAX_STORED_SAMPLES, RunSample, STORE_SAMPLES};
use trainyard_wire::timestamp::rfc3339;

use crate::api::request::extract::ApiPath;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::inference::{ModelText, pieces};
use crate::state::AppState;
use crate::stored_samples::{StoredImage, StoredSample, StoredSequence};

/// Maximum number of samples in one response.
const NEWEST: u32 = 20;
/// The value that stands for the logarithm of zero in JSON.
const LEAST: f64 = -9_999.0;

/// Content of the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Samples {
    samples: Vec<SampleLine>,
    /// Number of newest samples that the run stores; `None` when it stores none.
    newest: Option<u32>,
    /// Number of stored samples, and their bytes.
    count: u64,
    bytes: u64,
    /// Whether the storage quota has no room for more.
    quota_is_full: bool,
    /// Metadata key with which a run requests stored samples, and its maximum value.
    key: &'static str,
    most: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SampleLine {
    request_id: String,
    sampling_session_id: String,
    time: String,
    /// Number of tokens in the whole prompt, the last of which follow.
    prompt_tokens: u32,
    prompt: Vec<u32>,
    /// Text of these tokens, if the model has a tokenizer on this server.
    prompt_text: Option<String>,
    /// Images among these tokens.
    images: Vec<ImageLine>,
    /// Number of sampled completions, the first of which follow.
    sampled: u32,
    sequences: Vec<SequenceLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ImageLine {
    /// Number of tokens that stand for the image.
    tokens: u32,
    width: u32,
    height: u32,
    /// Data URI of the file; `None` if it is too large to be stored.
    url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SequenceLine {
    stop_reason: &'static str,
    /// Number of tokens in the whole completion, the first of which follow.
    sampled: u32,
    tokens: Vec<u32>,
    logprobs: Vec<f64>,
    /// Text of each token, if the model has a tokenizer on this server.
    texts: Option<Vec<String>>,
}

/// Returns the newest stored samples of one of the caller's runs.
pub(super) async fn samples(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
) -> Reply<Samples> {
    Ok(Answer(look(&state, &tenant, &RunId::new(run_id)).await?))
}

/// Deletes the stored samples of one of the caller's runs.
pub(super) async fn delete(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
) -> Reply<Value> {
    let deleted = state.scheduler.delete_run_samples(&tenant, &RunId::new(run_id)).await?;
    Ok(Answer(json!({"deleted": deleted})))
}

/// Returns the newest stored samples of a run.
pub(super) async fn look(state: &AppState, tenant: &TenantId, run: &RunId) -> Result<Samples, ApiError> {
    let found = state.scheduler.run_samples(tenant, run, NEWEST).await?;
    let text = match found.samples.is_empty() {
        true => None,
        false => {
            let model = state.scheduler.run(tenant, run).await?.spec.base_model;
            // Without a tokenizer the page shows numbers.
            state.inference.texts.get(state.models.hub(), &model).await.ok()
        }
    };
    let stored = found.samples;
    let render = move || stored.into_iter().map(|sample| line(sample, text.as_ref())).collect();
    let samples: Result<Vec<SampleLine>, ApiError> = state.inference.texts.work(render).await?;
    Ok(Samples {
        samples: samples?,
        newest: found.newest,
        count: found.count,
        bytes: found.bytes,
        quota_is_full: found.quota_is_full,
        key: STORE_SAMPLES,
        most: MAX_STORED_SAMPLES,
    })
}

fn line(found: RunSample, text: Option<&Arc<ModelText>>) -> Result<SampleLine, ApiError> {
    let request = found.request.to_string();
    let stored = StoredSample::read(found.content)
        .map_err(|error| ApiError::Internal(format!("the stored sample {request} is damaged: {error}")))?;
    Ok(SampleLine {
        sampling_session_id: found.sampling_session.to_string(),
        time: rfc3339(found.at.as_millis()),
        prompt_tokens: stored.prompt_tokens,
        prompt_text: text.map(|text| prompt_text(text, &stored)),
        images: stored.images.into_iter().map(image_line).collect(),
        prompt: stored.prompt,
        sampled: stored.sequences,
        sequences: stored.stored.into_iter().map(|sequence| sequence_line(sequence, text)).collect(),
        request_id: request,
    })
}

/// The text of a prompt, in which `[image]` stands for the tokens of each image.
fn prompt_text(text: &Arc<ModelText>, stored: &StoredSample) -> String {
    let mut shown = String::new();
    let mut rest = 0;
    for image in &stored.images {
        let start = (image.start as usize).clamp(rest, stored.prompt.len());
        shown.push_str(&pieces(text, &stored.prompt[rest..start]).concat());
        shown.push_str("[image]");
        rest = start.saturating_add(image.tokens as usize).min(stored.prompt.len());
    }
    shown.push_str(&pieces(text, &stored.prompt[rest..]).concat());
    shown
}

fn image_line(stored: StoredImage) -> ImageLine {
    let StoredImage { tokens, width, height, media_type, data, .. } = stored;
    let url = (!data.is_empty()).then(|| format!("data:{media_type};base64,{}", STANDARD.encode(&data)));
    ImageLine { tokens, width, height, url }
}

fn sequence_line(stored: StoredSequence, text: Option<&Arc<ModelText>>) -> SequenceLine {
    SequenceLine {
        stop_reason: if stored.stopped { "stop" } else { "length" },
        sampled: stored.sampled,
        texts: text.map(|text| pieces(text, &stored.tokens)),
        logprobs: stored.logprobs.iter().map(|logprob| f64::from(*logprob).max(LEAST)).collect(),
        tokens: stored.tokens,
    }
}
