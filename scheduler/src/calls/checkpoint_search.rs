//! Searches for checkpoints by page.

use trainyard_protocol::TenantId;

use crate::budgets::{PAGE_BYTES, SEARCHED_BYTES, SEARCHED_ENTRIES};
use crate::store::checkpoint_search::{Candidate, checkpoints_behind};
use crate::{CheckpointPosition, CheckpointSearch, Error, FoundCheckpoints, Scheduler};

/// Number of checkpoints that are read at once.
const BATCH: u32 = 500;

impl Scheduler {
    /// Searches the checkpoints that the tenant may list, newest first. A page may be shorter than requested although
    /// it is not the last.
    pub async fn search_checkpoints(
        &self,
        tenant: &TenantId,
        search: &CheckpointSearch,
    ) -> Result<FoundCheckpoints, Error> {
        let (conn, now) = (&mut self.core.reader_of(tenant).await?, self.core.now());
        let limit = search.limit.max(1) as usize;
        let (mut found, mut found_bytes, mut after) = (Vec::new(), 0, search.after.clone());
        let (mut seen, mut seen_bytes) = (0, 0);
        loop {
            // One more than the page, to know whether it is the last.
            let batch = if search.has_conditions() { BATCH } else { BATCH.min(search.limit.max(1) + 1) };
            let batch = checkpoints_behind(conn, tenant, search.scope, after.as_ref(), batch, now).await?;
            for candidate in batch.checkpoints {
                (seen, seen_bytes) = (seen + 1, seen_bytes + candidate.bytes);
                let checkpoint = &candidate.checkpoint;
                let place = CheckpointPosition { created_at: checkpoint.created_at, path: checkpoint.path.clone() };
                if search.matches(&candidate) {
                    found_bytes += candidate.bytes;
                    if found.len() == limit || (found_bytes > PAGE_BYTES && !found.is_empty()) {
                        return Ok(FoundCheckpoints { checkpoints: found, next: after });
                    }
                    found.push(candidate.checkpoint);
                }
                after = Some(place);
            }
            if batch.is_last || seen >= SEARCHED_ENTRIES || seen_bytes >= SEARCHED_BYTES {
                return Ok(FoundCheckpoints { checkpoints: found, next: after.filter(|_| !batch.is_last) });
            }
        }
    }
}

impl CheckpointSearch {
    /// Whether some checkpoints in its scope may not match.
    fn has_conditions(&self) -> bool {
        let Self { scope: _, owners, project_ids, user_metadata, kind, base_models, limit: _, after: _ } = self;
        owners.is_some()
            || project_ids.is_some()
            || kind.is_some()
            || base_models.is_some()
            || !user_metadata.is_empty()
    }

    fn matches(&self, Candidate { checkpoint, owner, project_id, bytes: _ }: &Candidate) -> bool {
        let base_model = &checkpoint.spec.base_model;
        self.owners.as_ref().is_none_or(|owners| owners.contains(owner))
            && self.kind.is_none_or(|kind| kind == checkpoint.path.kind)
            && self.base_models.as_ref().is_none_or(|models| models.contains(base_model))
            && self.user_metadata.iter().all(|(key, value)| checkpoint.user_metadata.get(key) == Some(value))
            && self
                .project_ids
                .as_ref()
                .is_none_or(|projects| project_id.as_ref().is_some_and(|project| projects.contains(project)))
    }
}
