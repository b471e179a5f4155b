#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::backend::{AttentionShape, HostBackend, IndexKeys};
use crate::engine::sampler::tests::{adapter, base};
use crate::model::{KvCache, KvSequence};

type PrefixCache = super::PrefixCache<HostBackend>;

const BYTES: usize = 10;

fn block() -> Arc<KvBlock> {
    let shape = AttentionShape { layers: 1, heads: 1, kv_heads: 1, head_dim: 2, scale: 1.0, index: IndexKeys::NONE };
    let backend = HostBackend::new(1);
    let mut kv = [KvSequence::default()];
    KvCache::new(&backend, &shape, &[]).extend(&backend, &[(0..1, 0)], &mut kv);
    Arc::clone(&kv[0].blocks()[0])
}

/// Inserts blocks of the given tokens after one another; returns their nodes and the last block.
fn insert(cache: &mut PrefixCache, root: NodeId, path: &[u32]) -> (Vec<NodeId>, Arc<KvBlock>) {
    let (mut nodes, mut last, mut parent) = (Vec::new(), block(), root);
    for token in path {
        (parent, last) = cache.insert(parent, &[*token; BLOCK], &block(), BYTES);
        nodes.push(parent);
    }
    (nodes, last)
}

/// How many leading blocks of a path there are.
fn found(cache: &PrefixCache, root: NodeId, path: &[u32]) -> usize {
    let mut parent = root;
    let step = |token: &&u32| {
        let child = cache.children.get(&(parent, [**token; BLOCK]));
        child.is_some_and(|id| {
            parent = *id;
            true
        })
    };
    path.iter().take_while(step).count()
}

fn check(cache: &PrefixCache) {
    assert_eq!(cache.bytes, cache.nodes.values().map(|node| node.bytes + node.state_bytes).sum::<usize>());
    assert!(cache.nodes.values().all(|node| node.state.is_some() || node.state_bytes == 0));
    assert_eq!(cache.children.len(), cache.nodes.len());
    for (id, node) in &cache.nodes {
        assert_eq!(cache.children[&(node.parent, node.tokens)], *id);
        assert_eq!(node.children, cache.nodes.values().filter(|child| child.parent == *id).count());
        assert_eq!(cache.leaves.contains(&(node.used, *id)), node.children == 0);
    }
    assert_eq!(cache.leaves.len(), cache.nodes.values().filter(|node| node.children == 0).count());
}

#[test]
fn a_block_is_found_by_all_tokens_before_it() {
    let mut cache = PrefixCache::default();
    let (root, other) = (cache.next_id(), cache.next_id());
    let (nodes, block) = insert(&mut cache, root, &[1, 2, 3]);
    let (id, same) = cache.get(nodes[1], &[3; BLOCK]).unwrap();
    assert!(id == nodes[2] && Arc::ptr_eq(&block, &same));
    assert!(cache.get(nodes[0], &[3; BLOCK]).is_none());
    let mut nearly = [3; BLOCK];
    nearly[BLOCK - 1] = 4;
    assert!(cache.get(nodes[1], &nearly).is_none());
    assert_eq!(found(&cache, other, &[1, 2, 3]), 0);
    insert(&mut cache, other, &[1]);
    assert_eq!((found(&cache, root, &[1, 2, 3]), found(&cache, other, &[1, 2, 3])), (3, 1));
    check(&cache);
}

#[test]
fn equal_blocks_are_stored_once() {
    let mut cache = PrefixCache::default();
    let root = cache.next_id();
    let (nodes, first) = insert(&mut cache, root, &[1]);
    let (repeated, second) = insert(&mut cache, root, &[1]);
    assert!(nodes == repeated && Arc::ptr_eq(&first, &second));
    assert_eq!(cache.bytes(), BYTES);
    check(&cache);
}

