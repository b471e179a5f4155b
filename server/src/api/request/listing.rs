//! Pages of listings, and entries of the catalogue in the form of the API.

use trainyard_protocol::{CheckpointKind, TenantId};
use trainyard_scheduler::budgets::PAGE_BYTES;
use trainyard_scheduler::{AccessScope, Checkpoint, NumericsChange, Page, Run};
use trainyard_wire::catalogue::{self, PageQuery};
use trainyard_wire::timestamp::rfc3339;

use crate::budgets::LISTED_ENTRIES;
use crate::error::ApiError;
use crate::state::AppState;

/// Checks a page. A limit that is too large is refused, because a shorter page would look like the last one.
pub(crate) fn page(query: &PageQuery) -> Result<Page, ApiError> {
    if !(1..=LISTED_ENTRIES).contains(&query.limit) {
        return Err(ApiError::invalid(format!("limit: {} is not between 1 and {LISTED_ENTRIES}", query.limit)));
    }
    if i64::try_from(query.offset).is_err() {
        return Err(ApiError::invalid(format!("offset: {} is too large", query.offset)));
    }
    Ok(Page { limit: query.limit, offset: query.offset })
}

/// Parses the scope of a listing: whose objects it contains.
pub(crate) fn scope(access_scope: Option<&str>) -> Result<AccessScope, ApiError> {
    match access_scope {
        None | Some("owned") => Ok(AccessScope::Owned),
        Some("accessible") => Ok(AccessScope::Accessible),
        Some(scope) => {
            Err(ApiError::invalid(format!("access_scope: expected \"owned\" or \"accessible\", found {scope:?}")))
        }
    }
}

/// Returns the position of a page.
pub(crate) fn cursor(page: Page, total_count: u64) -> catalogue::Cursor {
    catalogue::Cursor { offset: page.offset, limit: page.limit, total_count }
}

/// Converts a checkpoint to the form of the API.
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

/// Converts a run to the form of the API, with the newest of its checkpoints that the tenant may read.
pub(crate) async fn training_run(
    state: &AppState,
    tenant: &TenantId,
    run: Run,
) -> Result<catalogue::TrainingRun, ApiError> {
    let training = state.scheduler.newest_checkpoint(tenant, &run.id, CheckpointKind::Training).await?;
    let sampler = state.scheduler.newest_checkpoint(tenant, &run.id, CheckpointKind::Sampler).await?;
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

/// Converts a change of numerics to the form of the API.
pub(crate) fn numerics_change(change: NumericsChange) -> catalogue::NumericsChange {
    let NumericsChange { at, from, to } = change;
    catalogue::NumericsChange { time: rfc3339(at), from, to }
}

/// Converts runs like [`training_run`]. A page with too much metadata is refused, because a truncated one would look
/// like the last.
pub(crate) async fn page_of_runs(
    state: &AppState,
    tenant: &TenantId,
    runs: Vec<Run>,
) -> Result<Vec<catalogue::TrainingRun>, ApiError> {
    let mut page = Vec::with_capacity(runs.len());
    let mut bytes = 0;
    for run in runs {
        let run = training_run(state, tenant, run).await?;
        bytes += metadata_bytes(&run);
        if bytes > PAGE_BYTES && !page.is_empty() {
            let (mib, fit) = (PAGE_BYTES >> 20, page.len());
            return Err(ApiError::invalid(format!(
                "limit: the page has more than {mib} MiB of user_metadata, which its first {fit} entries fill; ask for \
                 fewer entries at once"
            )));
        }
        page.push(run);
    }
    Ok(page)
}

/// Returns the size of the metadata of a run and of the checkpoints in its entry, in bytes.
fn metadata_bytes(run: &catalogue::TrainingRun) -> usize {
    let checkpoints = [&run.last_checkpoint, &run.last_sampler_checkpoint].into_iter().flatten();
    let all = checkpoints.map(|checkpoint| &checkpoint.user_metadata).chain([&run.user_metadata]);
    all.flatten().map(|(key, value)| key.len() + value.len()).sum()
}
