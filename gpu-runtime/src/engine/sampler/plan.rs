//! Choice of the prompts and sequences that the next pass extends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use trainyard_protocol::{SessionId, TenantShare};

use super::part::PassPart;
use super::prefix::{BlockTokens, NodeId};
use super::task::SampleTask;
use super::widths::RowLimits;
use super::{PREFILL_ROWS, Sampler};
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::engine::fair_share::FairShare;
use crate::model::{Adapter, Weights};

/// Fewest prompt rows of a pass in which sequences decode: a compromise between decoding latency and the cost of
/// reading all weights for few rows.
const MIN_PREFILL_ROWS: usize = 64;

/// Rows of a prompt, or of a sequence whose keys and values must be recomputed, for the pass (chunked prefill).
struct PrefillChunk {
    part: PassPart,
    /// Tokens of the stream; `part.positions` ends there at most.
    known: usize,
    /// Cache key of the block that it computes first, if that is a full block.
    block: Option<(NodeId, BlockTokens)>,
    /// Whether it may take the first block from the cache when another chunk has computed it.
    can_reuse: bool,
}

/// Chunks by tenant and session, oldest first.
type PrefillChunks = BTreeMap<Arc<str>, (TenantShare, BTreeMap<SessionId, VecDeque<PrefillChunk>>)>;

impl<B: Backend> Sampler<B> {
    /// Plans the next pass, on one set of weights. Decoding sequences get their next token, all of them while only one share has
    /// work; prompts get rows within the prefill budget, by fair share. Within a tenant sessions take turns, and within a session the oldest request
    /// is first. Tenants, and the weights of a tenant, take turns from pass to pass.
    pub(super) fn plan(&mut self) -> Vec<PassPart> {
        let quarantined = self.next_quarantined();
        let weights = match quarantined {
            Some(i) => Some(Arc::clone(&self.active[i].weights.weights)),
            None => self.next_weights(),
        };
        let Some(weights) = weights else { return Vec::new() };
        let budget = self.prefill_budget(&weights);
        let limits = self.row_limits();
        let (mut decoding, mut chunks) = (Vec::new(), PrefillChunks::new());
        for (i, task) in self.active.iter_mut().enumerate() {
            let takes_part = quarantined.map_or(!task.is_quarantined(), |only| only == i);
            if !takes_part || !Arc::ptr_eq(&task.weights.weights, &weights) {
                continue;
            }
            for target in task.targets() {
                task.attach_cached(target, &mut self.cache);
                let (tokens, stream) = task.stream(target);
                let (start, known) = (stream.kv.len(), tokens.len());
                if task.is_decoding(target) {
                    decoding.push(PassPart { task: i, target, positions: start..known });
                    continue;
                }
                // Of a recurrent model only some blocks are of use to others: nobody waits for them.
                let can_reuse = !stream.is_recurrent() && start < task.reusable_tokens(target);
                let (block, known) = (stream.next_block(tokens), stream.pass_end(tokens));
                let chunk = PrefillChunk {
                    part: PassPart { task: i, target, positions: start..start },
                    known,
                    block,
                    can_reuse,
                };
                let name = Arc::clone(&task.share.name);
                let (_, sessions) = chunks.entry(name).or_insert_with(|| (task.share.clone(), BTreeMap::new()));
                sessions.entry(task.session.clone()).or_default().push_back(chunk);
            }
        }
        let mut parts = allot_rows(&mut self.prefills, &mut self.prefill_turns, chunks, budget, limits.as_ref());
        match limits {
            Some(limits) => {
                parts.extend(self.within_limits(&limits, decoding, &parts, &weights));
                self.note_rows(limits, &parts);
            }
            None => parts.extend(decoding),
        }
        parts.sort_by_key(|part| (part.task, part.target));
        self.group_by_adapter(&mut parts);
        parts
    }

    /// The request that runs by itself in the next pass: the oldest quarantined one, in every second pass while other
    /// requests are active.
    fn next_quarantined(&mut self) -> Option<usize> {
        let oldest = self.active.iter().position(SampleTask::is_quarantined);
        let others = self.active.iter().any(|task| !task.is_quarantined());
        self.last_was_quarantined = oldest.is_some() && !(self.last_was_quarantined && others);
        oldest.filter(|_| self.last_was_quarantined)
    }

    /// The weights of the next pass: of the tenant whose turn it is, those that were used least recently.
    fn next_weights(&mut self) -> Option<Arc<Weights<B>>> {
        let backlog: Vec<&TenantShare> =
            self.active.iter().filter(|task| !task.is_quarantined()).map(|task| &task.share).collect();
        let mut leader = None;
        self.passes.fill(backlog, |tenant| {
            let first = leader.is_none();
            first.then(|| leader = Some(Arc::clone(tenant))).map(|()| 1)
        });
        let tenant = leader?;
        let uses = |weights: &Arc<Weights<B>>| {
            let same = |task: &SampleTask<B>| task.share.name == tenant && Arc::ptr_eq(&task.weights.weights, weights);
            self.active.iter().any(|task| same(task) && !task.is_quarantined())
        };
        let at = self.weights_rotation.iter().position(uses)?;
        let weights = self.weights_rotation.remove(at)?;
        self.weights_rotation.push_back(Arc::clone(&weights));
        Some(weights)
    }

