//! Keys and values by what they were computed from: the weights and the tokens up to a block's end.
//!
//! A block of a sequence is a node of a tree whose root stands for a version of the weights, so that a path spells
//! the tokens themselves: nothing is found by a hash alone. Kernels are batch invariant, hence a cached block has the
//! bits that computing it again would give.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use super::SamplerWeights;
use crate::kernels::attention::{BLOCK, KvBlock};
use crate::model::{Adapter, Weights};

/// Tokens of a block.
pub(super) type BlockTokens = [u32; BLOCK];

/// A node of the tree; never used again for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u64);

/// What a root stands for. The weak references keep addresses from being used again, and tell when the weights
/// are gone.
struct Version {
    weights: Weak<Weights>,
    adapter: Option<Weak<Adapter>>,
    root: NodeId,
}

impl Version {
    fn is(&self, weights: &SamplerWeights) -> bool {
        let same_adapter = match (&self.adapter, &weights.adapter) {
            (Some(a), Some(b)) => std::ptr::eq(a.as_ptr(), Arc::as_ptr(b)),
            (None, None) => true,
            _ => false,
        };
        same_adapter && std::ptr::eq(self.weights.as_ptr(), Arc::as_ptr(&weights.weights))
    }

    fn is_dead(&self) -> bool {
        self.weights.strong_count() == 0 || self.adapter.as_ref().is_some_and(|a| a.strong_count() == 0)
    }
}

struct Node {
    parent: NodeId,
    tokens: BlockTokens,
    block: Arc<KvBlock>,
    bytes: usize,
    children: usize,
    used: u64,
}

impl Node {
    /// Whether a sequence holds the block as well.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.block) > 1
    }
}

/// Full blocks of sequences, those in progress included.
#[derive(Default)]
pub(super) struct PrefixCache {
    versions: Vec<Version>,
    nodes: BTreeMap<NodeId, Node>,
    children: BTreeMap<(NodeId, BlockTokens), NodeId>,
    /// Nodes without children, least recently used first.
    leaves: BTreeSet<(u64, NodeId)>,
    bytes: usize,
    clock: u64,
    last: u64,
}

impl PrefixCache {
    /// Bytes of all blocks held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The root of what was computed with these weights.
    pub(super) fn root(&mut self, weights: &SamplerWeights) -> NodeId {
        if let Some(version) = self.versions.iter().find(|version| version.is(weights)) {
            return version.root;
        }
        let root = self.next_id();
        self.versions.push(Version {
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

    /// Keeps a block of `bytes` bytes. Returns its node and the block to use from now on: an equal one, if there was
    /// one. `parent` must be a root or a block that a sequence holds.
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
        let node = Node { parent, tokens: *tokens, block: Arc::clone(block), bytes, children: 0, used };
        self.nodes.insert(id, node);
        self.children.insert((parent, *tokens), id);
        self.leaves.insert((used, id));
        self.bytes += bytes;
        (id, Arc::clone(block))
    }

    /// Drops blocks that no sequence holds, least recently used first, until at most `bytes` are held.
    pub(super) fn evict(&mut self, bytes: usize) {
        // Who holds a block holds those before it: a leaf in use keeps its ancestors, too.
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

    /// Forgets what was computed with weights that nobody can use any more.
    pub(super) fn forget_dead(&mut self) {
        let dead: Vec<NodeId> = self.versions.extract_if(.., |version| version.is_dead()).map(|v| v.root).collect();
        let mut stack = dead;
        while let Some(id) = stack.pop() {
            let range = (id, [0; BLOCK])..=(id, [u32::MAX; BLOCK]);
            stack.extend(self.children.range(range).map(|(_, child)| *child));
            self.remove(id);
        }
    }

    /// Removes a node and returns its parent. Its children, if it has any, must go as well.
    fn remove(&mut self, id: NodeId) -> Option<NodeId> {
        let node = self.nodes.remove(&id)?;
        self.leaves.remove(&(node.used, id));
        self.children.remove(&(node.parent, node.tokens));
        self.bytes -= node.bytes;
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
