//! GEMMs against plain sums, and their bits under every split.

use std::mem::MaybeUninit;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::Dtype;
use crate::cpu::linear::runs_within;
use crate::cpu::packed::{NR, PackedMatrix};
use crate::cpu::{Cpu, Isa};

fn values(n: usize, seed: usize) -> Vec<f32> {
    // Exact in bf16, so that rounding inputs changes nothing.
    (0..n).map(|i| (((i * 7919 + seed * 104_729) % 251) as f32 - 125.0) / 64.0).collect()
}

fn reference(dtype: Dtype, m: usize, n: usize, k: usize, a: &[f32], w: &[f32], c: &mut [f32]) {
    for i in 0..m {
        for j in 0..n {
            let sum: f64 =
                (0..k).map(|p| f64::from(dtype.round(a[i * k + p])) * f64::from(dtype.round(w[j * k + p]))).sum();
            c[i * n + j] += sum as f32;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_gemm_matches_reference_on_every_isa(m in 1usize..40, n in 1usize..80, k in prop_oneof![1usize..70, 250usize..520], accumulate: bool) {
        let (a, w) = (values(m * k, 1), values(n * k, 2));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let packed = PackedMatrix::pack(&cpu, dtype, k, &[&w]);
                let mut c = values(m * n, 3);
                let mut expected = if accumulate { c.clone() } else { vec![0.0; m * n] };
                matmul(&cpu, &PackedLhs::new(&cpu, dtype, &a, k), &packed, &mut c, accumulate);
                reference(dtype, m, n, k, &a, &w, &mut expected);
                for (c, e) in c.iter().zip(&expected) {
                    prop_assert!((c - e).abs() < 1e-3, "{isa:?} {dtype:?}: {c} != {e}");
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_at_any_batch_size(m in 2usize..40, n in 1usize..80, k in 1usize..70) {
        let (a, w) = (values(m * k, 4), values(n * k, 5));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let packed = PackedMatrix::pack(&cpu, dtype, k, &[&w]);
                let mut all = vec![0.0; m * n];
                matmul(&cpu, &PackedLhs::new(&cpu, dtype, &a, k), &packed, &mut all, false);
                for i in 0..m {
                    let mut one = vec![0.0; n];
                    matmul(&cpu, &PackedLhs::new(&cpu, dtype, &a[i * k..(i + 1) * k], k), &packed, &mut one, false);
                    prop_assert_eq!(&one, &all[i * n..(i + 1) * n]);
                }
            }
        }
    }

    #[test]
    fn a_transpose_that_is_not_packed_gives_the_same_bits(
        m in 1usize..40, n in 1usize..80, k in prop_oneof![1usize..70, 760usize..800], from in 0usize..9, accumulate: bool
    ) {
        // The matrix is [k, n]: it is multiplied by its rows.
        let (a, w) = (values(m * k, 8), values(n * k, 9));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let w = PackedMatrix::pack(&cpu, dtype, n, &[&w]);
                let Some(rhs) = GemmRhs::transpose(&cpu, &w) else { continue };
                prop_assert_eq!((rhs.n(), rhs.k()), (n, k));
                let (packed, lhs) = (w.transposed(&cpu), PackedLhs::new(&cpu, dtype, &a, k));
                let (mut found, mut expected) = (values(m * n, 3), values(m * n, 3));
                matmul(&cpu, &lhs, rhs, &mut found, accumulate);
                matmul(&cpu, &lhs, &packed, &mut expected, accumulate);
                prop_assert_eq!(&found, &expected, "{:?} {:?}", isa, dtype);
                let from = (from * 8).min(k - 1) / 8 * 8;
                let rows: Vec<f32> = a.chunks_exact(k).flat_map(|row| row[from..].to_vec()).collect();
                let part = PackedLhs::new(&cpu, dtype, &rows, k - from);
                matmul_block(&cpu, &part, 0..m, rhs, 0..n, from..k, &mut found, n, false);
                matmul_block(&cpu, &part, 0..m, &packed, 0..n, from..k, &mut expected, n, false);
                prop_assert_eq!(found, expected, "{:?} {:?} from {}", isa, dtype, from);
            }
        }
    }

    #[test]
    fn strided_gemm_matches_reference_and_splits_along_k(m in 1usize..20, n in 1usize..40, k in 2usize..30, cut in 1usize..29) {
        let cut = cut.min(k - 1);
        let (a, b) = (values(m * k, 6), values(k * n, 7));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            // A is read transposed: element (i, p) at p * m + i.
            let at: Vec<f32> = (0..m * k).map(|x| a[(x % m) * k + x / m]).collect();
            let left = Strided { data: &at, row_stride: 1, col_stride: m };
            let (mut whole, mut parts) = (vec![0.5; m * n], vec![0.5; m * n]);
            strided(&cpu, Extents { m, n, k }, left, &b, n, &mut whole, n, true);
            strided(&cpu, Extents { m, n, k: cut }, left, &b, n, &mut parts, n, true);
            let rest = Strided { data: &at[cut * m..], ..left };
            strided(&cpu, Extents { m, n, k: k - cut }, rest, &b[cut * n..], n, &mut parts, n, true);
            prop_assert_eq!(&whole, &parts);
            for i in 0..m {
                for j in 0..n {
                    let sum: f32 = 0.5 + (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
                    prop_assert!((whole[i * n + j] - sum).abs() < 1e-3);
                }
            }
        }
    }

    #[test]
    fn gradients_match_reference_and_split_along_rows(
        rows in prop_oneof![9 => 1usize..40, 1 => 511usize..516], left in 1usize..140, right in 1usize..40, cut in 0usize..39, transposed: bool
    ) {
        let cut = cut.min(rows);
        let (stride_left, stride_right) = (left + 3, right + 1);
        let (l, r) = (values(rows * stride_left, 10), values(rows * stride_right, 11));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            let sides = |from: usize| {
                let left = GradientSide::Rows(RowsView { data: &l[from * stride_left..], stride: stride_left, width: left });
                (left, GradientSide::Rows(RowsView { data: &r[from * stride_right..], stride: stride_right, width: right }))
            };
            let (mut whole, mut parts) = (vec![0.5; left * right], vec![0.5; left * right]);
            // Two sequences, which the cut separates.
            let runs = |rows: Range<usize>| runs_within(&[0..cut, cut..600], &rows);
            let compute = |rows: Range<usize>, out: GradientOut<'_>, alone: bool| {
                let (left, right) = sides(rows.start);
                let runs = &runs(rows);
                let gradient = WeightGradient { runs, left, right, transposed, out };
                if alone { add_weight_gradient(&cpu, gradient) } else { add_weight_gradients(&cpu, &mut [gradient]) }
            };
            compute(0..rows, GradientOut::Add(&mut whole), false);
            compute(0..cut, GradientOut::Add(&mut parts), false);
            compute(cut..rows, GradientOut::Add(&mut parts), true);
            prop_assert_eq!(&whole, &parts);
            let mut from_zeros = vec![0.0; left * right];
            compute(0..rows, GradientOut::Add(&mut from_zeros), false);
            for alone in [false, true] {
                let mut written = vec![MaybeUninit::new(f32::NAN); left * right];
                compute(0..rows, GradientOut::Write(&mut written), alone);
                for (written, sum) in written.iter().zip(&from_zeros) {
                    // SAFETY: all elements were initialised.
                    prop_assert_eq!(unsafe { written.assume_init() }.to_bits(), sum.to_bits());
                }
            }
            for i in 0..left {
                for j in 0..right {
                    let sum: f32 = 0.5 + (0..rows).map(|m| l[m * stride_left + i] * r[m * stride_right + j]).sum::<f32>();
                    let found = whole[if transposed { j * left + i } else { i * right + j }];
                    prop_assert!((found - sum).abs() < 1e-3, "{found} != {sum}");
                }
            }
        }
    }

    #[test]
    fn low_rank_terms_add_to_their_part_alone(
        rows in 1usize..30, first in 0usize..9, n in 1usize..70, at in 0usize..9, ranks in proptest::collection::vec(1usize..20, 1..3)
    ) {
        let (total, stride) = (first + rows + 2, at + n + 5);
        let zs: Vec<_> = ranks.iter().map(|r| values(rows * r, 12)).collect();
        let ws: Vec<_> = ranks.iter().map(|r| values(n * r, 13)).collect();
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let packed: Vec<_> = ranks.iter().zip(&ws).map(|(r, w)| PackedMatrix::pack(&cpu, dtype, *r, &[w])).collect();
                let mut out = vec![0.5; total * stride];
                let lhs: Vec<_> = ranks.iter().zip(&zs).map(|(r, z)| PackedLhs::new(&cpu, dtype, z, *r)).collect();
                let terms = lhs.iter().zip(packed.iter().map(GemmRhs::from)).collect();
                add_low_rank(&cpu, &mut out, stride, &[LowRankUpdate { rows: first..first + rows, at, terms }]);
                for (index, found) in out.iter().enumerate() {
                    let (i, j) = (index / stride, index % stride);
                    let mut sum = 0.5;
                    if (first..first + rows).contains(&i) && (at..at + n).contains(&j) {
                        for ((r, z), w) in ranks.iter().zip(&zs).zip(&ws) {
                            sum += (0..*r).map(|p| z[(i - first) * r + p] * w[(j - at) * r + p]).sum::<f32>();
                        }
                    }
                    prop_assert!((found - sum).abs() < 1e-3, "{isa:?} {dtype:?}: {found} != {sum}");
                }
            }
        }
    }

    #[test]
    fn updates_within_a_gemm_have_the_bits_of_updates_after_it(
        rows in 1usize..70, n in 1usize..90, k in 1usize..80, cuts in proptest::collection::vec(0usize..70, 0..4),
        ranks in proptest::collection::vec(1usize..40, 1..3), accumulate: bool
    ) {
        let (x, w) = (values(rows * k, 16), values(n * k, 17));
        // Groups of rows, every other of which has an adapter, on the columns from the first panel or from the second one on.
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (rows + 1)).chain([0, rows]).collect();
        cuts.sort_unstable();
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let (lhs, weights) = (PackedLhs::new(&cpu, dtype, &x, k), PackedMatrix::pack(&cpu, dtype, k, &[&w]));
                let at = if n > NR && accumulate { NR } else { 0 };
                let low: Vec<_> =
                    ranks.iter().map(|r| PackedMatrix::pack(&cpu, dtype, *r, &[&values((n - at) * r, 18)])).collect();
                let group = |cut: &[usize]| {
                    let z = |r: &usize| PackedLhs::new(&cpu, dtype, &values((cut[1] - cut[0]) * r, 19), *r);
                    (cut[0]..cut[1], ranks.iter().map(z).collect::<Vec<_>>())
                };
                let groups: Vec<_> = cuts.windows(2).step_by(2).filter(|cut| cut[0] < cut[1]).map(group).collect();
                let updates = || {
                    groups.iter().map(|of| {
                        let terms = of.1.iter().zip(low.iter().map(GemmRhs::from)).collect();
                        LowRankUpdate { rows: of.0.clone(), at, terms }
                    }).collect::<Vec<_>>()
                };
                let (mut within, mut after) = (vec![0.5; rows * n], vec![0.5; rows * n]);
                let w = GemmRhs::Matrix(&weights);
                let start = if accumulate { SumStart::Output } else { SumStart::Zero };
                let gemm = Gemm { x: &lhs, rows: 0..rows, x_k: 0, w, out: &mut within, start, low_rank: updates(), bias: None };
                run_gemms(&cpu, &mut [gemm]);
                if accumulate {
                    let (old, mut apart) = (vec![0.5; rows * n], vec![f32::NAN; rows * n]);
                    let start = SumStart::Of(&old);
                    let gemm = Gemm { x: &lhs, rows: 0..rows, x_k: 0, w, out: &mut apart, start, low_rank: updates(), bias: None };
                    run_gemms(&cpu, &mut [gemm]);
                    prop_assert_eq!(&apart, &within, "{:?} {:?}", isa, dtype);
                }
                matmul(&cpu, &lhs, &weights, &mut after, accumulate);
                add_low_rank(&cpu, &mut after, n, &updates());
                prop_assert_eq!(&within, &after, "{:?} {:?}", isa, dtype);
            }
        }
    }

    #[test]
    fn parts_of_a_left_side_give_the_bits_of_the_whole(m in 1usize..30, n in 1usize..70, k in 1usize..90, from in 0usize..29, skip in 0usize..10) {
        let from = from.min(m - 1);
        let (x, w) = (values(m * k, 14), values(n * k, 15));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                // Parts begin where an instruction does.
                let granule = PackedLhs::empty(&cpu, dtype, 1, k).k_granule();
                let skip = (skip * granule).min(k - 1) / granule * granule;
                let part: Vec<f32> = w.chunks_exact(k).flat_map(|row| row[skip..].to_vec()).collect();
                let packed = PackedMatrix::pack(&cpu, dtype, k - skip, &[&part]);
                let lhs = PackedLhs::new(&cpu, dtype, &x, k);
                let mut out = vec![0.0; (m - from) * n];
                let gemm = Gemm { x: &lhs, rows: from..m, x_k: skip, w: GemmRhs::Matrix(&packed), out: &mut out, start: SumStart::Zero, low_rank: Vec::new(), bias: None };
                run_gemms(&cpu, &mut [gemm]);
                let own: Vec<f32> = x.chunks_exact(k).skip(from).flat_map(|row| row[skip..].to_vec()).collect();
                let mut expected = vec![0.0; (m - from) * n];
                matmul(&cpu, &PackedLhs::new(&cpu, dtype, &own, k - skip), &packed, &mut expected, false);
                prop_assert_eq!(&out, &expected);
            }
        }
    }
}

#[test]
fn a_block_writes_its_columns_alone() {
    let cpu = Cpu::new(1);
    let (n, k) = (70, 8);
    let w = values(n * k, 8);
    let packed = PackedMatrix::pack(&cpu, Dtype::F32, k, &[&w]);
    let x = values(3 * k, 9);
    let lhs = PackedLhs::new(&cpu, Dtype::F32, &x, k);
    let mut c = vec![9.0; 3 * 10];
    matmul_block(&cpu, &lhs, 0..3, &packed, 64..70, 0..k, &mut c, 10, false);
    for row in c.chunks_exact(10) {
        assert_eq!(row[6..], [9.0; 4]);
        assert!(row[..6].iter().all(|v| *v != 9.0));
    }
}
