//! Which prompts and sequences the next pass extends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use trainyard_protocol::Flow;

use super::Sampler;
use super::fair::Fair;
use super::job::SampleJob;
use super::pass::Part;
use super::prefix::{BlockTokens, NodeId};
use crate::kernels::attention::BLOCK;
use crate::model::{Adapter, Weights};

/// Prompt rows of a pass while no sequence decodes.
pub(super) const PREFILL_ROWS: usize = 256;
/// Prompt rows of a pass for which decoding sequences wait, at least: a compromise between their pace and the price
/// of reading all weights for few rows.
const SHARED_ROWS: usize = 64;

/// A prompt, or what of a sequence is to be computed again, of which the pass may take some rows.
struct Chunk {
    part: Part,
    known: usize,
    /// What it computes first, if that is a full block.
    block: Option<(NodeId, BlockTokens)>,
    /// Whether it can wait for another one that computes the same.
    patient: bool,
}

/// Chunks by flow, oldest first.
type Chunks = BTreeMap<Arc<str>, (Flow, VecDeque<Chunk>)>;

impl Sampler {
    /// What the next pass computes. Passes go around among flows and the weights that they use. Every sequence gets
    /// its next token; prompts get their next rows as far as there is room, flows in turn and each flow's oldest first.
    pub(super) fn plan(&mut self) -> Vec<Part> {
        let suspect = self.suspect();
        let weights = match suspect {
            Some(i) => Some(Arc::clone(&self.active[i].weights.weights)),
            None => self.turn(),
        };
        let Some(weights) = weights else { return Vec::new() };
        let room = self.prefill_room(&weights);
        let (mut parts, mut chunks) = (Vec::new(), Chunks::new());
        for (i, job) in self.active.iter_mut().enumerate() {
            let takes_part = suspect.map_or(!job.is_suspect(), |only| only == i);
            if !takes_part || !Arc::ptr_eq(&job.weights.weights, &weights) {
                continue;
            }
            for target in job.targets() {
                job.reuse(target, &mut self.cache);
                let (text, stream) = job.stream(target);
                let (start, known) = (stream.kv.len(), text.len());
                if job.is_decoding(target) {
                    parts.push(Part { job: i, target, positions: start..known });
                    continue;
                }
                let (block, patient) = (stream.next_block(text), start < job.reusable(target));
                let chunk = Chunk { part: Part { job: i, target, positions: start..start }, known, block, patient };
                let name = Arc::clone(&job.flow.name);
                chunks.entry(name).or_insert_with(|| (job.flow.clone(), VecDeque::new())).1.push_back(chunk);
            }
        }
        parts.extend(share(&mut self.prefills, chunks, room));
        parts.sort_by_key(|part| (part.job, part.target));
        self.by_adapter(&mut parts);
        parts
    }

    /// The request that has the next pass for itself: the oldest one that is suspected of a panic, every other time
    /// while others have work.
    fn suspect(&mut self) -> Option<usize> {
        let oldest = self.active.iter().position(SampleJob::is_suspect);
        let others = self.active.iter().any(|job| !job.is_suspect());
        self.suspected = oldest.is_some() && !(self.suspected && others);
        oldest.filter(|_| self.suspected)
    }

    /// Whose turn it is, and of the weights that the flow uses those that waited longest.
    fn turn(&mut self) -> Option<Arc<Weights>> {
        let backlog: Vec<&Flow> = self.active.iter().filter(|job| !job.is_suspect()).map(|job| &job.flow).collect();
        let mut leader = None;
        self.passes.fill(backlog, |flow| {
            let first = leader.is_none();
            first.then(|| leader = Some(Arc::clone(flow))).map(|()| 1)
        });
        let flow = leader?;
        let uses = |weights: &Arc<Weights>| {
            let same = |job: &SampleJob| job.flow.name == flow && Arc::ptr_eq(&job.weights.weights, weights);
            self.active.iter().any(|job| same(job) && !job.is_suspect())
        };
        let at = self.turns.iter().position(uses)?;
        let weights = self.turns.remove(at)?;
        self.turns.push_back(Arc::clone(&weights));
        Some(weights)
    }

    /// Brings parts with the same adapter together: each adapter is one product for all of its rows.
    fn by_adapter(&self, parts: &mut [Part]) {
        let mut seen: Vec<*const Adapter> = Vec::new();
        let mut place = |part: &Part| {
            let adapter = self.active[part.job].weights.adapter.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
            seen.iter().position(|other| std::ptr::eq(*other, adapter)).unwrap_or_else(|| {
                seen.push(adapter);
                seen.len() - 1
            })
        };
        parts.sort_by_cached_key(|part| place(part));
    }

    /// Prompt rows of the next pass: fewer when sequences wait for it, on any weights, than when none does; more
    /// the more prompts wait for each of those sequences.
    fn prefill_room(&self, weights: &Arc<Weights>) -> usize {
        let (mut decoding, mut behind) = (0usize, 0usize);
        for job in &self.active {
            for target in job.targets() {
                if job.is_decoding(target) {
                    decoding += 1;
                } else if Arc::ptr_eq(&job.weights.weights, weights) {
                    behind += 1;
                }
            }
        }
        let each = behind.checked_div(decoding);
        each.map_or(PREFILL_ROWS, |each| (SHARED_ROWS * each).clamp(SHARED_ROWS, PREFILL_ROWS))
    }
}

/// Hands out `room` rows, a block at a time. Chunks end at the end of a block, so that the next one can come from the
/// cache, or of what is known. Of chunks that begin with the same block one is computed: the others will find it in
/// the cache.
fn share(fair: &mut Fair, mut chunks: Chunks, mut room: usize) -> Vec<Part> {
    let backlog: Vec<Flow> = chunks.values().map(|(flow, _)| flow.clone()).collect();
    let mut claimed = BTreeSet::new();
    let mut parts = Vec::new();
    fair.fill(&backlog, |flow| {
        let (_, queue) = chunks.get_mut(flow)?;
        let mut at = 0;
        while let Some(chunk) = queue.get_mut(at) {
            let positions = &mut chunk.part.positions;
            let step = ((positions.end / BLOCK + 1) * BLOCK).min(chunk.known) - positions.end;
            if step == 0 {
                parts.extend(queue.remove(at).map(|chunk| chunk.part));
                continue;
            }
            let first = chunk.block.filter(|_| positions.start == positions.end);
            if step > room || (chunk.patient && first.is_some_and(|block| claimed.contains(&block))) {
                at += 1;
                continue;
            }
            claimed.extend(first);
            positions.end += step;
            room -= step;
            return Some(step);
        }
        None
    });
    let begun = chunks.into_values().flat_map(|(_, queue)| queue).map(|chunk| chunk.part);
    parts.extend(begun.filter(|part| part.positions.start < part.positions.end));
    parts
}
