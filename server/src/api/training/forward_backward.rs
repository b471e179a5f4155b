//! Handler of `POST forward_backward`.

use axum::extract::State;
use bytes::Bytes;
use trainyard_protocol::limits::{custom_loss_tokens, scored_tokens};
use trainyard_protocol::{CustomLossId, Datum, OpError, PreparedContent, RawBatch, RunId, TenantId};
use trainyard_scheduler::{Decoded, Error, RequestKind, Run, RunSubmission};
use trainyard_wire::custom_loss;
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::images::{ImageRules, file_pixels};
use trainyard_wire::proto::ForwardBackwardRequest;
use trainyard_wire::training::{self, ForwardBackwardBody};
use trainyard_wire::{json, provenance};

use crate::api::request::body::{Media, RawBody, beside};
use crate::api::request::recorded;
use crate::api::request::refusals::{Binary, Refusals};
use crate::api::request::respond::Reply;
use crate::api::request::submit;
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Computes a loss and adds its gradient to the run's, unless `forward_only` is set. The body is the protobuf message
/// `ForwardBackwardRequest` (see `tinker_public.proto`), plain or compressed with zstd, or JSON.
#[utoipa::path(
    post, path = "/api/v1/forward_backward", tag = "training",
    request_body(content((inline(Binary) = "application/x-protobuf"), (ForwardBackwardBody = "application/json"))),
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn forward_backward(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    mut body: RawBody,
) -> Reply<SubmitResponse> {
    let read = match body.media {
        Media::Protobuf => read_protobuf,
        Media::Json => read_json,
        Media::Other => {
            let text = "content-type must be application/x-protobuf or application/json".to_owned();
            return Err(ApiError::UnsupportedMediaType(text));
        }
    };
    let (found, request) = body.decode(read).await?;
    let (run, seq_id) = submit::ids(found, request.as_ref().err())?;
    let run = submit::find_run(&state, &tenant, &run, seq_id).await?;
    let submission = prepare(&state, &tenant, &run, seq_id, request, &body).await?;
    submit::submit(&state, &tenant, submission).await
}

/// The ids, which may be readable even if the rest is not, and the request.
pub(crate) type Read = (Option<(RunId, i64)>, Result<Pass, OpError>);

/// A request that can be read.
pub(crate) struct Pass {
    kind: RequestKind,
    /// Payload to store: the message as the client sent it, or as it is written from JSON.
    payload: Bytes,
    examples: Examples,
    /// The message itself, if its examples name the sequences that they were sampled in.
    named: Option<Box<ForwardBackwardRequest>>,
}

/// The examples of a request.
enum Examples {
    /// Examples without images, or the error that the future reports when its turn comes.
    Read(Result<RawBatch, OpError>),
    /// Examples whose tokens depend on the model of the run.
    WithImages(Box<ForwardBackwardRequest>),
}

impl Pass {
    fn new(payload: Bytes, request: ForwardBackwardRequest) -> Self {
        let kind = if request.forward_only { RequestKind::Forward } else { RequestKind::ForwardBackward };
        let named = provenance::applies(&request).then(|| Box::new(request.clone()));
        let examples = match training::has_images(&request) {
            true => Examples::WithImages(Box::new(request)),
            false => Examples::Read(training::batch(request, &ImageRules::text_only(""))),
        };
        Self { kind, payload, examples, named }
    }

    /// Encodes a decoded message and returns it as a request.
    pub(crate) fn written(request: ForwardBackwardRequest) -> Self {
        Self::new(training::encode(&request), request)
    }
}

fn read_protobuf(bytes: &Bytes) -> Read {
    let pass = training::decode(bytes.clone()).map(|request| Pass::new(bytes.clone(), request));
    (training::proto_ids(bytes), pass)
}

fn read_json(bytes: &Bytes) -> Read {
    let request = json::parse::<ForwardBackwardBody>(bytes).and_then(ForwardBackwardBody::into_proto);
    (json::training_ids(bytes), request.map(Pass::written))
}

