//! Path and query extractors whose refusals are JSON.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use serde::de::DeserializeOwned;
use trainyard_protocol::{CheckpointKind, RunId, TinkerPath};

use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Decoded path parameters.
pub(crate) struct ApiPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value))
            .map_err(|error: PathRejection| ApiError::invalid(format!("the path is invalid: {}", error.body_text())))
    }
}

/// Decoded query parameters.
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

/// What is wrong with a query, which names the field.
fn query_error(text: &str) -> String {
    const FRAME: &str = "Failed to deserialize query string: ";
    text.strip_prefix(FRAME).map_or_else(|| format!("the query is invalid: {text}"), str::to_owned)
}

/// The checkpoint that `{run}/…/{kind}/{name}` names. One that can't exist is not found, but a kind that can't exist is
/// the client's mistake: it left the kind out.
pub(crate) fn checkpoint_path((run, kind, name): (String, String, String)) -> Result<TinkerPath, ApiError> {
    let missing = || ApiError::NotFound { what: "checkpoint", id: format!("{run}/{kind}/{name}") };
    let kind = CheckpointKind::from_segment(&kind).ok_or_else(|| no_kind(&format!("{kind}/{name}")))?;
    let name = name.parse().map_err(|_| missing())?;
    Ok(TinkerPath { run: RunId::new(run.clone()), kind, name })
}

/// Why an id names no checkpoint.
fn no_kind(id: &str) -> ApiError {
    ApiError::invalid(format!(
        "checkpoint id: {id:?} has no kind; expected weights/<name>, sampler_weights/<name> or external_weights/<name>"
    ))
}

/// What `{run_id}/checkpoints/{kind}[/{name}]` answers to methods that need more of the path: the run is looked up first,
/// then the id is said to be incomplete.
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
