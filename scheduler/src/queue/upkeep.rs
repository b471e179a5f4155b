//! What the scheduler asks of the worker on its own account: saving runs, so that their log can be pruned, and
//! freeing the memory of what is not used.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId};

use super::{Entry, Queue, Slot};
use crate::queue::History;
use crate::quotas::Cost;
use crate::{Decoded, RequestKind, SamplingSession, Timestamp, Upkeep, WorkItem};

/// Snapshots for sampling that a run keeps in memory. Those used least recently are on disk alone.
const SNAPSHOTS_IN_MEMORY: usize = 8;

impl Queue {
    /// Has a run saved once its replay would cost much, and its snapshots written down when there are many. To be
    /// called after the effects of a request are known.
    pub(crate) fn keep_up(&mut self, id: &RunId) {
        let Some(run) = self.runs.get(id) else { return };
        if !run.upkeep.is_empty() || run.failure.is_some() || !matches!(run.history, History::Loaded) {
            return;
        }
        if run.replay_cost >= self.save_after {
            self.schedule_save(id);
        } else {
            self.schedule_spill(id);
        }
        self.consider(id);
    }

    /// The run and all of its snapshots that are in memory alone: after it, the log up to here is not needed.
    fn schedule_save(&mut self, id: &RunId) {
        let mut upkeep: VecDeque<Entry> =
            self.unwritten(id).into_iter().map(|key| self.entry(id, &Upkeep::SaveSnapshot { key })).collect();
        upkeep.push_back(self.entry(id, &Upkeep::SaveRun));
        if let Some(run) = self.runs.get_mut(id) {
            run.upkeep = upkeep;
        }
    }

    /// The snapshots that are too many to be in memory.
    fn schedule_spill(&mut self, id: &RunId) {
        let in_memory = self.snapshots.values().filter(|snapshot| snapshot.run == *id && snapshot.ready).count();
        for key in self.unwritten(id).into_iter().take(in_memory.saturating_sub(SNAPSHOTS_IN_MEMORY)) {
            let entry = self.entry(id, &Upkeep::SaveSnapshot { key });
            if let Some(run) = self.runs.get_mut(id) {
                run.upkeep.push_back(entry);
            }
        }
    }

