//! Writes the effects of a request in the transaction that records its outcome.

use std::path::PathBuf;

use trainyard_protocol::{CheckpointKind, OpError, RequestId, RunId};

use crate::calls::upload_checks;
use crate::context::core::Core;
use crate::queue::InFlightRequest;
use crate::quotas::admission;
use crate::store::db::{Conn, sql};
use crate::store::{checkpoints, failed, folders, runs, sampling};
use crate::{Effect, Error, Outcome, RequestKind, Timestamp};

/// Effects of a completed request.
pub(super) struct EffectWrites<'a> {
    pub(super) request: &'a RequestId,
    pub(super) finished: &'a InFlightRequest,
    pub(super) effects: &'a [Effect],
    /// Error of the request, if it failed.
    pub(super) error: Option<&'a OpError>,
}

impl EffectWrites<'_> {
    /// Applies the effects. Returns the outcome and the folders that are no longer needed. An effect that contradicts
    /// the store makes the request fail.
    pub(super) async fn apply(
        &self,
        conn: &mut Conn,
        core: &Core,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<(Outcome, Vec<PathBuf>), Error> {
        if self.effects.is_empty() {
            return Ok((outcome, Vec::new()));
        }
        execute(conn, "SAVEPOINT effects").await?;
        let applied = match self.apply_all(conn, core, now).await {
            Ok(discarded) => (outcome, discarded),
            // The effect is not at fault: the whole transaction is repeated.
            Err(error @ (Error::Store(_) | Error::Unavailable(_) | Error::NoSpace(_) | Error::Conflict(_))) => {
                return Err(error);
            }
            Err(error) => {
                execute(conn, "ROLLBACK TO SAVEPOINT effects").await?;
                core.count_refusal::<()>(&self.finished.tenant, &Err(error.clone()));
                (Outcome::Failed(OpError::user(error.to_string())), self.written_folders())
            }
        };
        execute(conn, "RELEASE SAVEPOINT effects").await?;
        Ok(applied)
    }

    /// Applies all effects. Returns the folders that are no longer needed.
    async fn apply_all(&self, conn: &mut Conn, core: &Core, now: Timestamp) -> Result<Vec<PathBuf>, Error> {
        let mut discarded = Vec::new();
        for effect in self.effects {
            if let Some(dir) = self.apply_one(conn, core, effect, now).await?
                && !folders::is_needed(conn, &dir, core.revivable_after()).await?
            {
                discarded.push(dir);
            }
        }
        Ok(discarded)
    }

    /// Applies an effect. Returns the folder of a checkpoint that was replaced.
    async fn apply_one(
        &self,
        conn: &mut Conn,
        core: &Core,
        effect: &Effect,
        now: Timestamp,
    ) -> Result<Option<PathBuf>, Error> {
        let tenant = &self.finished.tenant;
        match effect {
            // Effects of maintenance operations are recorded elsewhere.
            Effect::RunSaved(_) | Effect::SnapshotSaved { .. } => {}
            Effect::RunReady(run) => {
                runs::ready_run(conn, run).await?;
            }
            // A creation that failed is recorded with its cause.
            Effect::RunFailed(_) if self.finished.kind == RequestKind::CreateModel => {}
            Effect::RunFailed(run) => {
                runs::fail_run(conn, run, &run_unusable(run, self.error), true).await?;
            }
            Effect::Checkpoint(new) => {
                runs::run(conn, tenant, &new.path.run).await?;
                let replaced = checkpoints::upsert_checkpoint(conn, tenant, new, now).await?;
                admission::check_checkpoint(conn, core, tenant, new.size_bytes).await?;
                if new.path.kind == CheckpointKind::External {
                    upload_checks::record_export(conn, core, tenant, &new.path).await?;
                }
                return Ok(replaced);
            }
            Effect::SamplingSession(new) => {
                let save = self.finished.run.as_ref().map(|run| (run, self.request));
                let origin =
                    sampling::SamplingOrigin { checkpoint_dir: None, save: save.filter(|_| new.snapshot.is_some()) };
                sampling::insert_sampling_session(conn, tenant, new, origin, now).await?;
                // A reused key, such as that of in-flight saves, names the newest weights.
                if let (Some(run), Some(key)) = (&self.finished.run, &new.snapshot) {
                    sampling::set_snapshot_dir(conn, run, key, None).await?;
                }
            }
        }
        Ok(None)
    }

    /// Returns the folders that the request wrote.
    fn written_folders(&self) -> Vec<PathBuf> {
        let folder = |effect: &Effect| match effect {
            Effect::Checkpoint(new) => Some(new.dir.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(folder).collect()
    }
}

async fn execute(conn: &mut Conn, text: &'static str) -> Result<(), Error> {
    sql(text).execute(conn).await.map_err(failed("complete a request"))?;
    Ok(())
}

/// Returns the error for a run that an operation left unusable.
pub(super) fn run_unusable(run: &RunId, cause: Option<&OpError>) -> OpError {
    let text = format!("training run {run} is no longer usable");
    OpError::server(cause.map_or(text.clone(), |cause| format!("{text}: {}", cause.message)))
}
