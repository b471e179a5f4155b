//! `GET models`.

use trainyard_protocol::{CheckpointKind, TenantId};
use trainyard_scheduler::{AccessScope, Page};
use trainyard_wire::openai::{ModelEntry, ModelsResponse};

use crate::error::ApiError;
use crate::state::AppState;

/// Checkpoints that are looked at together.
const PAGE: u32 = 1_000;
/// Checkpoints that are looked at.
const MAX_CHECKPOINTS: u64 = 10_000;

/// The base models, then the tenant's sampler checkpoints.
pub(crate) async fn models(state: &AppState, tenant: &TenantId) -> Result<ModelsResponse, ApiError> {
    let base = state.models.list();
    let mut data: Vec<ModelEntry> = base
        .iter()
        .map(|model| ModelEntry {
            id: model.name.clone(),
            object: "model".to_owned(),
            created: 0,
            owned_by: "trainyard".to_owned(),
            root: None,
            max_model_len: model.max_context_length as u64,
        })
        .collect();
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
            data.push(ModelEntry {
                id: checkpoint.path.to_string(),
                object: "model".to_owned(),
                created: checkpoint.created_at.as_millis() / 1_000,
                owned_by: "user".to_owned(),
                root: Some(base.name.clone()),
                max_model_len: base.max_context_length as u64,
            });
        }
        if offset >= total {
            break;
        }
    }
    Ok(ModelsResponse { object: "list".to_owned(), data })
}
