//! Biases and activations on the way against those of the output: equal bits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;

use super::lhs::LhsData;
use super::*;
use crate::Dtype;
use crate::cpu::elementwise::{add_bias, gelu_tanh};
use crate::cpu::packed::{NR, PackedMatrix};
use crate::cpu::{Cpu, Isa};

fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| (((i * 7919 + seed * 104_729) % 1021) as f32 - 510.0) / 384.0).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Outputs that are written past the caches have more elements than proptest's.
fn extents() -> impl Strategy<Value = (usize, usize, usize)> {
    prop_oneof![(1usize..90, 1usize..100, 1usize..80), (120usize..200, 1100usize..1110, Just(300usize))]
}

fn activate(_: Isa, x: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out = gelu_tanh(*x));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn biases_are_added_last((rows, n, k) in extents(), ranked: bool, residual: bool) {
        let (x, w, b) = (values(rows * k, 1), values(n * k, 2), values(n, 3));
        let old = values(rows * n, 4);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let (lhs, weights) = (PackedLhs::new(&cpu, dtype, &x, k), PackedMatrix::pack(&cpu, dtype, k, &[&w]));
                let low = PackedMatrix::pack(&cpu, dtype, 5, &[&values(n * 5, 5)]);
                // From a row within a tile on: it can't be added in the kernel.
                let first = rows / 2;
                let z = PackedLhs::new(&cpu, dtype, &values((rows - first) * 5, 6), 5);
                let updates = || match ranked && n > NR {
                    true => vec![LowRankUpdate { rows: first..rows, at: 0, terms: vec![(&z, (&low).into())] }],
                    false => Vec::new(),
                };
                let run = |bias| {
                    let mut out = vec![f32::NAN; rows * n];
                    let start = if residual { SumStart::Of(&old) } else { SumStart::Zero };
                    let w = (&weights).into();
                    let gemm = Gemm { x: &lhs, rows: 0..rows, x_k: 0, w, out: &mut out, start, low_rank: updates(), bias };
                    run_gemms(&cpu, &mut [gemm]);
                    out
                };
                let mut expected = run(None);
                add_bias(&cpu, &mut expected, &b);
                prop_assert_eq!(bits(&run(Some(&b[..]))), bits(&expected), "{:?} {:?}", isa, dtype);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn an_activation_alone_has_the_bits_of_the_outputs((rows, n, k) in extents(), with_bias: bool) {
        let (x, w, b) = (values(rows * k, 1), values(n * k, 2), values(n, 3));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            let (lhs, w) = (PackedLhs::new(&cpu, Dtype::Bf16, &x, k), PackedMatrix::pack(&cpu, Dtype::Bf16, k, &[&w]));
            let bias = with_bias.then_some(&b[..]);
            let found = run_activated_gemm(&cpu, &ActivatedGemm { x: &lhs, w: &w, bias, act: activate });
            prop_assert_eq!(found.is_some(), isa.multiplies_bf16() && rows > 48, "{:?}", isa);
            let Some(found) = found else { continue };
            let mut out = vec![0.0; rows * n];
            matmul(&cpu, &lhs, &w, &mut out, false);
            if with_bias {
                add_bias(&cpu, &mut out, &b);
            }
            let of_row = |row: usize, to: &mut [f32]| activate(isa, &out[row * n..][..n], to);
            let expected = PackedLhs::of_rows(&cpu, Dtype::Bf16, rows, n, of_row);
            let (LhsData::Tiles(found), LhsData::Tiles(expected)) = (&found.data, &expected.data) else {
                panic!("left sides of a class with products of bf16 are in tiles");
            };
            prop_assert_eq!(&found[..], &expected[..], "{:?}", isa);
        }
    }
}
