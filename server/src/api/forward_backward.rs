//! `POST forward_backward`.

use axum::extract::State;
use trainyard_protocol::OpError;
use trainyard_scheduler::RequestKind;

use super::body::{Media, RawBody};
use super::respond::Reply;
use super::submit::{self, Prepared};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::futures::SubmitResponse;
use crate::wire::json;
use crate::wire::proto::ForwardBackwardRequest;
use crate::wire::training::{self, ForwardBackwardBody};

/// Computes a loss and adds its gradient to the run's, unless `forward_only`. The body is the protobuf
/// message `ForwardBackwardRequest` (see `tinker_public.proto`), plain or compressed with zstd, or JSON.
#[utoipa::path(
    post, path = "/api/v1/forward_backward", tag = "training",
    request_body(content((Vec<u8> = "application/x-protobuf"), (ForwardBackwardBody = "application/json"))),
    responses((status = 200, body = SubmitResponse), Refusals),
)]
pub(super) async fn forward_backward(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let (found, request) = match body.media {
        Media::Protobuf => (training::proto_ids(&body.bytes), training::decode(body.bytes.clone())),
        Media::Json => (
            json::training_ids(&body.bytes),
            json::parse::<ForwardBackwardBody>(&body.bytes).and_then(ForwardBackwardBody::into_proto),
        ),
        Media::Other => {
            let text = "content-type must be application/x-protobuf or application/json".to_owned();
            return Err(ApiError::UnsupportedMediaType(text));
        }
    };
    let (run, seq_id) = submit::ids(found, request.as_ref().err())?;
    let run = submit::find_run(&state, &tenant, &run, seq_id).await?;
    let (kind, prepared) = prepare(request, &body);
    submit::submit(&state, &tenant, &run, seq_id, kind, prepared).await
}

/// What is stored: the message as the client sent it, or as it is written from JSON. The content is
/// checked when it runs.
pub(super) fn prepare(request: Result<ForwardBackwardRequest, OpError>, body: &RawBody) -> (RequestKind, Prepared) {
    match request {
        Ok(request) => {
            let kind = if request.forward_only { RequestKind::Forward } else { RequestKind::ForwardBackward };
            let payload = match body.media {
                Media::Protobuf => body.bytes.clone(),
                Media::Json | Media::Other => training::encode(&request),
            };
            (kind, Prepared { identity: payload.clone(), payload, rejected: None })
        }
        Err(error) => (RequestKind::ForwardBackward, Prepared::rejected(error, &body.bytes)),
    }
}
