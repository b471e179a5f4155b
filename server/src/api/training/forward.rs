//! Handler of `POST forward`.

use axum::extract::State;
use bytes::Bytes;
use trainyard_wire::futures::SubmitResponse;
use trainyard_wire::json;
use trainyard_wire::training::ForwardBody;

use super::forward_backward::{Pass, prepare};
use crate::api::request::body::RawBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::Reply;
use crate::api::request::submit;
use crate::auth::Tenant;
use crate::state::AppState;

/// Computes a loss without its gradient. The body is JSON, as older clients send it.
#[utoipa::path(
    post, path = "/api/v1/forward", tag = "training", request_body = ForwardBody,
    responses((status = 200, description = "accepted; the response names its future", body = SubmitResponse), Refusals),
)]
pub(in crate::api) async fn forward(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    body: RawBody,
) -> Reply<SubmitResponse> {
    let mut body = body.into_json();
    let read = |bytes: &Bytes| {
        let request = json::parse::<ForwardBody>(bytes).and_then(ForwardBody::into_proto);
        (json::training_ids(bytes), request.map(Pass::written))
    };
    let (found, request) = body.decode(read).await?;
    let (run, seq_id) = submit::ids(found, request.as_ref().err())?;
    let run = submit::find_run(&state, &tenant, &run, seq_id).await?;
    let submission = prepare(&state, &tenant, &run, seq_id, request, &body).await?;
    submit::submit(&state, &tenant, submission).await
}
