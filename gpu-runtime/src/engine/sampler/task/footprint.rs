//! The KV memory of a request: in use, added by a pass, and reserved at admission.

use super::{SampleTask, Sequence, StreamTarget};
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::engine::sampler::stream::{KvStream, blocks};

/// Tokens beyond the current length of a sequence for which admission reserves blocks.
const RESERVED_TOKENS: usize = 128;

impl<B: Backend> SampleTask<B> {
    /// Bytes of a block of keys and values.
    pub(in super::super) fn block_bytes(&self) -> usize {
        self.weights.weights.model.kv_block_bytes
    }

    /// Blocks that take as many bytes as the recurrent state of a sequence.
    fn state_blocks(&self) -> usize {
        self.weights.weights.model.state_bytes.div_ceil(self.block_bytes().max(1))
    }

    /// Bytes of all running sequences with [`RESERVED_TOKENS`] further tokens each, shared blocks counted per sequence.
    pub(in super::super) fn footprint_bytes(&self) -> usize {
        self.running().map(|(_, sequence)| self.blocks_with_reserve(sequence)).sum::<usize>() * self.block_bytes()
    }

    /// Blocks of a sequence with [`RESERVED_TOKENS`] further tokens, at most those of its largest length.
    fn blocks_with_reserve(&self, sequence: &Sequence) -> usize {
        let longest = self.prompt.len() + self.max_new - 1;
        blocks(longest.min(self.prompt.len() + sequence.tokens.len() + RESERVED_TOKENS)) + self.state_blocks()
    }

    /// Blocks that running sequences with [`RESERVED_TOKENS`] further tokens need and the cache does not hold.
    pub(in super::super) fn reserved_blocks(&self) -> usize {
        if self.decodes {
            let uncached = |s: &Sequence| self.blocks_with_reserve(s).saturating_sub(s.stream.cached());
            return self.running().map(|(_, s)| uncached(s)).sum();
        }
        let full = self.prompt.len() / BLOCK;
        let own: usize = self.running().map(|(_, s)| self.blocks_with_reserve(s) - full).sum();
        full.saturating_sub(self.shared.cached()) + own
    }

    /// Elements of the keys and values, and of the recurrent state, that a pass reads for the next token of a target.
    pub(in super::super) fn elements_read(&self, target: StreamTarget) -> usize {
        let config = &self.weights.weights.model.whole.config;
        let shape = config.attention_shape();
        let state = config.state_bytes() / size_of::<f32>();
        let of_token = 2 * shape.layers * shape.kv_width() + shape.index.layers * shape.index.width;
        of_token * self.stream(target).0.len() + state
    }

    /// Blocks that it holds outside the cache.
    pub(in super::super) fn own_blocks(&self) -> usize {
        let streams = std::iter::once(&self.shared).chain(self.sequences.iter().map(|sequence| &sequence.stream));
        let state = |stream: &KvStream| stream.kv.state().map_or(0, |_| self.state_blocks());
        streams.map(|stream| stream.own_blocks() + state(stream)).sum()
    }

    /// Blocks that computing a target up to position `end` adds. At the end of the prompt every sequence gets a copy of
    /// its partly filled last block.
    pub(in super::super) fn growth(&self, target: StreamTarget, end: usize) -> usize {
        let begins_decoding = target == StreamTarget::Prompt && end == self.prompt.len();
        let copies = if begins_decoding && !end.is_multiple_of(BLOCK) { self.sequences().saturating_sub(1) } else { 0 };
        let (tokens, stream) = self.stream(target);
        let kv = &stream.kv;
        // The cache keeps the state, and the next pass continues with a copy.
        let kept = if stream.keeps_state(tokens, end) { self.state_blocks() } else { 0 };
        let state = if kv.owns_state() { 0 } else { self.state_blocks() };
        // Sequences begin with copies of the prompt's state, which the cache may hold.
        let states = if begins_decoding { self.sequences() * self.state_blocks() } else { 0 };
        blocks(end).saturating_sub(kv.blocks().len()) + copies + kept + state + states
    }

    /// Sets how many sequences run together: as many as `sequences` and `bytes` allow with their reserve, but at least
    /// one. They share the full blocks of the prompt.
    pub(in super::super) fn set_width(&mut self, sequences: usize, bytes: usize) {
        self.width = self.sequences.len();
        let (full, budget) = (self.prompt.len() / BLOCK, bytes / self.block_bytes());
        let mut needed = full;
        let fitting = self.running().take(sequences).take_while(|(_, sequence)| {
            needed += self.blocks_with_reserve(sequence) - full;
            needed <= budget
        });
        self.width = fitting.count().max(1);
    }

    /// Runs one sequence less from now on, and releases the blocks of those that no longer run. Returns false, changing
    /// nothing, if only one runs.
    pub(in super::super) fn reduce_width(&mut self) -> bool {
        let running = self.sequences();
        if running < 2 {
            return false;
        }
        self.width = running - 1;
        let unfinished = self.sequences.iter_mut().filter(|sequence| sequence.end.is_none());
        unfinished.skip(self.width).for_each(|sequence| sequence.stream = KvStream::new(self.root));
        true
    }
}