    /// A run's snapshots that are in memory alone, the least recently used first.
    fn unwritten(&self, id: &RunId) -> Vec<String> {
        let of_run = self.snapshots.iter().filter(|(_, snapshot)| snapshot.run == *id);
        let mut keys: Vec<(u64, &String)> = of_run
            .filter(|(_, snapshot)| snapshot.ready && snapshot.dir.is_none())
            .map(|(key, snapshot)| (snapshot.used, key))
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// A request of the scheduler's own. Its id never leaves this process.
    fn entry(&mut self, run: &RunId, upkeep: &Upkeep) -> Entry {
        self.uses += 1;
        let kind = match upkeep {
            Upkeep::SaveRun => RequestKind::SaveRun,
            Upkeep::SaveSnapshot { .. } => RequestKind::SaveSnapshot,
            Upkeep::RestoreRun { .. } => RequestKind::RestoreRun,
        };
        let request = RequestId::new(format!("{run}/{}/{}", kind.as_str(), self.uses));
        entry(request, kind, upkeep)
    }

    /// The worker is done with an upkeep of a run. After a failure the rest of it makes no sense.
    pub(super) fn upkept(&mut self, id: &RunId, kind: RequestKind, error: Option<&OpError>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        if kind == RequestKind::SaveRun {
            run.replay_cost = 0;
        }
        if let Some(error) = error {
            tracing::warn!(run = %id, %error, "a run could not be saved; it is tried again later");
            run.upkeep.clear();
            (run.replay_cost, run.leaving, run.moving) = (0, false, false);
        }
    }

    /// Everything of a run is in the storage.
    pub(crate) fn run_saved(&mut self, id: &RunId) {
        let Some(run) = self.runs.get(id) else { return };
        let epoch = run.epoch();
        if run.moving {
            tracing::info!(run = %id, epoch, "a run moves to another worker");
            self.give_back(id, epoch);
        } else if run.leaving {
            self.leave(id);
        }
    }

    /// Tells the weights of a snapshot from those of others under the same key.
    pub(crate) fn snapshot_made(&self, key: &str) -> u64 {
        self.snapshots.get(key).map_or(0, |snapshot| snapshot.made)
    }

    /// A snapshot is in the storage: in memory it is needed only while it is used. Newer weights under its key are not.
    pub(crate) fn snapshot_saved(&mut self, id: &RunId, key: &str, made: u64, dir: &Path) {
        if self.snapshot_made(key) != made {
            return;
        }
        let leaving = self.runs.get(id).is_some_and(|run| run.leaving || run.moving);
        let in_memory = self.snapshots.values().filter(|snapshot| snapshot.run == *id && snapshot.ready).count();
        let Some(snapshot) = self.snapshots.get_mut(key) else { return };
        snapshot.dir = Some(dir.to_owned());
        if leaving || in_memory > SNAPSHOTS_IN_MEMORY {
            snapshot.ready = false;
            self.signal(WorkItem::DropSnapshot(key.to_owned()));
        }
    }

    /// Where samples of a session get their weights from now: a snapshot that is not in memory was written down.
    pub(super) fn with_source(&mut self, session: &Arc<SamplingSession>) -> SamplingSession {
        let mut session = SamplingSession::clone(session);
        let Some(key) = &session.snapshot else { return session };
        self.uses += 1;
        let used = self.uses;
        let known = self.snapshots.get_mut(key);
        let written: Option<PathBuf> = match known {
            Some(snapshot) => {
                snapshot.used = used;
                if snapshot.ready { None } else { snapshot.dir.clone() }
            }
            None => session.snapshot_dir.clone(),
        };
        if let Some(dir) = written {
            (session.snapshot, session.checkpoint_dir) = (None, Some(dir));
        }
        session
    }

    /// Lets go of runs of which nothing has been asked for a while, and of as many of each base model as are its `surplus`
    /// at once, idle ones first: they are saved, and whoever is asked for them next restores them.
    pub(crate) fn let_go(&mut self, now: Timestamp, idle: Duration, mut surplus: BTreeMap<String, usize>) {
        for id in self.run_ids() {
            let sampled = self.is_sampled(&id);
            let Some(run) = self.runs.get_mut(&id).filter(|run| run.is_idle() && !run.leaving) else { continue };
            if sampled {
                run.idle_since = None;
                continue;
            }
            let since = *run.idle_since.get_or_insert(now);
            match surplus.get_mut(&run.base_model) {
                Some(left) if *left > 0 => *left -= 1,
                _ if now < since.plus(idle) => continue,
                _ => {}
            }
            match run.history {
                // The worker holds nothing of it.
                History::Lost => self.leave(&id),
                History::Loaded if run.failure.is_some() => self.leave(&id),
                History::Loaded => {
                    run.leaving = true;
                    self.schedule_save(&id);
                    self.consider(&id);
                }
                History::Reading | History::Replaying(_) => {}
            }
        }
        self.move_busy(surplus);
    }

    /// Gives as many busy runs of each base model to other workers, each between two of its requests.
    fn move_busy(&mut self, mut surplus: BTreeMap<String, usize>) {
        for run in self.runs.values().filter(|run| run.moving) {
            if let Some(left) = surplus.get_mut(&run.base_model) {
                *left = left.saturating_sub(1);
            }
        }
        for id in self.run_ids() {
            if self.is_sampled(&id) {
                continue;
            }
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let loaded = matches!(run.history, History::Loaded) && run.failure.is_none();
            if !loaded || run.is_idle() || run.leaving || run.moving || !run.upkeep.is_empty() {
                continue;
            }
            let Some(left) = surplus.get_mut(&run.base_model).filter(|left| **left > 0) else { continue };
            *left -= 1;
            run.moving = true;
            self.schedule_save(&id);
            self.consider(&id);
        }
    }

    /// Whether samples wait here for snapshots of a run.
    fn is_sampled(&self, id: &RunId) -> bool {
        let of_run = |key: &String| self.snapshots.get(key).is_some_and(|snapshot| snapshot.run == *id);
        self.samples.values().any(|sample| sample.sampling.snapshot.as_ref().is_some_and(of_run))
    }

    /// Gives the lease of an idle run back.
    fn leave(&mut self, id: &RunId) {
        if self.is_sampled(id) {
            if let Some(run) = self.runs.get_mut(id) {
                run.leaving = false;
            }
            return;
        }
        let Some(epoch) = self.runs.get(id).filter(|run| run.is_idle()).map(|run| run.epoch()) else { return };
        tracing::info!(run = %id, epoch, "an idle run is let go of");
        self.give_back(id, epoch);
    }

    /// Gives the lease of a run back, of which nothing is executed.
    fn give_back(&mut self, id: &RunId, epoch: i64) {
        self.lose_lease(id, epoch);
        self.out.released.push((id.clone(), epoch));
    }
}

/// A request of the scheduler's own.
pub(crate) fn entry(request: RequestId, kind: RequestKind, upkeep: &Upkeep) -> Entry {
    // It is made of strings and numbers, which JSON always has a form for.
    let payload = serde_json::to_vec(upkeep).unwrap_or_default();
    Entry {
        request,
        kind,
        cost: Cost::new(0, Timestamp(0)),
        payload: Slot::Held(Bytes::from(payload), Decoded::default()),
    }
}
