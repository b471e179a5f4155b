//! What the listings share: pages, and catalogue entries as the wire writes them.

use trainyard_protocol::{CheckpointKind, TenantId};
use trainyard_scheduler::{AccessScope, Checkpoint, NumericsChange, Page, Run};
use trainyard_wire::catalogue::{self, PageQuery};
use trainyard_wire::timestamp::rfc3339;

use crate::error::ApiError;
use crate::state::AppState;

/// Most entries of one page.
const MAX_PAGE: u32 = 1_000;
/// Checkpoints looked at together when the newest of a kind is searched.
const SEARCH_PAGE: u32 = 200;

/// Checks a page. A limit that is too large is refused: a shorter page would look like the last one.
pub(crate) fn page(query: &PageQuery) -> Result<Page, ApiError> {
    if !(1..=MAX_PAGE).contains(&query.limit) {
        return Err(ApiError::invalid(format!("limit: {} is not between 1 and {MAX_PAGE}", query.limit)));
    }
    if i64::try_from(query.offset).is_err() {
        return Err(ApiError::invalid(format!("offset: {} is too large", query.offset)));
    }
    Ok(Page { limit: query.limit, offset: query.offset })
}

/// Whose objects are asked for.
pub(crate) fn scope(access_scope: Option<&str>) -> Result<AccessScope, ApiError> {
    match access_scope {
        None | Some("owned") => Ok(AccessScope::Owned),
        Some("accessible") => Ok(AccessScope::Accessible),
        Some(scope) => {
            Err(ApiError::invalid(format!("access_scope: {scope:?} is neither \"owned\" nor \"accessible\"")))
        }
    }
}

/// Where a page lies.
pub(crate) fn cursor(page: Page, total_count: u64) -> catalogue::Cursor {
    catalogue::Cursor { offset: page.offset, limit: page.limit, total_count }
}

/// A checkpoint as the wire writes it.
pub(crate) fn checkpoint(found: Checkpoint) -> catalogue::Checkpoint {
    catalogue::Checkpoint {
        checkpoint_id: format!("{}/{}", found.path.kind.segment(), found.path.name),
        base_model: found.spec.base_model,
        checkpoint_type: found.path.kind.wire_name().to_owned(),
        time: rfc3339(found.created_at.as_millis()),
        tinker_path: found.path.to_string(),
        size_bytes: found.size_bytes,
        public: found.public,
        expires_at: found.expires_at.map(|time| rfc3339(time.as_millis())),
        user_metadata: found.user_metadata,
    }
}

/// A run with the newest of its checkpoints that the tenant may read, as the wire writes it.
pub(crate) async fn training_run(
    state: &AppState,
    tenant: &TenantId,
    run: Run,
) -> Result<catalogue::TrainingRun, ApiError> {
    let (training, sampler) = newest(state, tenant, &run).await?;
    Ok(catalogue::TrainingRun {
        training_run_id: run.id.to_string(),
        base_model: run.spec.base_model,
        model_owner: run.owner.to_string(),
        is_lora: run.spec.lora.is_some(),
        lora_rank: run.spec.lora.map(|lora| lora.rank),
        corrupted: run.corrupted,
        last_request_time: rfc3339(run.last_request_at.as_millis()),
        last_checkpoint: training.map(checkpoint),
        last_sampler_checkpoint: sampler.map(checkpoint),
        user_metadata: run.user_metadata,
        numerics_changed: run.numerics_changes.into_iter().map(numerics_change).collect(),
    })
}

/// A change as the wire writes it.
pub(crate) fn numerics_change(change: NumericsChange) -> catalogue::NumericsChange {
    let NumericsChange { at, from, to } = change;
    catalogue::NumericsChange { time: rfc3339(at), from, to }
}

/// The newest training and the newest sampler checkpoint of a run.
async fn newest(
    state: &AppState,
    tenant: &TenantId,
    run: &Run,
) -> Result<(Option<Checkpoint>, Option<Checkpoint>), ApiError> {
    let (mut training, mut sampler) = (None, None);
    let mut page = Page { limit: SEARCH_PAGE, offset: 0 };
    loop {
        let (found, total) = state.scheduler.run_checkpoints(tenant, &run.id, page).await?;
        let last = found.is_empty() || page.offset + u64::from(page.limit) >= total;
        for checkpoint in found {
            match checkpoint.path.kind {
                CheckpointKind::Training if training.is_none() => training = Some(checkpoint),
                CheckpointKind::Sampler if sampler.is_none() => sampler = Some(checkpoint),
                CheckpointKind::Training | CheckpointKind::Sampler | CheckpointKind::External => {}
            }
        }
        if last || (training.is_some() && sampler.is_some()) {
            return Ok((training, sampler));
        }
        page.offset += u64::from(page.limit);
    }
}
