//! Access to another tenant's checkpoints with one of that tenant's keys.

use trainyard_protocol::{TenantId, TinkerPath};
use trainyard_scheduler::Error;

use crate::error::ApiError;
use crate::state::AppState;

/// Returns the tenant in whose name a checkpoint is read: the caller, or, if the caller may not read it, the tenant
/// whose key is `weights_access_token`.
///
/// # Errors
///
/// [`ApiError::Forbidden`] if the token is not a valid key for checkpoints. The error does not reveal whether the
/// checkpoint exists.
pub(crate) async fn reader(
    state: &AppState,
    tenant: &TenantId,
    path: &TinkerPath,
    token: Option<&str>,
) -> Result<TenantId, ApiError> {
    let Some(token) = token else { return Ok(tenant.clone()) };
    match state.scheduler.checkpoint(tenant, path).await {
        Ok(_) => Ok(tenant.clone()),
        Err(Error::NotFound { .. }) => state.auth.reader(token, tenant).await?.ok_or(UNKNOWN),
        Err(error) => Err(error.into()),
    }
}

const UNKNOWN: ApiError =
    ApiError::Forbidden("weights_access_token: expected a valid API key that may read checkpoints");