    /// Sorts parts by adapter, so that each adapter is one GEMM over all of its rows.
    fn group_by_adapter(&self, parts: &mut [PassPart]) {
        let mut seen: Vec<*const Adapter<B>> = Vec::new();
        let mut position = |part: &PassPart| {
            let adapter = self.active[part.task].weights.adapter.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
            seen.iter().position(|other| std::ptr::eq(*other, adapter)).unwrap_or_else(|| {
                seen.push(adapter);
                seen.len() - 1
            })
        };
        parts.sort_by_cached_key(|part| position(part));
    }

    /// Prompt rows of the next pass: all of [`PREFILL_ROWS`] when no sequence decodes, on any weights; otherwise in
    /// proportion to the waiting prompts per decoding sequence.
    fn prefill_budget(&self, weights: &Arc<Weights<B>>) -> usize {
        let (mut decoding, mut prefilling) = (0usize, 0usize);
        for task in &self.active {
            for target in task.targets() {
                if task.is_decoding(target) {
                    decoding += 1;
                } else if Arc::ptr_eq(&task.weights.weights, weights) {
                    prefilling += 1;
                }
            }
        }
        let per_sequence = prefilling.checked_div(decoding);
        per_sequence.map_or(PREFILL_ROWS, |prompts| (MIN_PREFILL_ROWS * prompts).clamp(MIN_PREFILL_ROWS, PREFILL_ROWS))
    }
}

/// Allots `budget` rows to chunks, one block at a time, by fair share and within `limits`; the sessions of a tenant take turns. A chunk ends at
/// a block boundary, so that the next block can come from the cache, or at the end of its stream.
fn allot_rows(
    prefills: &mut FairShare,
    turns: &mut BTreeMap<Arc<str>, SessionId>,
    mut chunks: PrefillChunks,
    budget: usize,
    limits: Option<&RowLimits>,
) -> Vec<PassPart> {
    let backlog: Vec<TenantShare> = chunks.values().map(|(share, _)| share.clone()).collect();
    turns.retain(|tenant, _| chunks.contains_key(tenant));
    let mut rows = PrefillRows { budget, claimed: BTreeSet::new(), parts: Vec::new() };
    let mut taken: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    prefills.fill(&backlog, |tenant| {
        let (_, sessions) = chunks.get_mut(tenant)?;
        let own = taken.entry(Arc::clone(tenant)).or_default();
        let most = limits.map_or(usize::MAX, |limits| limits.of_prompts(tenant).saturating_sub(*own));
        let last = turns.get(tenant);
        let mut order: Vec<SessionId> = sessions.keys().cloned().collect();
        let next = last.map_or(0, |last| order.partition_point(|session| session <= last));
        order.rotate_left(next);
        let (session, step) = order
            .into_iter()
            .find_map(|session| rows.extend(sessions.get_mut(&session)?, most).map(|step| (session, step)))?;
        turns.insert(Arc::clone(tenant), session);
        *own += step;
        Some(step)
    });
    let begun = chunks.into_values().flat_map(|(_, sessions)| sessions.into_values().flatten()).map(|chunk| chunk.part);
    rows.parts.extend(begun.filter(|part| part.positions.start < part.positions.end));
    rows.parts
}

/// The prompt rows of a pass.
struct PrefillRows {
    /// Rows that are left.
    budget: usize,
    /// Blocks that the pass computes: of chunks that begin with the same block only one is computed, and the others find it
    /// in the cache in the next pass.
    claimed: BTreeSet<(NodeId, BlockTokens)>,
    /// Chunks that are complete.
    parts: Vec<PassPart>,
}

impl PrefillRows {
    /// Adds the next block of the oldest chunk that can be extended by at most so many rows. Returns its rows.
    fn extend(&mut self, queue: &mut VecDeque<PrefillChunk>, most: usize) -> Option<usize> {
        let most = self.budget.min(most);
        let mut at = 0;
        while let Some(chunk) = queue.get_mut(at) {
            let positions = &mut chunk.part.positions;
            let step = ((positions.end / BLOCK + 1) * BLOCK).min(chunk.known) - positions.end;
            if step == 0 {
                self.parts.extend(queue.remove(at).map(|chunk| chunk.part));
                continue;
            }
            let first = chunk.block.filter(|_| positions.start == positions.end);
            if step > most || (chunk.can_reuse && first.is_some_and(|block| self.claimed.contains(&block))) {
                at += 1;
                continue;
            }
            self.claimed.extend(first);
            positions.end += step;
            self.budget -= step;
            return Some(step);
        }
        None
    }
}
