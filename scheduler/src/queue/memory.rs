//! Admission of runs to the worker's memory, by the bytes that the engine predicts for them.
//!
//! A run is loaded once it fits beside the runs that are already loaded. Until then it waits, and others are evicted:
//! they are saved and their leases released, so that they wait in turn. Idle runs leave first, in the order of their
//! idle time; then busy ones that were loaded for a while, between two of their requests. The tenant that uses the
//! least memory is next.
//!
//! The memory in use is computed from the runs that are present, so that no count can become wrong: a run that has left
//! counts nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use trainyard_protocol::{MemoryPlan, OpError, RequestId, RunId, TenantId};

use super::run_queue::{History, PendingPlace, RunQueue};
use super::state::Queue;
use crate::{MemoryWait, RequestKind, Timestamp};

/// Idle time after which a run may be unloaded for a waiting one.
const IDLE: Duration = Duration::from_millis(500);
/// Time since its loading after which a busy run may be unloaded for a waiting one.
const SLICE: Duration = Duration::from_secs(20);
/// Pause after a failed attempt to unload a run, for example because it could not be saved.
const RETRY: Duration = Duration::from_secs(30);
/// Interval at which waiting runs are examined, apart from when a run has left.
const POLL: Duration = Duration::from_millis(200);
const MIB: u64 = 1 << 20;

impl Queue {
    /// Sets the budget; without a plan, memory is unlimited.
    pub(crate) fn set_memory_plan(&mut self, plan: MemoryPlan) {
        self.memory.plan = plan;
    }

    fn capacity(&self) -> u64 {
        self.memory.plan.runs()
    }

    /// Returns the bytes of all loaded runs and their snapshots in memory.
    pub(super) fn held_memory(&self) -> u64 {
        self.runs.keys().map(|id| self.memory_of(id)).sum()
    }

    /// Returns the bytes of a run with its snapshots; 0 before it is admitted.
    fn memory_of(&self, id: &RunId) -> u64 {
        let Some(run) = self.runs.get(id).filter(|run| run.loaded_at.is_some()) else { return 0 };
        run.memory.bytes + self.counted_snapshots(id) * run.memory.snapshot_bytes + run.reserved
    }

    /// Returns the number of a run's snapshots in memory, at least 1, because there must always be room for one.
    fn counted_snapshots(&self, id: &RunId) -> u64 {
        self.snapshots_in_memory(id).max(1) as u64
    }

    /// Returns the bytes that the head of a run needs beyond the run's own.
    fn needed_memory(&self, id: &RunId) -> u64 {
        let Some(run) = self.runs.get(id).filter(|run| run.reserved == 0) else { return 0 };
        if run.loaded_at.is_none() {
            return run.memory.bytes + self.counted_snapshots(id) * run.memory.snapshot_bytes;
        }
        let head = match (&run.history, run.pending.get(&run.next_seq)) {
            (History::Loaded, Some(PendingPlace::Work(head))) if run.maintenance.is_empty() => head.kind,
            _ => return 0,
        };
        match head {
            // The new state is read before the old one is dropped. A run without optimizer state has room for both.
            RequestKind::LoadWeights if run.next_seq > 1 => run.memory.bytes,
            RequestKind::SaveWeightsForSampler if self.snapshots_in_memory(id) > 0 => run.memory.snapshot_bytes,
            _ => 0,
        }
    }

    /// Returns whether memory allows the head of a run to start. If not, the run waits, or its head fails if it can
    /// never fit.
    pub(super) fn admit(&mut self, id: &RunId, now: Timestamp) -> bool {
        let needed = self.needed_memory(id);
        if needed == 0 {
            return true;
        }
        if !self.can_fit(id, needed) && self.fail_oversized(id, needed) {
            return false;
        }
        if self.memory.waiting.is_empty() && self.held_memory() + needed <= self.capacity() {
            self.reserve(id, needed, now);
            return true;
        }
        self.wait_for_memory(id);
        self.note_idle_runs(now);
        false
    }

    /// Returns whether a run fits if nothing else is loaded.
    fn can_fit(&self, id: &RunId, needed: u64) -> bool {
        // The run's own snapshots can leave the memory.
        let snapshots = self.runs.get(id).map_or(0, |run| (self.counted_snapshots(id) - 1) * run.memory.snapshot_bytes);
        (self.memory_of(id) + needed).saturating_sub(snapshots) <= self.capacity() || self.takes_snapshot(id)
    }

