//! Resolves a request's field `model`.

use trainyard_protocol::{BaseModel, SamplingSessionId, TenantId, TinkerPath};

use super::sampling_sessions::{Source, Weights};
use crate::error::ApiError;
use crate::exports::{ensure_readable, is_sampled};
use crate::state::AppState;

/// Prefix of tinker paths.
const SCHEME: &str = "tinker://";
/// Part of the ids of sampling sessions, and of no other name.
const SAMPLER: &str = ":sample:";

/// Weights to sample from.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The base model, or that of the checkpoint or the sampling session.
    pub(crate) base: BaseModel,
    pub(crate) source: Source,
}

/// The parts of a name: a base model, a checkpoint, or both.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    base: Option<&'a str>,
    path: Option<&'a str>,
}

fn parts(name: &str) -> Parts<'_> {
    if name.starts_with(SCHEME) {
        return Parts { base: None, path: Some(name) };
    }
    match name.split_once(';') {
        Some((base, path)) => Parts { base: Some(base), path: Some(path) },
        None => Parts { base: Some(name), path: None },
    }
}

/// Returns whether a name is the id of a sampling session.
pub(crate) fn is_sampler(name: &str) -> bool {
    !name.starts_with(SCHEME) && name.contains(SAMPLER)
}

/// Resolves a name for a tenant. Models that do not exist and models of other tenants are refused alike.
///
/// # Errors
///
/// [`ApiError::NotFound`] for an unknown model, and [`ApiError::Invalid`] if base model and checkpoint do not fit.
pub(crate) async fn resolve(state: &AppState, tenant: &TenantId, name: &str) -> Result<Target, ApiError> {
    let unknown = || ApiError::NotFound { what: "model", id: name.to_owned() };
    if is_sampler(name) {
        return of_sampler(state, tenant, name).await?.ok_or_else(unknown);
    }
    let base_model = |name: &str| state.model(&state.base_name(name.to_owned()));
    let Parts { base, path } = parts(name);
    let named = base.map(|base| base_model(base).ok_or_else(unknown)).transpose()?;
    let Some(path) = path else {
        let base = named.ok_or_else(unknown)?;
        let source = Source { base_model: base.name.clone(), weights: Weights::Base };
        return Ok(Target { base, source });
    };
    let path: TinkerPath = path.parse().map_err(|_| unknown())?;
    if !is_sampled(path.kind) {
        return Err(ApiError::invalid(format!(
            "model: expected sampler_weights/<name> or external_weights/<name>, found {path}"
        )));
    }
    let found = match state.scheduler.checkpoint(tenant, &path).await {
        Err(trainyard_scheduler::Error::NotFound { .. }) => return Err(unknown()),
        found => found?,
    };
    ensure_readable(&state.storage, "model", &found).await?;
    let own = &found.spec.base_model;
    let base = match named {
        Some(named) if named.name != *own => {
            if !state.scheduler.are_same_weights(&named.name, own).await? {
                let text = format!("model: {path} has the base model {own:?}, not {:?}", named.name);
                return Err(ApiError::invalid(text));
            }
            named
        }
        _ => state.model(own).ok_or_else(unknown)?,
    };
    let weights = Weights::Checkpoint(path.to_string(), found.dir);
    let source = Source { base_model: base.name.clone(), weights };
    Ok(Target { base, source })
}

/// The weights of a tenant's sampling session; `None` if it has none with this id.
async fn of_sampler(state: &AppState, tenant: &TenantId, id: &str) -> Result<Option<Target>, ApiError> {
    let id = SamplingSessionId::new(id);
    let found = match state.scheduler.sampling_session(tenant, &id).await {
        Err(trainyard_scheduler::Error::NotFound { .. }) => return Ok(None),
        found => found?,
    };
    let Some(base) = state.model(&found.base_model) else { return Ok(None) };
    let weights = Weights::Sampler { session: found.session.clone(), id };
    let source = Source { base_model: base.name.clone(), weights };
    Ok(Some(Target { base, source }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_three_forms() {
        let path = "tinker://s:train:0/sampler_weights/a";
        assert_eq!(parts("acme/tiny"), Parts { base: Some("acme/tiny"), path: None });
        assert_eq!(parts(path), Parts { base: None, path: Some(path) });
        assert_eq!(parts(&format!("acme/tiny;{path}")), Parts { base: Some("acme/tiny"), path: Some(path) });
        assert!(is_sampler("0199c5a4:sample:3"));
        assert!(!is_sampler("tinker://s:sample:0/sampler_weights/a") && !is_sampler("acme/sample"));
    }
}
