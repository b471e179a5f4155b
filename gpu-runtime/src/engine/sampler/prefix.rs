//! The prefix cache: blocks of keys and values by weights version and all tokens up to the end of the block.
//!
//! A block is a node of a tree whose root is a weights version, so that a path spells out the tokens: no lookup relies
//! only on a hash. Kernels are batch-invariant, hence a cached block has the bits that recomputing it would give.
//!
//! Of models with recurrences or short convolutions some blocks also have the state of the sequence after them: a sequence can continue only from such a
//! block. States are kept sparsely ([`super::stream`]), as one takes the memory of many blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use super::weights::SamplerWeights;
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::model::{Adapter, KvBlock, RecurrentState, Weights};

/// Tokens of a block.
pub(super) type BlockTokens = [u32; BLOCK];

/// A node of the tree. Ids are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u64);

/// The weights of a root. The weak references prevent reuse of the addresses, and show when the weights are dropped.
struct WeightsVersion<B: Backend> {
    weights: Weak<Weights<B>>,
    adapter: Option<Weak<Adapter<B>>>,
    root: NodeId,
}

impl<B: Backend> WeightsVersion<B> {
    fn is(&self, weights: &SamplerWeights<B>) -> bool {
        let same_adapter = match (&self.adapter, &weights.adapter) {
            (Some(a), Some(b)) => std::ptr::eq(a.as_ptr(), Arc::as_ptr(b)),
            (None, None) => true,
            _ => false,
        };
        same_adapter && std::ptr::eq(self.weights.as_ptr(), Arc::as_ptr(&weights.weights))
    }

    fn is_stale(&self) -> bool {
        self.weights.strong_count() == 0 || self.adapter.as_ref().is_some_and(|a| a.strong_count() == 0)
    }
}

struct Node {
    parent: NodeId,
    tokens: BlockTokens,
    block: Arc<KvBlock>,
    /// Recurrent state after the block's last token, if it is kept.
    state: Option<Arc<RecurrentState>>,
    /// Bytes of the state.
    state_bytes: usize,
    /// Bytes of the block.
    bytes: usize,
    children: usize,
    /// Value of the cache's clock at the last use.
    used: u64,
}

impl Node {
    /// Whether a sequence holds the block as well.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.block) > 1
    }
}

/// A tree of full blocks, including those of active sequences.
pub(super) struct PrefixCache<B: Backend> {
    versions: Vec<WeightsVersion<B>>,
    nodes: BTreeMap<NodeId, Node>,
    children: BTreeMap<(NodeId, BlockTokens), NodeId>,
    /// Nodes without children, least recently used first.
    leaves: BTreeSet<(u64, NodeId)>,
    bytes: usize,
    clock: u64,
    /// The last id that was given.
    last: u64,
}

impl<B: Backend> Default for PrefixCache<B> {
    fn default() -> Self {
        Self {
            versions: Vec::new(),
            nodes: BTreeMap::new(),
            children: BTreeMap::new(),
            leaves: BTreeSet::new(),
            bytes: 0,
            clock: 0,
            last: 0,
        }
    }
}

impl<B: Backend> PrefixCache<B> {
    /// Bytes of all blocks and states, including those that sequences hold as well.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The root for a weights version; added if it is new.
    pub(super) fn root(&mut self, weights: &SamplerWeights<B>) -> NodeId {
        if let Some(version) = self.versions.iter().find(|version| version.is(weights)) {
            return version.root;
        }
        let root = self.next_id();
        self.versions.push(WeightsVersion {
            weights: Arc::downgrade(&weights.weights),
            adapter: weights.adapter.as_ref().map(Arc::downgrade),
            root,
        });
        root
    }

    /// The block of `tokens` after the block `parent`.
    pub(super) fn get(&mut self, parent: NodeId, tokens: &BlockTokens) -> Option<(NodeId, Arc<KvBlock>)> {
        let id = *self.children.get(&(parent, *tokens))?;
        self.clock += 1;
        let node = self.nodes.get_mut(&id)?;
        if self.leaves.remove(&(node.used, id)) {
            self.leaves.insert((self.clock, id));
        }
        node.used = self.clock;
        Some((id, Arc::clone(&node.block)))
    }