    /// Fails the head of a run that does not fit, unless the head restores requests that were accepted before.
    fn fail_oversized(&mut self, id: &RunId, needed: u64) -> bool {
        let (capacity, plan) = (self.capacity(), self.memory.plan);
        let Some(run) = self.runs.get(id) else { return false };
        if !matches!(run.history, History::Loaded) {
            return false;
        }
        let whole = (self.memory_of(id) + needed).div_ceil(MIB);
        let what =
            if run.loaded_at.is_none() { "the training run" } else { "loading, in addition to the run's own state," };
        let error = OpError::user(format!(
            "{what} needs {whole} MiB of memory; at most {} MiB of the server's budget of {} MiB are for training runs",
            capacity / MIB,
            plan.budget.unwrap_or(0) / MIB
        ));
        tracing::info!(run = %id, %error, "request rejected: it can never fit into memory");
        self.reject_listed_head(id, error);
        true
    }

    fn takes_snapshot(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some_and(|run| {
            let head = run.pending.get(&run.next_seq);
            run.loaded_at.is_some()
                && matches!(head, Some(PendingPlace::Work(head)) if head.kind == RequestKind::SaveWeightsForSampler)
        })
    }

    fn reserve(&mut self, id: &RunId, needed: u64, now: Timestamp) {
        let Some(run) = self.runs.get_mut(id) else { return };
        match run.loaded_at {
            Some(_) => run.reserved = needed,
            None => run.loaded_at = Some(now),
        }
    }

    fn wait_for_memory(&mut self, id: &RunId) {
        if !self.memory.waiting.values().any(|waiting| waiting == id) {
            self.memory.arrivals += 1;
            self.memory.unseen = true;
            self.memory.waiting.insert(self.memory.arrivals, id.clone());
            let wait = self.wait_of(id);
            let MemoryWait { needed, held, capacity } = &wait;
            tracing::info!(run = %id, needed, held, capacity, "run waits for memory");
            self.report_wait(id, Some(wait));
        }
    }

    /// Lists the runs for which there is room now, and makes room for the next one. Call this before the signals to the
    /// worker are taken: runs must leave its memory before others enter it.
    pub(super) fn admit_waiting(&mut self, now: Timestamp) {
        self.memory.unseen = false;
        while !self.memory.waiting.is_empty() {
            let waits = |(arrival, id): (&u64, &RunId)| {
                let listed = self.runs.get(id).is_some_and(|run| run.listed && !run.handing_over);
                listed.then(|| (*arrival, id.clone()))
            };
            let waiting: Vec<(u64, RunId)> = self.memory.waiting.iter().filter_map(waits).collect();
            self.memory.waiting = waiting.iter().cloned().collect();
            waiting.iter().for_each(|(_, id)| self.spill_own(id, now));
            let Some((arrival, id, needed)) = self.next_waiting(&waiting) else { return };
            if self.held_memory() + needed > self.capacity() {
                return self.make_room(&id, needed, now);
            }
            self.memory.waiting.remove(&arrival);
            self.report_wait(&id, None);
            self.reserve(&id, needed, now);
            self.ready_runs.push_back(id);
        }
    }

    /// Evicts the earlier snapshots of a loaded run that waits, to load or to take a snapshot.
    fn spill_own(&mut self, id: &RunId, now: Timestamp) {
        let may = |run: &RunQueue| run.loaded_at.is_some() && !run.spilling && !run.was_tried(now);
        if self.snapshots_in_memory(id) > 0 && self.runs.get(id).is_some_and(may) {
            self.spill(id);
        }
    }

    /// Returns the next one of the waiting runs, with the bytes that it needs. Loaded runs are first, or two that need
    /// more could unload each other forever; then the run of the tenant that uses the least memory.
    fn next_waiting(&self, waiting: &[(u64, RunId)]) -> Option<(u64, RunId, u64)> {
        let mut held: BTreeMap<&TenantId, u64> = BTreeMap::new();
        for (id, run) in &self.runs {
            *held.entry(&run.tenant).or_default() += self.memory_of(id);
        }
        let room = self.capacity().saturating_sub(self.held_memory());
        let candidates = waiting.iter().filter_map(|(arrival, id)| {
            let (run, needed) = (self.runs.get(id)?, self.needed_memory(id));
            // A run that spills its own snapshots needs no other run to leave.
            let spilling = run.spilling && self.snapshots_in_memory(id) > 0;
            let possible = needed <= room || (self.can_fit(id, needed) && !spilling);
            possible.then(|| (run.loaded_at.is_none(), held.get(&run.tenant).copied(), *arrival, id, needed))
        });
        candidates.min().map(|(.., arrival, id, needed)| (arrival, id.clone(), needed))
    }

