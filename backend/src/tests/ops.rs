//! Each op of the CPU backend against the reference backend, on inputs of odd extents, for every kernel class.

use proptest::prelude::*;

use crate::check::assert_close;
use crate::check::{activations, attention, embeddings, gates, heads, linears, norms, rotations};
use crate::cpu::{Cpu, Isa};
use crate::reference::Reference;
use crate::{Activation, AttentionShape, Dtype, IndexKeys};

/// Runs an op on the reference and on the CPU in f32, for every kernel class.
macro_rules! compare {
    ($op:ident, $($arg:expr),*) => {
        let expected = $op(&Reference, $($arg),*);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            assert_close(isa.name(), &$op(&cpu, $($arg),*), &expected, 2e-5);
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn norms_agree(rows in 1usize..20, width in 1usize..90, seed in 0u64..1 << 40) {
        compare!(norms, rows, width, seed);
    }

    #[test]
    fn activations_agree(rows in 1usize..12, width in 1usize..70, seed in 0u64..1 << 40) {
        compare!(activations, Activation::Silu, rows, width, seed);
        compare!(activations, Activation::GeluTanh, rows, width, seed);
        compare!(activations, Activation::ClampedSwish, rows, width, seed);
        compare!(activations, Activation::SquaredRelu, rows, width, seed);
    }

    #[test]
    fn linear_layers_agree(
        rows in 2usize..40, k in 1usize..80, first in 1usize..70, second in 1usize..40, rank in 1usize..9,
        seed in 0u64..1 << 40,
    ) {
        compare!(linears, rows, k, [first, second], rank, seed);
    }

    #[test]
    fn attention_agrees(
        kv_heads in 1usize..3, group in 1usize..4, half in 1usize..12, first in 1usize..80, second in 1usize..40,
        window in prop::option::of(1usize..50), seed in 0u64..1 << 40,
    ) {
        let (heads, head_dim) = (kv_heads * group, 2 * half);
        let shape = AttentionShape { layers: 2, heads, kv_heads, head_dim, scale: 0.7, index: IndexKeys::NONE };
        compare!(attention, shape, [first, second], window, seed);
    }

    #[test]
    fn rotations_and_gates_agree(
        kv_heads in 1usize..3, group in 1usize..4, half in 1usize..12, rotated in 1usize..12, whole: bool,
        rows in 1usize..20, seed in 0u64..1 << 40,
    ) {
        let (heads, head_dim) = (kv_heads * group, 2 * half);
        let shape = AttentionShape { layers: 1, heads, kv_heads, head_dim, scale: 1.0, index: IndexKeys::NONE };
        compare!(rotations, shape, 2 * rotated.min(half), whole, rows, seed);
        compare!(gates, shape, rows, seed);
    }

    #[test]
    fn loss_heads_agree(
        rows in 2usize..40, hidden in 1usize..40, vocab in 2usize..1200, keep: bool, full: bool,
        seed in 0u64..1 << 40,
    ) {
        compare!(heads, rows, hidden, vocab, keep, full, seed);
    }

    #[test]
    fn embeddings_agree(width in 1usize..50, seed in 0u64..1 << 40) {
        compare!(embeddings, width, seed);
    }
}
