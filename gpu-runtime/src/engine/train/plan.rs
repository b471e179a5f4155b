//! Which requests share the next microbatch, and with how many of their datums.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::RunId;

use super::{Job, Trainer};
use crate::engine::run::Run;
use crate::model::PassMemory;

/// A microbatch.
#[derive(Default)]
pub(super) struct Plan {
    /// Which jobs compute how many of their datums.
    pub(super) parts: Vec<(usize, usize)>,
    /// Blocks that keep their activations.
    pub(super) kept: usize,
    /// Tokens.
    pub(super) rows: usize,
}

/// A microbatch that is being filled.
struct Batch {
    /// By job: whether it can take part.
    members: Vec<bool>,
    plan: Plan,
    memory: PassMemory,
    rows: usize,
    most: usize,
    /// By job: bytes of its adapter and gradient if it takes part.
    own_bytes: Vec<usize>,
    /// Bytes that are left for those of further jobs.
    room: usize,
}

impl Trainer {
    /// The next microbatch: led by the oldest request of the flow whose turn it is, filled up with what can share a
    /// pass with it.
    pub(super) fn plan(&mut self, runs: &BTreeMap<RunId, Run>) -> Plan {
        let Self { jobs, fair, microbatch_tokens, activation_bytes, .. } = self;
        let mut batch: Option<Batch> = None;
        fair.fill(jobs.iter().map(|job| &job.flow), |flow| {
            if batch.is_none() {
                let leader = jobs.iter().find(|job| job.flow.name == *flow)?;
                batch = Some(Batch::led_by(leader, jobs, runs, *microbatch_tokens, *activation_bytes)?);
            }
            batch.as_mut().and_then(|batch| batch.add(jobs, flow))
        });
        batch.map_or_else(Plan::default, |batch| Plan {
            kept: batch.memory.kept_within(batch.rows, *activation_bytes),
            rows: batch.rows,
            ..batch.plan
        })
    }
}

impl Batch {
    fn led_by(
        leader: &Job,
        jobs: &[Job],
        runs: &BTreeMap<RunId, Run>,
        microbatch_tokens: usize,
        activation_bytes: usize,
    ) -> Option<Self> {
        let lead_run = runs.get(&leader.run)?;
        let alone = leader.is_suspect() || lead_run.is_full();
        let same = |run: &Run| Arc::ptr_eq(run.weights(), lead_run.weights()) && !run.is_full();
        let shares =
            |job: &Job| job.trains == leader.trains && !job.is_suspect() && runs.get(&job.run).is_some_and(same);
        let members: Vec<bool> = jobs.iter().map(|job| job.id == leader.id || (!alone && shares(job))).collect();
        let of_members = jobs.iter().zip(&members).filter(|(_, member)| **member);
        let adapters = of_members.filter_map(|(job, _)| runs.get(&job.run)?.spec.lora.as_ref());
        let memory = PassMemory::of(lead_run.weights(), adapters);
        let most = match leader.trains {
            true => memory.rows_within(activation_bytes, microbatch_tokens),
            false => microbatch_tokens,
        };
        let own = |job: &Job| runs.get(&job.run).map_or(0, |run| run.pass_bytes(job.trains));
        let own_bytes = jobs.iter().map(own).collect();
        Some(Self { members, plan: Plan::default(), memory, rows: 0, most, own_bytes, room: activation_bytes })
    }

    /// Adds the next datum of a flow, if one of its requests has one that fits: the oldest of them. One that alone is
    /// too long is a microbatch of its own, and the first request takes part whatever its adapter and its gradient take;
    /// others only as far as there is room for theirs. Returns its rows.
    fn add(&mut self, jobs: &[Job], flow: &str) -> Option<usize> {
        let (i, rows) = jobs.iter().enumerate().find_map(|(i, job)| {
            if !self.members[i] || *job.flow.name != *flow {
                return None;
            }
            let part = self.plan.parts.iter().find(|(part, _)| *part == i);
            if part.is_none() && self.rows > 0 && self.own_bytes[i] > self.room {
                return None;
            }
            let taken = part.map_or(0, |(_, count)| *count);
            let rows = job.data.get(job.next + taken)?.tokens.len();
            (self.rows == 0 || self.rows + rows <= self.most).then_some((i, rows))
        })?;
        match self.plan.parts.iter_mut().find(|(part, _)| *part == i) {
            Some((_, count)) => *count += 1,
            None => {
                self.plan.parts.push((i, 1));
                self.room = self.room.saturating_sub(self.own_bytes[i]);
            }
        }
        self.rows += rows;
        Some(rows)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