#[test]
fn least_recently_used_leaves_are_evicted_first() {
    let mut cache = PrefixCache::default();
    let root = cache.next_id();
    let (nodes, _) = insert(&mut cache, root, &[1, 2, 3]);
    insert(&mut cache, root, &[1, 5]);
    insert(&mut cache, root, &[7, 8]);
    cache.get(nodes[1], &[3; BLOCK]).unwrap();
    check(&cache);
    let mut remaining = Vec::new();
    for blocks in (0..6).rev() {
        cache.evict(blocks * BYTES + BYTES / 2);
        check(&cache);
        assert_eq!(cache.bytes(), blocks * BYTES);
        remaining.push([&[1, 2, 3][..], &[1, 5], &[7, 8]].map(|path| found(&cache, root, path)));
    }
    assert_eq!(remaining, [[3, 1, 2], [3, 1, 1], [3, 1, 0], [2, 1, 0], [1, 1, 0], [0, 0, 0]]);
}

#[test]
fn blocks_in_use_are_not_evicted() {
    let mut cache = PrefixCache::default();
    let root = cache.next_id();
    let (nodes, _) = insert(&mut cache, root, &[1, 2, 3]);
    let held = [cache.get(root, &[1; BLOCK]), cache.get(nodes[0], &[2; BLOCK])];
    cache.evict(0);
    check(&cache);
    assert_eq!((cache.bytes(), found(&cache, root, &[1, 2, 3])), (2 * BYTES, 2));
    drop(held);
    cache.evict(0);
    check(&cache);
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn states_are_dropped_before_a_sequence_loses_its_blocks() {
    let backend = HostBackend::new(1);
    let weights = SamplerWeights::of_base(base("qwen3_5"));
    let shapes: Vec<_> = weights.base.config().states().collect();
    let mut kv = [KvSequence::continued()];
    KvCache::new(&backend, &weights.base.config().attention_shape(), &shapes).extend(&backend, &[(0..1, 0)], &mut kv);
    let state = kv[0].state().unwrap();
    let mut cache = PrefixCache::default();
    let root = cache.next_id();
    let (nodes, _) = insert(&mut cache, root, &[1, 2, 3]);
    let held = [cache.get(root, &[1; BLOCK]), cache.get(nodes[0], &[2; BLOCK])];
    for node in [nodes[0], nodes[1], nodes[2], nodes[1]] {
        cache.keep_state(node, state, 100);
    }
    check(&cache);
    assert_eq!(cache.bytes(), 3 * BYTES + 300);
    let kept = |cache: &PrefixCache| nodes.iter().map(|node| cache.state(*node).is_some()).collect::<Vec<_>>();
    cache.evict(2 * BYTES + 200);
    assert_eq!((cache.bytes(), kept(&cache)), (2 * BYTES + 200, vec![true, true, false]));
    cache.evict(2 * BYTES + 199);
    assert_eq!((cache.bytes(), kept(&cache)), (2 * BYTES + 100, vec![false, true, false]));
    check(&cache);
    drop(held);
    cache.evict(0);
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn weights_versions_are_separate_and_removed_with_their_weights() {
    let mut cache = PrefixCache::default();
    let plain = SamplerWeights::of_base(base("llama"));
    let adapted = |seed| SamplerWeights { adapter: Some(adapter(&plain.base, seed)), ..plain.clone() };
    let (one, two) = (adapted(1), adapted(2));
    let roots = [&plain, &one, &two].map(|weights| cache.root(weights));
    assert!(roots[0] != roots[1] && roots[1] != roots[2] && roots[0] != roots[2]);
    assert_eq!(cache.root(&one.clone()), roots[1]);
    for (root, depth) in roots.into_iter().zip([1, 2, 3]) {
        insert(&mut cache, root, &vec![9; depth]);
    }
    cache.remove_stale_versions();
    assert_eq!(cache.bytes(), 6 * BYTES);
    drop(two);
    cache.remove_stale_versions();
    check(&cache);
    assert_eq!(roots.map(|root| found(&cache, root, &[9; 3])), [1, 2, 0]);
    // Neither the root nor its blocks are reused for other weights at the same address.
    let next = adapted(3);
    let root = cache.root(&next);
    assert!(!roots.contains(&root));
    assert_eq!(found(&cache, root, &[9; 3]), 0);
}