    /// Inserts a block of `bytes` bytes. Returns its node and the block to use from now on: the cached one, if an equal
    /// one was cached. `parent` must be a root or a block that a sequence holds.
    pub(super) fn insert(
        &mut self,
        parent: NodeId,
        tokens: &BlockTokens,
        block: &Arc<KvBlock>,
        bytes: usize,
    ) -> (NodeId, Arc<KvBlock>) {
        if let Some(found) = self.get(parent, tokens) {
            return found;
        }
        let id = self.next_id();
        self.clock += 1;
        if let Some(parent_node) = self.nodes.get_mut(&parent) {
            parent_node.children += 1;
            self.leaves.remove(&(parent_node.used, parent));
        }
        let used = self.clock;
        let block_of = Arc::clone(block);
        let node =
            Node { parent, tokens: *tokens, block: block_of, state: None, state_bytes: 0, bytes, children: 0, used };
        self.nodes.insert(id, node);
        self.children.insert((parent, *tokens), id);
        self.leaves.insert((used, id));
        self.bytes += bytes;
        (id, Arc::clone(block))
    }

    /// The recurrent state after a block, if it is kept.
    pub(super) fn state(&self, id: NodeId) -> Option<Arc<RecurrentState>> {
        self.nodes.get(&id)?.state.clone()
    }

    /// Keeps the recurrent state of `bytes` bytes after a block, unless one is kept already.
    pub(super) fn keep_state(&mut self, id: NodeId, state: &Arc<RecurrentState>, bytes: usize) {
        if let Some(node) = self.nodes.get_mut(&id).filter(|node| node.state.is_none()) {
            node.state = Some(Arc::clone(state));
            node.state_bytes = bytes;
            self.bytes += bytes;
        }
    }

    /// Evicts until at most `bytes` remain: blocks that no sequence holds, with their states, then states of other blocks, each
    /// least recently used first.
    pub(super) fn evict(&mut self, bytes: usize) {
        self.evict_blocks(bytes);
        if self.bytes <= bytes {
            return;
        }
        let stateful = self.nodes.iter().filter(|(_, node)| node.state.is_some());
        let mut oldest: Vec<_> = stateful.map(|(id, node)| (node.used, *id)).collect();
        oldest.sort_unstable();
        for (_, id) in oldest {
            if self.bytes <= bytes {
                return;
            }
            self.drop_state(id);
        }
    }

    /// Drops the state after a block.
    fn drop_state(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.state = None;
            self.bytes -= node.state_bytes;
            node.state_bytes = 0;
        }
    }

    fn evict_blocks(&mut self, bytes: usize) {
        // A sequence that holds a block holds all before it: a leaf in use implies ancestors in use.
        let mut from = (0, NodeId::default());
        while self.bytes > bytes {
            let free = self.leaves.range(from..).find(|(_, id)| self.nodes.get(id).is_some_and(|node| !node.in_use()));
            let Some(&(used, id)) = free else { return };
            let parent = self.remove(id);
            // The parent may have become a leaf, older than this one.
            from = parent.and_then(|id| self.nodes.get(&id).map(|node| (node.used, id))).unwrap_or((used, id));
            from = from.min((used, id));
        }
    }

    /// Removes the blocks of weights that were dropped.
    pub(super) fn remove_stale_versions(&mut self) {
        let stale: Vec<NodeId> = self.versions.extract_if(.., |version| version.is_stale()).map(|v| v.root).collect();
        let mut stack = stale;
        while let Some(id) = stack.pop() {
            let range = (id, [0; BLOCK])..=(id, [u32::MAX; BLOCK]);
            stack.extend(self.children.range(range).map(|(_, child)| *child));
            self.remove(id);
        }
    }

    /// Removes a node and returns its parent. The caller removes its children.
    fn remove(&mut self, id: NodeId) -> Option<NodeId> {
        let node = self.nodes.remove(&id)?;
        self.leaves.remove(&(node.used, id));
        self.children.remove(&(node.parent, node.tokens));
        self.bytes -= node.bytes + node.state_bytes;
        if let Some(parent) = self.nodes.get_mut(&node.parent) {
            parent.children -= 1;
            if parent.children == 0 {
                self.leaves.insert((parent.used, node.parent));
            }
        }
        Some(node.parent)
    }

    fn next_id(&mut self) -> NodeId {
        self.last += 1;
        NodeId(self.last)
    }
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