/// Returns the request for the scheduler, with the recorded log-probabilities of the sequences that it names. If this
/// process executes it, its examples are checked now, so that the engine has them ready when their turn comes.
pub(crate) async fn prepare(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    seq_id: i64,
    pass: Result<Pass, OpError>,
    body: &RawBody,
) -> Result<RunSubmission, ApiError> {
    let new = |kind| RunSubmission::new(run.id.clone(), seq_id, kind);
    let Pass { kind, payload, examples, named } = match pass {
        Ok(pass) => pass,
        Err(error) => return Ok(submit::rejected(new(RequestKind::ForwardBackward), error, &body.bytes)),
    };
    let identity = payload.clone();
    let refuse = |error| {
        let rejected = submit::rejected(new(kind), error, &body.bytes);
        Ok(RunSubmission { identity: identity.clone(), ..rejected })
    };
    let batch = read_examples(state, tenant, run, examples, body).await?;
    let (mut payload, mut batch) = match (named, batch) {
        (Some(request), Ok(batch)) => match recorded::resolve(state, tenant, *request, batch).await? {
            Ok((request, batch)) => (training::encode(&request), Ok(batch)),
            Err(error) => return refuse(error),
        },
        (_, batch) => (payload, batch),
    };
    if let Ok(found) = &mut batch {
        match custom_loss(state, tenant, run, found).await? {
            Ok(Some(definition)) => payload = custom_loss::with_definition(&payload, &definition),
            Ok(None) => {}
            Err(error) => return refuse(error),
        }
    }
    let tokens = batch.as_ref().map_or(0, tokens);
    let decoded = decoded(state, run, batch, body).await?;
    Ok(RunSubmission { payload, decoded, identity: identity.clone(), tokens, ..new(kind) })
}

/// Returns the examples for the model of a run. Their images are counted, and decoded by the worker. The inner error is the
/// user's.
async fn read_examples(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    examples: Examples,
    body: &RawBody,
) -> Result<Result<RawBatch, OpError>, ApiError> {
    let rules = state.image_rules(&run.spec.base_model);
    match examples {
        Examples::Read(batch) => Ok(batch.and_then(|batch| {
            training::check_placeholders(&batch, &rules)?;
            Ok(batch)
        })),
        Examples::WithImages(request) => {
            let read = move || {
                let batch = training::batch(*request, &rules);
                let images = batch.iter().flat_map(|batch| &batch.data).flat_map(|datum| &datum.images);
                let pixels = file_pixels(images);
                (batch, pixels)
            };
            let (batch, pixels) = beside(body.bytes.len(), read).await?;
            state.take_pixels(tenant, pixels)?;
            Ok(batch)
        }
    }
}

/// Adds the custom loss that a batch names to the batch. Returns its definition, or the reason why it is missing.
async fn custom_loss(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
    batch: &mut RawBatch,
) -> Result<Result<Option<Bytes>, OpError>, ApiError> {
    let id = match training::custom_loss_id(batch) {
        Ok(Some(id)) => CustomLossId::new(id),
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let unknown =
        || OpError::user(format!("loss_fn_config.loss_id: the run's session has no custom loss {:?}", id.as_str()));
    match state.scheduler.custom_loss(tenant, &id).await {
        Ok((session, definition)) if session == run.session => {
            batch.custom_loss = Some(custom_loss::read(&definition));
            Ok(Ok(Some(definition)))
        }
        Ok(_) | Err(Error::NotFound { .. }) => Ok(Err(unknown())),
        Err(error) => Err(error.into()),
    }
}

async fn decoded(
    state: &AppState,
    run: &Run,
    batch: Result<RawBatch, OpError>,
    body: &RawBody,
) -> Result<Decoded, ApiError> {
    let base_model = run.spec.base_model.clone();
    let Some(preparer) = state.preparer.clone().filter(|_| state.scheduler.serves_here(&base_model)) else {
        return Ok(Decoded::default());
    };
    let batch = match batch {
        Ok(batch) if batch.data.iter().any(|datum| !datum.images.is_empty()) => return Ok(Decoded::default()),
        Ok(batch) => beside(body.bytes.len(), move || preparer.prepare(&base_model, batch)).await?,
        Err(error) => Err(error),
    };
    Ok(Decoded::new(PreparedContent::Batch(batch)))
}

/// Returns the cost of a batch: the tokens of its examples with their targets.
fn tokens(batch: &RawBatch) -> u64 {
    let cost = |datum: &Datum| {
        let targets = datum.loss_fn_inputs.get("target_tokens").and_then(|tensor| tensor.shape.get(1));
        let (tokens, targets) = (datum.tokens.len() as u64, targets.map_or(1, |&k| k as u64));
        match batch.custom_loss {
            Some(_) => custom_loss_tokens(tokens, targets),
            None => scored_tokens(tokens, targets),
        }
    };
    batch.data.iter().map(cost).fold(0, u64::saturating_add)
}

#[cfg(test)]
#[path = "forward_backward_tests.rs"]
mod tests;
