//! Snapshots for sampling, in the worker's memory, in the storage, or both.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trainyard_protocol::{RunId, SessionId};

use super::state::{Queue, SamplerSnapshot};
use crate::{SamplingSession, WorkItem};

/// Number of snapshots that a run keeps in memory. Those used least recently are only in the storage.
const SNAPSHOTS_IN_MEMORY: usize = 8;

impl Queue {
    /// Adds a snapshot of a run, either taken now (`ready`) or to be made again by a replay.
    pub(crate) fn add_snapshot(&mut self, session: &SessionId, key: String, run: RunId, ready: bool) {
        self.sessions.entry(session.clone()).or_default().snapshots.insert(key.clone());
        if ready {
            self.save_before_run(&run, &key);
        }
        let snapshot = self.snapshots.entry(key).or_insert(SamplerSnapshot {
            run,
            ready,
            dir: None,
            made: 0,
            used: 0,
            waiting: Default::default(),
        });
        if ready {
            self.uses += 1;
            (snapshot.ready, snapshot.dir, snapshot.made, snapshot.used) = (true, None, self.uses, self.uses);
            for arrival in std::mem::take(&mut snapshot.waiting) {
                self.prepare_sample(arrival);
            }
        }
    }

    /// Drops a snapshot and releases the samples that wait for it, so that other workers may take them.
    pub(super) fn drop_snapshot(&mut self, session: &SessionId, key: &str) {
        let Some(snapshot) = self.snapshots.remove(key) else { return };
        for arrival in snapshot.waiting {
            self.release_sample(arrival);
        }
        if let Some(load) = self.sessions.get_mut(session) {
            load.snapshots.remove(key);
        }
        self.signal(WorkItem::DropSnapshot(key.to_owned()));
    }

    /// Returns the number of a run's snapshots that exceed the number kept in memory.
    pub(super) fn excess_snapshots(&self, id: &RunId) -> usize {
        let most = if self.runs.get(id).is_some_and(|run| run.spilling) { 0 } else { SNAPSHOTS_IN_MEMORY };
        self.snapshots_in_memory(id).saturating_sub(most)
    }

    /// Returns the number of a run's snapshots in memory.
    pub(super) fn snapshots_in_memory(&self, id: &RunId) -> usize {
        self.snapshots.values().filter(|snapshot| snapshot.run == *id && snapshot.ready).count()
    }

    /// Evicts all of a run's snapshots from memory: saved ones now, the others once they are saved.
    pub(super) fn spill(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.spilling = true;
        let saved = self.snapshots.iter_mut().filter(|(_, s)| s.run == *id && s.ready && s.dir.is_some());
        let mut evicted: Vec<String> = saved
            .map(|(key, snapshot)| {
                snapshot.ready = false;
                key.clone()
            })
            .collect();
        evicted.sort_unstable();
        evicted.into_iter().for_each(|key| self.signal(WorkItem::DropSnapshot(key)));
        self.schedule_spill(id);
        if let Some(run) = self.runs.get_mut(id) {
            // The saves come before the run's head, which is admitted when the run is listed again.
            run.listed = false;
        }
        self.advance(id);
    }

    /// Returns a run's snapshots that are only in memory, the least recently used first.
    pub(super) fn unsaved_snapshots(&self, id: &RunId) -> Vec<String> {
        let of_run = self.snapshots.iter().filter(|(_, snapshot)| snapshot.run == *id);
        let mut keys: Vec<(u64, &String)> = of_run
            .filter(|(_, snapshot)| snapshot.ready && snapshot.dir.is_none())
            .map(|(key, snapshot)| (snapshot.used, key))
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// Returns the time when a snapshot was taken, which distinguishes its weights from others under the same key.
    pub(crate) fn snapshot_made(&self, key: &str) -> u64 {
        self.snapshots.get(key).map_or(0, |snapshot| snapshot.made)
    }

    /// Handles the save of a snapshot to the storage. It is evicted from memory if the run has too many or is about to
    /// be released. Newer weights under its key stay.
    pub(crate) fn snapshot_saved(&mut self, id: &RunId, key: &str, made: u64, dir: &Path) {
        if self.snapshot_made(key) != made {
            return;
        }
        let releasing = self.runs.get(id).is_some_and(|run| run.releasing || run.handing_over);
        let evict = releasing || self.excess_snapshots(id) > 0;
        let Some(snapshot) = self.snapshots.get_mut(key) else { return };
        snapshot.dir = Some(dir.to_owned());
        if evict {
            snapshot.ready = false;
            self.signal(WorkItem::DropSnapshot(key.to_owned()));
        }
    }

    /// Handles the deletion of a run's snapshots from the storage; samples no longer need them.
    pub(crate) fn snapshots_collected(&mut self, id: &RunId, keys: impl Iterator<Item = String>) {
        let Some(session) = self.runs.get(id).map(|run| run.session.clone()) else { return };
        for key in keys {
            if self.snapshots.contains_key(&key) {
                self.drop_snapshot(&session, &key);
            }
        }
    }

    /// Returns the sampling session with the present location of its weights: those of an evicted snapshot are in the
    /// storage.
    pub(super) fn with_source(&mut self, session: &Arc<SamplingSession>) -> SamplingSession {
        let mut session = SamplingSession::clone(session);
        let Some(key) = &session.snapshot else { return session };
        self.uses += 1;
        let used = self.uses;
        let known = self.snapshots.get_mut(key);
        let saved: Option<PathBuf> = match known {
            Some(snapshot) => {
                snapshot.used = used;
                if snapshot.ready { None } else { snapshot.dir.clone() }
            }
            None => session.snapshot_dir.clone(),
        };
        if let Some(dir) = saved {
            (session.snapshot, session.checkpoint_dir) = (None, Some(dir));
        }
        session
    }
}
