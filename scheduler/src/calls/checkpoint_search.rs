//! Searches for checkpoints by page.

use trainyard_protocol::TenantId;

use crate::store::checkpoint_search::{Candidate, checkpoints_behind};
use crate::{CheckpointPosition, CheckpointSearch, Error, FoundCheckpoints, Scheduler};

/// Number of checkpoints that are read at once.
const BATCH: u32 = 500;
/// Most checkpoints that one search examines: then it returns those found, and the position to continue from.
const MOST: u32 = 20_000;

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
        let (mut checkpoints, mut after, mut seen) = (Vec::new(), search.after.clone(), 0);
        loop {
            let batch = checkpoints_behind(conn, tenant, search.scope, after.as_ref(), BATCH, now).await?;
            let is_last = batch.len() < BATCH as usize;
            seen += BATCH;
            for candidate in batch {
                let checkpoint = &candidate.checkpoint;
                let place = CheckpointPosition { created_at: checkpoint.created_at, path: checkpoint.path.clone() };
                if search.matches(&candidate) {
                    if checkpoints.len() == limit {
                        return Ok(FoundCheckpoints { checkpoints, next: after });
                    }
                    checkpoints.push(candidate.checkpoint);
                }
                after = Some(place);
            }
            if is_last || seen >= MOST {
                return Ok(FoundCheckpoints { checkpoints, next: after.filter(|_| !is_last) });
            }
        }
    }
}

impl CheckpointSearch {
    fn matches(&self, Candidate { checkpoint, owner, project_id }: &Candidate) -> bool {
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
