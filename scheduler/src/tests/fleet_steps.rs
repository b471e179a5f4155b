//! What may happen to a fleet, and what its runs are asked.

use proptest::prelude::*;

use super::*;

pub(super) const RUNS: usize = 3;
/// Requests per run, its creation apart.
pub(super) const LENGTH: usize = 5;
/// The first two are workers, the last is the API server.
pub(super) const PROCESSES: usize = 3;
pub(super) const WORKERS: usize = 2;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Submits the next request in a run's order of arrival, through a process.
    Submit(usize, usize),
    /// Submits again what was submitted before.
    Resubmit(usize, usize),
    Sample(usize),
    Cancel(usize, usize),
    Poll(usize, usize),
    Take(usize),
    /// Completes one of the requests that a worker holds.
    Complete(usize, usize),
    /// What a process does now and then.
    Round(usize),
    /// A worker dies, and starts again when it is next needed.
    Crash(usize),
    /// A worker shows no sign of life for longer than its lease, which another process ends.
    Sleep(usize, usize),
    Pass,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let worker = || 0..WORKERS;
    let process = || 0..PROCESSES;
    let any = || 0..64_usize;
    let step = prop_oneof![
        8 => (0..RUNS, process()).prop_map(|(run, through)| Step::Submit(run, through)),
        2 => (any(), process()).prop_map(|(which, through)| Step::Resubmit(which, through)),
        3 => process().prop_map(Step::Sample),
        1 => (any(), process()).prop_map(|(which, through)| Step::Cancel(which, through)),
        2 => (any(), process()).prop_map(|(which, through)| Step::Poll(which, through)),
        8 => worker().prop_map(Step::Take),
        8 => (worker(), any()).prop_map(|(worker, which)| Step::Complete(worker, which)),
        2 => process().prop_map(Step::Round),
        1 => worker().prop_map(Step::Crash),
        2 => (worker(), process()).prop_map(|(worker, other)| Step::Sleep(worker, other)),
        1 => Just(Step::Pass),
    ];
    prop::collection::vec(step, 20..45)
}

/// The order of arrival of a run's requests, and which of them fail.
pub(super) fn plan() -> impl Strategy<Value = (Vec<i64>, Vec<bool>)> {
    let seq_ids: Vec<i64> = (1..).take(LENGTH).collect();
    (Just(seq_ids).prop_shuffle(), prop::collection::vec(prop::bool::weighted(0.2), LENGTH))
}

pub(super) struct Plan {
    pub(super) run: RunId,
    pub(super) arrivals: Vec<i64>,
    pub(super) fails: Vec<bool>,
    pub(super) submitted: BTreeMap<i64, RequestId>,
}

impl Plan {
    pub(super) fn fails(&self, seq_id: i64) -> bool {
        seq_id > 0 && self.fails[usize::try_from(seq_id).unwrap() - 1]
    }

    /// What a worker's memory holds when request `seq_id` starts: every success before it, once.
    pub(super) fn memory_before(&self, seq_id: i64) -> Vec<i64> {
        (0..seq_id).filter(|earlier| !self.fails(*earlier)).collect()
    }
}
