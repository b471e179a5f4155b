//! Which waiting requests run, and who gives way when keys and values have no more room.
//!
//! Requests are admitted by weighted deficit round-robin over flows. Places and room are shared, too: a flow
//! that holds less than its part of them gets in although others hold everything.

use std::sync::Arc;

use trainyard_protocol::Flow;

use super::Sampler;
use super::fair::Fair;
use super::job::{SampleJob, Target};
use super::pass::Part;

/// Sequences that decode together, as far as all flows have their part.
const MAX_SEQUENCES: usize = 256;

/// Whether a flow's next request may run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Yes,
    /// The flow has its part; others may go on.
    FlowWaits,
    /// It is its turn, but it must wait for room, and nobody takes that away.
    AllWait,
}

impl Sampler {
    /// Admits what fits. A request that is too large draws some of its sequences at a time; of a sequence that alone is
    /// too large only that one is in progress. Blocks that are only cached make room.
    pub(super) fn admit(&mut self) {
        let backlog: Vec<Flow> = self.waiting.flows().cloned().collect();
        let mut fair = std::mem::replace(&mut self.admissions, Fair::new(1));
        let mut closed = false;
        fair.fill(&backlog, |flow| {
            if closed {
                return None;
            }
            let verdict = self.judge(flow);
            closed = verdict == Verdict::AllWait;
            if verdict == Verdict::Yes { self.activate(flow) } else { None }
        });
        self.admissions = fair;
    }

    /// Moves the next request of a flow to those that run; its prompt's tokens.
    fn activate(&mut self, flow: &str) -> Option<usize> {
        let job = self.waiting.take(flow, |_| true)?;
        if !self.turns.iter().any(|weights| Arc::ptr_eq(weights, &job.weights.weights)) {
            self.turns.push_back(Arc::clone(&job.weights.weights));
        }
        let at = self.active.partition_point(|other| other.arrival < job.arrival);
        let tokens = job.prompt_tokens();
        self.active.insert(at, job);
        Some(tokens)
    }

    fn judge(&mut self, flow: &str) -> Verdict {
        if let Some(next) = self.waiting.front_mut(flow) {
            next.fit(MAX_SEQUENCES, self.kv_bytes);
        }
        let places = self.judge_places(flow);
        if places != Verdict::Yes {
            return places;
        }
        let Some(next) = self.waiting.front_mut(flow) else { return Verdict::FlowWaits };
        for target in next.targets() {
            next.reuse(target, &mut self.cache);
        }
        let (own, needed) = (next.footprint(), next.blocks_ahead() * next.block_bytes());
        let verdict = self.judge_room(flow, own, needed);
        if verdict != Verdict::Yes
            && let Some(next) = self.waiting.front_mut(flow)
        {
            next.release();
        }
        verdict
    }

    fn judge_places(&mut self, flow: &str) -> Verdict {
        let Some(next) = self.waiting.front_mut(flow).map(|job| job.sequences()) else { return Verdict::FlowWaits };
        let taken: usize = self.active.iter().map(SampleJob::sequences).sum();
        if self.active.is_empty() || taken + next <= MAX_SEQUENCES {
            return Verdict::Yes;
        }
        verdict(self.held(flow, SampleJob::sequences), next, self.part(flow, MAX_SEQUENCES))
    }

    /// For a request that comes to hold `own` bytes, `needed` of them beyond what is cached.
    fn judge_room(&mut self, flow: &str, own: usize, needed: usize) -> Verdict {
        loop {
            let ahead = |job: &SampleJob| job.blocks_ahead() * job.block_bytes();
            let ahead = needed + self.active.iter().map(ahead).sum::<usize>();
            self.cache.evict(self.kv_bytes.saturating_sub(ahead));
            if self.active.is_empty() || self.cache.bytes() + ahead <= self.kv_bytes {
                return Verdict::Yes;
            }
            let verdict = verdict(self.held(flow, SampleJob::footprint), own, self.part(flow, self.kv_bytes));
            if verdict != Verdict::Yes {
                return verdict;
            }
            match self.over_its_part(flow) {
                Some(victim) => self.suspend(victim),
                None => return Verdict::AllWait,
            }
        }
    }

    /// The youngest request of the flow that holds most beyond its part of the room, if another one than `claimant` does.
    fn over_its_part(&self, claimant: &str) -> Option<usize> {
        let victim = self.heaviest()?;
        let flow = &self.active[victim].flow.name;
        let over = self.held(flow, SampleJob::footprint) > self.part(flow, self.kv_bytes);
        (over && **flow != *claimant).then_some(victim)
    }

    /// The youngest request of the flow that holds most room, relative to its weight.
    fn heaviest(&self) -> Option<usize> {
        let load = |job: &SampleJob| {
            let weight = u64::from(job.flow.weight.get());
            self.held(&job.flow.name, SampleJob::footprint) as u64 * 1000 / weight
        };
        (0..self.active.len()).max_by_key(|i| (load(&self.active[*i]), self.active[*i].arrival))
    }

    /// What a flow's active requests hold.
    fn held(&self, flow: &str, of: impl Fn(&SampleJob) -> usize) -> usize {
        self.active.iter().filter(|job| *job.flow.name == *flow).map(of).sum()
    }

    /// A flow's part of `whole`, among all flows that have requests.
    fn part(&self, flow: &str, whole: usize) -> usize {
        let mut flows: Vec<&Flow> = self.waiting.flows().chain(self.active.iter().map(|job| &job.flow)).collect();
        flows.sort_by(|a, b| a.name.cmp(&b.name));
        flows.dedup_by(|a, b| a.name == b.name);
        let all: u128 = flows.iter().map(|flow| u128::from(flow.weight.get())).sum();
        let own = flows.iter().find(|other| *other.name == *flow).map_or(0, |flow| u128::from(flow.weight.get()));
        (whole as u128 * own).checked_div(all).map_or(0, |part| part as usize)
    }

    /// Lets an active request go of its blocks and wait again.
    fn suspend(&mut self, victim: usize) {
        let mut job = self.active.remove(victim);
        job.release();
        let flow = job.flow.clone();
        self.waiting.push_front(&flow, job);
    }

    /// Makes room for the blocks that a pass adds. Admission does not set aside the whole length that sequences may
    /// reach, so that room can run out: then the youngest request of the flow that holds most lets go of its blocks
    /// and waits again. One that is alone goes on with fewer sequences.
    pub(super) fn make_room(&mut self, parts: &mut Vec<Part>) {
        loop {
            let growth = |part: &Part| {
                let job = &self.active[part.job];
                job.growth(part.target, part.positions.end) * job.block_bytes()
            };
            let needed = self.own_bytes() + parts.iter().map(growth).sum::<usize>();
            self.cache.evict(self.kv_bytes.saturating_sub(needed));
            if self.cache.bytes() + needed <= self.kv_bytes {
                return;
            }
            if let [only] = &mut self.active[..] {
                if !only.narrow() {
                    return;
                }
                let left: Vec<Target> = only.targets().collect();
                parts.retain(|part| left.contains(&part.target));
                continue;
            }
            let Some(victim) = self.heaviest() else { return };
            self.suspend(victim);
            parts.retain(|part| part.job != victim);
            parts.iter_mut().filter(|part| part.job > victim).for_each(|part| part.job -= 1);
        }
    }
}

/// For a flow that holds `held`, has a right to `part` and wants `more` where nothing is free.
fn verdict(held: usize, more: usize, part: usize) -> Verdict {
    if held + more <= part {
        Verdict::Yes
    } else if held >= part {
        Verdict::FlowWaits
    } else {
        Verdict::AllWait
    }
}
