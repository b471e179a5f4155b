//! Names of base models that are aliases of the same weights.

use trainyard_protocol::OpError;

use crate::error::ApiError;
use crate::state::AppState;

/// Returns the name `found` in a checkpoint for its base model, if `wanted` is another name of the same weights. The
/// inner error reports that the checkpoint does not fit; it names `field`, which contains `wanted`.
///
/// # Errors
///
/// [`ApiError`] if the store fails.
pub(crate) async fn other_name(
    state: &AppState,
    field: &str,
    wanted: &str,
    found: &str,
) -> Result<Result<Option<String>, OpError>, ApiError> {
    if wanted == found {
        return Ok(Ok(None));
    }
    if state.scheduler.are_same_weights(wanted, found).await? {
        return Ok(Ok(Some(found.to_owned())));
    }
    let text = format!("{field}: the checkpoint's base model {found:?} is not {wanted:?}, nor an alias of its weights");
    Ok(Err(OpError::user(text)))
}
