//! Handler of `POST cancel_future`.

use axum::extract::State;
use trainyard_protocol::RequestId;
use trainyard_wire::futures::{CancelFutureRequest, CancelFutureResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Cancels a sample. The call can be repeated. A sample that has finished keeps its result.
#[utoipa::path(
    post, path = "/api/v1/cancel_future", tag = "futures", request_body = CancelFutureRequest,
    responses((status = 200, description = "success", body = CancelFutureResponse), Refusals),
)]
pub(in crate::api) async fn cancel_future(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<CancelFutureRequest>,
) -> Reply<CancelFutureResponse> {
    state.scheduler.cancel(&tenant, &RequestId::new(request.request_id)).await?;
    Ok(Answer(CancelFutureResponse {}))
}
