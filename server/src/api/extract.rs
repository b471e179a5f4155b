//! Path and query extractors whose refusals are JSON.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use trainyard_protocol::{CheckpointKind, RunId, TinkerPath};

use crate::error::ApiError;

/// Decoded path parameters.
pub(super) struct ApiPath<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value))
            .map_err(|error: PathRejection| ApiError::invalid(format!("the path is invalid: {}", error.body_text())))
    }
}

/// Decoded query parameters.
pub(super) struct ApiQuery<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(value)| Self(value))
            .map_err(|error: QueryRejection| ApiError::invalid(format!("the query is invalid: {}", error.body_text())))
    }
}

/// The checkpoint that `{run}/…/{kind}/{name}` names. One that can't exist is not found.
pub(super) fn checkpoint_path((run, kind, name): (String, String, String)) -> Result<TinkerPath, ApiError> {
    let missing = || ApiError::NotFound { what: "checkpoint", id: format!("{run}/{kind}/{name}") };
    let kind = CheckpointKind::from_segment(&kind).ok_or_else(missing)?;
    let name = name.parse().map_err(|_| missing())?;
    Ok(TinkerPath { run: RunId::new(run.clone()), kind, name })
}
