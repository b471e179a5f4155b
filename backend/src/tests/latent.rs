//! Ops of latent attention: the CPU backend against the reference backend, and these against what they mean.

use proptest::prelude::*;

use crate::check::access::Numbers;
use crate::check::assert_close;
use crate::check::{latent_heads as ops, positions};
use crate::cpu::{Cpu, Isa};
use crate::reference::{Matrix, Reference};
use crate::rope::rope_table;
use crate::rope::{RopeConfig, RopeScaling};
use crate::{Backend, Dtype, LatentHeads, LatentOps, LatentRotation};

fn rope<B: Backend>(b: &B, h: &LatentHeads) -> B::Rope {
    let config = RopeConfig { theta: 100.0, scaling: RopeScaling::None };
    b.rope(h.rope / 2, rope_table(&config, h.rope, 200))
}
proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn heads_agree(
        rows in 1usize..30, heads in 1usize..5, nope in 1usize..20, half in 1usize..9, value in 1usize..40,
        interleaved: bool, seed in 0u64..1 << 40,
    ) {
        let width = (nope + 2 * half).max(value).next_multiple_of(2);
        let h = LatentHeads { heads, nope, rope: 2 * half, value, width, interleaved };
        let expected = ops(&Reference, h, rows, seed);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            assert_close(isa.name(), &ops(&cpu, h, rows, seed), &expected, 2e-5);
        }
    }
}

/// `Σ a b`, in f64.
fn product(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Joining heads is linear in each of its sources: its backward pass is its adjoint.
#[test]
fn gradients_are_adjoint() {
    let h = LatentHeads { heads: 3, nope: 4, rope: 6, value: 13, width: 14, interleaved: true };
    let (rows, mut n) = (5, Numbers(9));
    let mut take = |width: usize| Matrix::new(n.take(rows * width), width);
    let (q, kv, down) = (take(h.queries()), take(h.keys_and_values()), take(h.rope));
    let (d_qkv, attended, d_values) = (take(3 * h.heads * h.width), take(h.heads * h.width), take(h.values()));
    let (rope, positions) = (rope(&Reference, &h), positions(rows));
    let rotation = LatentRotation { heads: h, rope: &rope, positions: &positions };
    let [d_q, d_kv, d_common] = Reference::split_heads(&Reference, &rotation, &d_qkv);
    let joined = Reference::join_heads(&Reference, &rotation, &q, &kv, &down);
    let back = product(q.data(), d_q.data()) + product(kv.data(), d_kv.data()) + product(down.data(), d_common.data());
    assert!((product(joined.data(), d_qkv.data()) - back).abs() < 1e-4);
    let values = Reference::head_values(&Reference, h, &attended);
    let padded = Reference::pad_values(&Reference, h, &d_values);
    assert!((product(values.data(), d_values.data()) - product(attended.data(), padded.data())).abs() < 1e-4);
}

/// Scores depend only on the distance of positions, and pairs are neighbours or half a head apart.
#[test]
fn rotations_are_by_distance() {
    let heads = |interleaved| LatentHeads { heads: 1, nope: 1, rope: 4, value: 2, width: 6, interleaved };
    let score = |h: LatentHeads, [query, key]: [u32; 2]| {
        let rope = rope(&Reference, &h);
        let rotation = LatentRotation { heads: h, rope: &rope, positions: &[query, key] };
        let q = Matrix::new([[0.3, 0.9, -0.2, 0.4, 0.7]; 2].concat(), 5);
        let kv = Matrix::new([[0.5, 0.1, 0.2]; 2].concat(), 3);
        let down = Matrix::new([[0.6, -0.8, 0.1, 0.35]; 2].concat(), 4);
        let qkv = Reference::join_heads(&Reference, &rotation, &q, &kv, &down);
        product(&qkv.data()[..6], &qkv.data()[18 + 6..18 + 12])
    };
    for interleaved in [false, true] {
        let of = |positions| score(heads(interleaved), positions);
        assert!((of([9, 4]) - of([105, 100])).abs() < 1e-5);
        assert!((of([9, 4]) - of([9, 5])).abs() > 1e-3);
        // At one position the score is the product of the vectors.
        assert!((of([7, 7]) - (0.15 + 0.54 + 0.16 + 0.04 + 0.245)).abs() < 1e-6);
    }
    assert!((score(heads(false), [9, 4]) - score(heads(true), [9, 4])).abs() > 1e-3);
}
