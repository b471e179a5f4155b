//! A process of a world, and the contents of its worker's memory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trainyard_protocol::{OpError, RunId};

use super::super::fleet::outcome;
use super::super::new_sampling;
use super::plan::{Deed, Plan};
use crate::store::db::sql;
use crate::{Effect, MaintenanceOp, Outcome, RequestKind, Scheduler, Work, WorkItem};

pub(super) struct Held {
    pub(super) work: Work,
    /// Whether the lease has certainly passed on, so that a report of the request must be refused.
    pub(super) void: bool,
}

/// Positions of the operations that produced a state, in order.
pub(super) type Memory = Vec<i64>;

pub(super) struct Process {
    pub(super) scheduler: Scheduler,
    pub(super) held: Vec<Held>,
    pub(super) runs: BTreeMap<RunId, Memory>,
    /// Weights kept for sampling, by key.
    pub(super) snapshots: BTreeMap<String, Memory>,
}

impl Process {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self { scheduler, held: Vec::new(), runs: BTreeMap::new(), snapshots: BTreeMap::new() }
    }

    /// Returns whether others still regard the worker as alive.
    pub(super) async fn is_registered(&self, worker: &str) -> bool {
        let core = &self.scheduler.core;
        let mut conn = core.system_reader().await.unwrap();
        const SQL: &str = "SELECT incarnation FROM workers WHERE id = $1";
        let found: Option<i64> = sql(SQL).bind(worker).scalar(&mut conn).await.unwrap();
        found == Some(core.heartbeats.incarnation())
    }

    /// Handles an item that does not ask for execution. The worker may get the same work again at once.
    pub(super) fn forget(&mut self, item: &WorkItem) {
        match item {
            // A training request may also be completed.
            WorkItem::Start(_) | WorkItem::Abandon(_) => {}
            WorkItem::UnloadRun(run) => {
                self.held.retain(|held| held.work.run.as_ref() != Some(run));
                self.runs.remove(run);
            }
            WorkItem::Cancel(request) => self.held.retain(|held| held.work.request != *request),
            WorkItem::DropSnapshot(key) => drop(self.snapshots.remove(key)),
        }
    }

    /// Executes a request of a run and returns its outcome and effects. Saved state goes to `folders`, under names with
    /// `report`.
    pub(super) fn execute(
        &mut self,
        work: &Work,
        plan: &Plan,
        report: &str,
        folders: &mut BTreeMap<PathBuf, Memory>,
    ) -> (Outcome, Vec<Effect>) {
        let memory = self.runs.entry(plan.run.clone()).or_default();
        let mut write = |content: &Memory| {
            let dir = PathBuf::from(format!("snapshots/{}/{report}", plan.run));
            folders.insert(dir.clone(), content.clone());
            dir
        };
        let mut effects = Vec::new();
        match (work.kind, plan.deed(work.seq_id)) {
            (RequestKind::SaveRun, _) => effects.push(Effect::RunSaved(write(memory))),
            (RequestKind::SaveSnapshot | RequestKind::RestoreRun, _) => match serde_json::from_slice(&work.payload) {
                Ok(MaintenanceOp::RestoreRun { dir, .. }) => memory.clone_from(&folders[&dir]),
                Ok(MaintenanceOp::SaveSnapshot { key }) => {
                    let dir = write(&self.snapshots[&key]);
                    effects.push(Effect::SnapshotSaved { key, dir });
                }
                other => panic!("{work:?} is {other:?}"),
            },
            (_, Deed::Fails) => return (Outcome::Failed(OpError::user(report)), Vec::new()),
            (_, Deed::Trains) => memory.push(work.seq_id),
            (_, Deed::Saves) => {
                let key = plan.snapshot(work.seq_id);
                self.snapshots.insert(key.clone(), memory.clone());
                memory.push(work.seq_id);
                let number = plan.sampler_number(work.seq_id);
                effects.push(Effect::SamplingSession(new_sampling(&plan.session, number, Some(&key))));
            }
        }
        (outcome(report), effects)
    }
}