    /// Unloads as many runs as must and may leave for a waiting one.
    fn make_room(&mut self, waiting: &RunId, needed: u64, now: Timestamp) {
        let leaving = self.runs.iter().filter(|(_, run)| run.handing_over || run.releasing);
        let leaving: u64 = leaving.map(|(id, _)| self.memory_of(id)).sum();
        let mut missing = (self.held_memory() + needed).saturating_sub(self.capacity() + leaving);
        while missing > 0 {
            let Some(victim) = self.next_victim(waiting, now) else { return };
            missing = missing.saturating_sub(self.memory_of(&victim));
            self.unload_for_another(&victim, now);
        }
    }

    /// Starts the idle time of runs that are first seen idle while another one waits.
    fn note_idle_runs(&mut self, now: Timestamp) {
        for run in self.runs.values_mut().filter(|run| run.is_idle()) {
            run.idle_since.get_or_insert(now);
        }
    }

    /// Returns the loaded run to unload next, if one may be unloaded.
    fn next_victim(&mut self, waiting: &RunId, now: Timestamp) -> Option<RunId> {
        self.note_idle_runs(now);
        let victims = self.runs.iter().filter_map(|(id, run)| {
            let order = run.unload_order(now)?;
            (id != waiting && !self.is_sampled(id)).then_some((order, id))
        });
        victims.min().map(|(_, id)| id.clone())
    }

    fn unload_for_another(&mut self, id: &RunId, now: Timestamp) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let epoch = run.epoch();
        if run.failure.is_some() {
            return self.release_run(id, epoch);
        }
        tracing::info!(run = %id, epoch, "unloading run: another one waits for its memory");
        run.handing_over = true;
        run.unload_started = Some(now);
        // The run may itself wait, for a load or a snapshot.
        let waiting = self.memory.waiting.len();
        self.memory.waiting.retain(|_, other| other != id);
        run.listed &= self.memory.waiting.len() == waiting;
        self.schedule_save(id);
        self.advance(id);
    }

    /// Returns the memory for which a request waits, if it does.
    pub(crate) fn memory_wait(&self, tenant: &TenantId, request: &RequestId) -> Option<MemoryWait> {
        let of_run = |id: &&RunId| self.runs.get(*id).is_some_and(|run| run.tenant == *tenant && run.awaits(request));
        let id = self.memory.waiting.values().find(of_run)?;
        Some(self.wait_of(id))
    }

    fn wait_of(&self, id: &RunId) -> MemoryWait {
        let needed = self.memory_of(id) + self.needed_memory(id);
        MemoryWait { needed, held: self.held_memory(), capacity: self.capacity() }
    }

    fn report_wait(&mut self, id: &RunId, wait: Option<MemoryWait>) {
        if let Some(run) = self.runs.get(id) {
            self.effects.memory_waits.push((id.clone(), run.epoch(), wait));
        }
    }

    /// Returns the number of runs that wait for memory.
    pub(crate) fn waiting_for_memory(&self) -> usize {
        self.memory.waiting.len()
    }

    /// Returns the time when the waiting runs must be examined.
    pub(super) fn memory_wakes_at(&self, now: Timestamp) -> Option<Timestamp> {
        (!self.memory.waiting.is_empty()).then(|| now.plus(POLL))
    }
}

impl RunQueue {
    /// Returns the rank for unloading the run in favour of another, lowest first; `None` if it may not be unloaded.
    fn unload_order(&self, now: Timestamp) -> Option<(u8, Timestamp)> {
        let loaded = self.loaded_at?;
        let fixed = self.releasing || self.handing_over || !self.maintenance.is_empty() || self.reserved > 0;
        match (&self.failure, &self.history) {
            _ if fixed || self.was_tried(now) => None,
            (Some(_), _) => self.executing.is_none().then_some((0, loaded)),
            (None, History::Loaded) if self.is_idle() => {
                self.idle_since.filter(|since| now >= since.plus(IDLE)).map(|since| (1, since))
            }
            (None, History::Loaded) => (now >= loaded.plus(SLICE)).then_some((2, loaded)),
            _ => None,
        }
    }

    /// Returns whether an attempt to unload the run, or its snapshots, is too recent for another one.
    fn was_tried(&self, now: Timestamp) -> bool {
        self.unload_started.is_some_and(|at| now < at.plus(RETRY))
    }

    /// Returns whether a request is pending.
    fn awaits(&self, request: &RequestId) -> bool {
        let is_it = |place: &PendingPlace| matches!(place, PendingPlace::Work(entry) if entry.request == *request);
        self.pending.values().any(is_it)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
