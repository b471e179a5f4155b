//! Lists models for `GET models`.

use trainyard_protocol::{BaseModel, CheckpointKind, TenantId};
use trainyard_scheduler::{AccessScope, Checkpoint, Page};
use trainyard_wire::openai::{ModelEntry, ModelsResponse};

use super::super::agents::{self, Agent};
use super::super::model_name::{Target, resolve};
use super::super::sampling_sessions::Weights;
use crate::error::ApiError;
use crate::state::AppState;

/// Number of checkpoints that are read at once.
const PAGE: u32 = 1_000;
/// Maximum number of checkpoints that are read.
const MAX_CHECKPOINTS: u64 = 10_000;

/// Lists the base models, then the tenant's sampler checkpoints; for an agent session only its weights.
pub(crate) async fn models(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
) -> Result<ModelsResponse, ApiError> {
    if let Some(session) = agents::open(agent, state, tenant).await? {
        let data = vec![entry(state, tenant, &session.model()).await?];
        return Ok(ModelsResponse { object: "list".to_owned(), data });
    }
    let base = state.models.list();
    let mut data: Vec<ModelEntry> = base.iter().map(of_base).collect();
    let mut offset = 0;
    while offset < MAX_CHECKPOINTS {
        let (found, total) =
            state.scheduler.checkpoints(tenant, AccessScope::Owned, Page { limit: PAGE, offset }).await?;
        if found.is_empty() {
            break;
        }
        offset += found.len() as u64;
        for checkpoint in found.iter().filter(|checkpoint| checkpoint.path.kind == CheckpointKind::Sampler) {
            let Some(base) = base.iter().find(|model| model.name == checkpoint.spec.base_model) else { continue };
            data.push(of_checkpoint(checkpoint, base));
        }
        if offset >= total {
            break;
        }
    }
    Ok(ModelsResponse { object: "list".to_owned(), data })
}

/// Returns the model with this name, which an agent session must sample from.
///
/// # Errors
///
/// Fails if the tenant or the session does not have the model.
pub(crate) async fn model(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
    name: &str,
) -> Result<ModelEntry, ApiError> {
    match agents::open(agent, state, tenant).await? {
        Some(session) if session.model() != name => Err(ApiError::NotFound { what: "model", id: name.to_owned() }),
        _ => entry(state, tenant, name).await,
    }
}

async fn entry(state: &AppState, tenant: &TenantId, name: &str) -> Result<ModelEntry, ApiError> {
    let Target { base, source, .. } = resolve(state, tenant, name).await?;
    let entry = match source.weights {
        Weights::Base => of_base(&base),
        Weights::Sampler { .. } => {
            ModelEntry { owned_by: "user".to_owned(), root: Some(base.name.clone()), ..of_base(&base) }
        }
        Weights::Checkpoint(path, _) => {
            let path = path.parse().map_err(|_| ApiError::NotFound { what: "model", id: name.to_owned() })?;
            of_checkpoint(&state.scheduler.checkpoint(tenant, &path).await?, &base)
        }
    };
    Ok(ModelEntry { id: name.to_owned(), ..entry })
}

fn of_base(model: &BaseModel) -> ModelEntry {
    ModelEntry {
        id: model.name.clone(),
        object: "model".to_owned(),
        created: 0,
        owned_by: "trainyard".to_owned(),
        root: None,
        max_model_len: model.max_context_length as u64,
    }
}

fn of_checkpoint(checkpoint: &Checkpoint, base: &BaseModel) -> ModelEntry {
    ModelEntry {
        id: checkpoint.path.to_string(),
        object: "model".to_owned(),
        created: checkpoint.created_at.as_millis() / 1_000,
        owned_by: "user".to_owned(),
        root: Some(base.name.clone()),
        max_model_len: base.max_context_length as u64,
    }
}
