//! Extractors of paths and queries whose refusals are JSON.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use serde::de::DeserializeOwned;
use trainyard_protocol::{CheckpointKind, RunId, TinkerPath};

use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Path parameters, decoded; refusals are JSON.
pub(crate) struct ApiPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value))
            .map_err(|error: PathRejection| ApiError::invalid(format!("the path is invalid: {}", error.body_text())))
    }
}

/// Query parameters, decoded; refusals are JSON.
pub(crate) struct ApiQuery<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(value)| Self(value))
            .map_err(|error: QueryRejection| ApiError::invalid(query_error(&error.body_text())))
    }
}

/// Returns the message for an invalid query, which names the field.
fn query_error(text: &str) -> String {
    const FRAME: &str = "Failed to deserialize query string: ";
    text.strip_prefix(FRAME).map_or_else(|| format!("the query is invalid: {text}"), str::to_owned)
}

/// Returns the checkpoint of `{run}/…/{kind}/{name}`. A name that can't exist is reported as not found. A kind that
/// can't exist is reported as invalid, because the id lacks its kind.
pub(crate) fn checkpoint_path(run: String, kind: String, name: String) -> Result<TinkerPath, ApiError> {
    let missing = || ApiError::NotFound { what: "checkpoint", id: format!("{run}/{kind}/{name}") };
    let kind = CheckpointKind::from_segment(&kind).ok_or_else(|| no_kind(&format!("{kind}/{name}")))?;
    let name = name.parse().map_err(|_| missing())?;
    Ok(TinkerPath { run: RunId::new(run.clone()), kind, name })
}

/// Returns the error for an id without a kind.
fn no_kind(id: &str) -> ApiError {
    ApiError::invalid(format!(
        "checkpoint id: {id:?} has no kind; expected weights/<name>, sampler_weights/<name> or external_weights/<name>"
    ))
}

/// Answers methods that need a longer path than `{run_id}/checkpoints/{kind}[/{name}]`. The run is looked up first;
/// then the id is refused as incomplete.
pub(crate) async fn incomplete_checkpoint_id(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    method: Method,
    uri: Uri,
    ApiPath(parts): ApiPath<Vec<(String, String)>>,
) -> ApiError {
    let mut values = parts.into_iter().map(|(_, value)| value);
    let (run, id) = (values.next().unwrap_or_default(), values.collect::<Vec<_>>());
    if let Err(error) = state.scheduler.run(&tenant, &RunId::new(run)).await {
        return error.into();
    }
    match id.as_slice() {
        [kind, _] if CheckpointKind::from_segment(kind).is_some() => {
            ApiError::MethodNotAllowed { method: method.to_string(), path: uri.path().to_owned() }
        }
        [kind, _action] => no_kind(kind),
        id => no_kind(&id.join("/")),
    }
}
