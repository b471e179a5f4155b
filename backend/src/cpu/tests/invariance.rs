//! Batch invariance: the bits of a row (of a sequence, for attention) are the same by itself, in any batch and on any
//! number of threads; sums over rows are the same on any number of threads and in parts.

use proptest::prelude::*;

use super::support::{attend_whole, attention_shape, bits, ranges, values};
use crate::cpu::elementwise::{activate, activate_backward, add_bias, add_column_sums};
use crate::cpu::gemm::{
    GemmRhs, GradientOut, GradientSide, LowRankUpdate, PackedLhs, RowsView, WeightGradient, add_low_rank,
    add_weight_gradients, matmul,
};
use crate::cpu::head::{
    CHUNK, Head, HeadAdapter, HeadRowGroup, ReferenceHead, RowDivergences, RowGradients, SavedLogits,
};
use crate::cpu::norm::{add_rms_norm, rms_norm, rms_norm_backward, rms_norm_heads, rms_norm_heads_backward};
use crate::cpu::packed::PackedMatrix;
use crate::cpu::rope::Rope;
use crate::cpu::{Cpu, Isa};
use crate::rope::rope_table;
use crate::rope::{RopeConfig, RopeScaling};
use crate::{Activation, Dtype, EntropyGradient, Targets};

const EPS: f32 = 1e-5;

/// Processors with one and three threads, for every instruction set, with base weights in f32 and in bf16.
fn pairs() -> Vec<[Cpu; 2]> {
    let of = |isa: Isa| {
        [Dtype::F32, Dtype::Bf16].map(|dtype| [1, 3].map(|threads| Cpu::with_isa(threads, isa).with_dtype(dtype)))
    };
    Isa::available().into_iter().flat_map(of).collect()
}

/// A sequence of each row: sums over rows then go on from row to row.
fn by_row(rows: usize) -> Vec<std::ops::Range<usize>> {
    (0..rows).map(|row| row..row + 1).collect()
}

/// `f` maps rows `[i, j)` to their results, of the same width each. Checks that they are the same in one
/// batch, one by one and on more threads.
fn check_rows(rows: usize, f: impl Fn(&Cpu, std::ops::Range<usize>) -> Vec<f32>) {
    for [one, three] in pairs() {
        let all = bits(&f(&one, 0..rows));
        assert_eq!(bits(&f(&three, 0..rows)), all, "threads");
        let alone: Vec<u32> = (0..rows).flat_map(|i| bits(&f(&three, i..i + 1))).collect();
        assert_eq!(alone, all, "one row at a time");
    }
}

/// `f` adds a sum over rows `[i, j)` to what is there. Checks that it is the same on more threads and in parts.
fn check_sum(rows: usize, len: usize, f: impl Fn(&Cpu, std::ops::Range<usize>, &mut [f32])) {
    for [one, three] in pairs() {
        let [mut whole, mut threads, mut parts] = [(); 3].map(|()| values(len, 99));
        f(&one, 0..rows, &mut whole);
        f(&three, 0..rows, &mut threads);
        assert_eq!(bits(&threads), bits(&whole), "threads");
        f(&three, 0..rows / 2, &mut parts);
        f(&three, rows / 2..rows, &mut parts);
        assert_eq!(bits(&parts), bits(&whole), "parts");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn norms(rows in 1usize..20, width in 1usize..70, seed: u64) {
        let (x, dy, w) = (values(rows * width, seed), values(rows * width, seed ^ 1), values(width, seed ^ 2));
        check_rows(rows, |cpu, r| {
            let at = r.start * width..r.end * width;
            let mut y = vec![0.0; at.len()];
            rms_norm(cpu, &x[at.clone()], &w, EPS, &mut y);
            rms_norm_backward(cpu, &x[at.clone()], &w, EPS, &dy[at.clone()], &mut y, None);
            add_rms_norm(cpu, &dy[at], &w, EPS, &mut y);
            y
        });
        check_sum(rows, width, |cpu, r, dw| {
            let at = r.start * width..r.end * width;
            let mut dx = vec![0.0; at.len()];
            rms_norm_backward(cpu, &x[at.clone()], &w, EPS, &dy[at], &mut dx, Some(dw));
        });
    }

    #[test]
    fn norms_of_heads(rows in 1usize..20, heads in 1usize..4, width in 1usize..40, offset in 0usize..5, seed: u64) {
        let stride = offset + heads * width + 3;
        let (x, dy, w) = (values(rows * stride, seed), values(rows * stride, seed ^ 1), values(width, seed ^ 2));
        check_rows(rows, |cpu, r| {
            let at = r.start * stride..r.end * stride;
            let mut y = x[at.clone()].to_vec();
            rms_norm_heads(cpu, &mut y, stride, offset, heads, &w, EPS);
            rms_norm_heads_backward(cpu, &x[at], stride, offset, heads, &w, EPS, &mut y, None);
            y
        });
        check_sum(rows, width, |cpu, r, dw| {
            let at = r.start * stride..r.end * stride;
            let mut dx = dy[at.clone()].to_vec();
            rms_norm_heads_backward(cpu, &x[at], stride, offset, heads, &w, EPS, &mut dx, Some(dw));
        });
    }

    #[test]
    fn elementwise(rows in 1usize..20, width in 1usize..70, seed: u64) {
        let (x, dy, b) = (values(rows * 2 * width, seed), values(rows * width, seed ^ 1), values(width, seed ^ 2));
        for activation in [Activation::Silu, Activation::GeluTanh] {
            check_rows(rows, |cpu, r| {
                let mut y = activate(cpu, activation, &x[r.start * 2 * width..r.end * 2 * width], width).to_rows();
                add_bias(cpu, &mut y, &b);
                y
            });
            check_rows(rows, |cpu, r| {
                let mut dx = x[r.start * 2 * width..r.end * 2 * width].to_vec();
                let mut out = dy[r.start * width..r.end * width].to_vec();
                activate_backward(cpu, activation, &mut out, width, &mut dx);
                // Row by row: both gradients, then the output.
                let rows = dx.chunks_exact(2 * width).zip(out.chunks_exact(width));
                rows.flat_map(|(dx, out)| [dx, out].concat()).collect()
            });
        }
        check_sum(rows, width, |cpu, r, sum| {
            add_column_sums(cpu, &x[r.start * 2 * width..r.end * 2 * width], 2 * width, width / 2, sum);
        });
    }

    #[test]
    fn rotations(positions in prop::collection::vec(0u32..50, 1..20), heads in 1usize..4, half in 1usize..20, seed: u64) {
        let config = RopeConfig { theta: 10_000.0, scaling: RopeScaling::None };
        let rope = Rope::new(half, rope_table(&config, 2 * half, 50));
        let stride = heads * 2 * half + 5;
        let x = values(positions.len() * stride, seed);
        for inverse in [false, true] {
            check_rows(positions.len(), |cpu, r| {
                let mut y = x[r.start * stride..r.end * stride].to_vec();
                rope.apply(cpu, &mut y, stride, 5, heads, 2 * half, &positions[r], inverse);
                y
            });
        }
    }

    #[test]
    fn products_of_matrices(rows in 1usize..30, n in 1usize..50, k in 1usize..40, seed: u64) {
        let (x, b, y) = (values(rows * k, seed), values(k * n, seed ^ 1), values(rows * n, seed ^ 2));
        check_sum(rows, k * n, |cpu, r, out| {
            let left = GradientSide::Rows(RowsView::dense(&x[r.start * k..], k));
            let right = GradientSide::Rows(RowsView::dense(&y[r.start * n..], n));
            let runs = &by_row(r.len());
            add_weight_gradients(cpu, &mut [WeightGradient { runs, left, right, transposed: false, out: GradientOut::Add(out) }]);
        });
        for dtype in [Dtype::F32, Dtype::Bf16] {
            check_rows(rows, |cpu, r| {
                let w = PackedMatrix::pack(cpu, dtype, k, &[&b]);
                let mut c = y[r.start * n..r.end * n].to_vec();
                let z = PackedLhs::new(cpu, dtype, &x[r.start * k..r.end * k], k);
                add_low_rank(cpu, &mut c, n, &[LowRankUpdate { rows: 0..r.len(), at: 0, terms: vec![(&z, GemmRhs::from(&w)), (&z, GemmRhs::from(&w))] }]);
                c
            });
        }
        for dtype in [Dtype::F32, Dtype::Bf16] {
            check_rows(rows, |cpu, r| {
                let w = PackedMatrix::pack(cpu, dtype, k, &[&b]);
                let mut c = vec![0.0; r.len() * n];
                matmul(cpu, &PackedLhs::new(cpu, dtype, &x[r.start * k..r.end * k], k), &w, &mut c, false);
                c
            });
        }
    }

    #[test]
    fn attention(lens in prop::collection::vec(1usize..70, 1..5), kv_heads in 1usize..3, group in 1usize..4, window: bool, seed: u64) {
        let shape = attention_shape(kv_heads, group, 16);
        let window = window.then_some(7);
        let rows: usize = lens.iter().sum();
        let (qkv, d_out) = (values(rows * shape.qkv_width(), seed), values(rows * shape.q_width(), seed ^ 1));
        let rounding = Isa::available().into_iter().filter(|isa| isa.multiplies_bf16());
        for [one, three] in pairs().into_iter().chain(rounding.map(|isa| [1, 3].map(|threads| Cpu::with_isa(threads, isa)))) {
            let all = attend_whole(&one, &shape, window, &lens, &qkv, &d_out);
            let threads = attend_whole(&three, &shape, window, &lens, &qkv, &d_out);
            let (mut out, mut lse, mut d_qkv) = (Vec::new(), Vec::new(), Vec::new());
            for r in ranges(&lens) {
                let qkv = &qkv[r.start * shape.qkv_width()..r.end * shape.qkv_width()];
                let d_out = &d_out[r.start * shape.q_width()..r.end * shape.q_width()];
                let alone = attend_whole(&three, &shape, window, &[r.len()], qkv, d_out);
                out.extend(alone.out);
                lse.extend(alone.lse);
                d_qkv.extend(alone.d_qkv);
            }
            for (all, others) in [(all.out, [threads.out, out]), (all.lse, [threads.lse, lse]), (all.d_qkv, [threads.d_qkv, d_qkv])] {
                for other in others {
                    prop_assert_eq!(bits(&other), bits(&all));
                }
            }
        }
    }

    #[test]
    fn loss_head(rows in 1usize..30, rank in 0usize..5, vocab in 1000usize..1100, seed: u64) {
        let hidden = 10;
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let rows = HeadRows::new(rows, hidden, rank, vocab, dtype, seed);
            check_rows(rows.count, |cpu, r| rows.run(cpu, r, None));
            check_sum(rows.count, vocab * hidden, |cpu, r, dw| {
                rows.run(cpu, r, Some(dw));
            });
        }
    }
}

/// Rows of a loss head with two targets each and, if its rank is not 0, an adapter.
struct HeadRows {
    count: usize,
    hidden: usize,
    rank: usize,
    vocab: usize,
    dtype: Dtype,
    x: Vec<f32>,
    w: Vec<f32>,
    z: Vec<f32>,
    b: Vec<f32>,
    ids: Vec<u32>,
    d_logprobs: Vec<f32>,
    /// Zero for every other row.
    d_entropies: Vec<f32>,
    /// Hidden states of the rows with which their distributions are compared, and the gradient of the divergences: zero for every
    /// third row.
    others: Vec<f32>,
    d_divergences: Vec<f32>,
}

impl HeadRows {
    fn new(count: usize, hidden: usize, rank: usize, vocab: usize, dtype: Dtype, seed: u64) -> Self {
        let b = values(vocab * rank, seed ^ 3);
        let ids = (0..count * 2).map(|i| ((i as u64 * 7919 + seed % 1000) % vocab as u64) as u32).collect();
        let (x, w) = (values(count * hidden, seed), values(vocab * hidden, seed ^ 1));
        let (z, d_logprobs) = (values(count * rank, seed ^ 2), values(count * 2, seed ^ 4));
        let mut d_entropies = values(count, seed ^ 5);
        d_entropies.iter_mut().step_by(2).for_each(|d| *d = 0.0);
        let (others, mut d_divergences) = (values(count * hidden, seed ^ 6), values(count, seed ^ 7));
        d_divergences.iter_mut().step_by(3).for_each(|d| *d = 0.0);
        Self { count, hidden, rank, vocab, dtype, x, w, z, b, ids, d_logprobs, d_entropies, others, d_divergences }
    }

    /// Log-probabilities, log-sum-exp, entropy, divergence, dx and dz, row by row; adds the gradient with respect to the unembedding to `dw`.
    fn run(&self, cpu: &Cpu, r: std::ops::Range<usize>, dw: Option<&mut [f32]>) -> Vec<f32> {
        let (hidden, rank) = (self.hidden, self.rank);
        let w = PackedMatrix::pack(cpu, self.dtype, hidden, &[&self.w]);
        let x = &self.x[r.start * hidden..r.end * hidden];
        let z = &self.z[r.start * rank..r.end * rank];
        let dtype = cpu.input_type(self.dtype);
        let b = PackedMatrix::pack(cpu, dtype, rank.max(1), &[&self.b]);
        let b_t = PackedMatrix::pack_transposed(cpu, dtype, rank.max(1), &self.b);
        let adapter = (rank > 0).then_some(HeadAdapter { z, b: &b, b_t: Some(GemmRhs::from(&b_t)), rank });
        let groups = [HeadRowGroup { rows: 0..r.len(), adapter, dz_at: 0 }];
        let head =
            Head { x: &PackedLhs::new(cpu, self.dtype, x, hidden), w: &w, vocab: w.n(), groups: &groups, saved: None };
        let targets =
            Targets { offsets: (0..=r.len()).map(|i| 2 * i).collect(), ids: self.ids[2 * r.start..2 * r.end].to_vec() };
        let d_logprobs = &self.d_logprobs[2 * r.start..2 * r.end];
        let (logprobs, lse) = head.target_logprobs(cpu, &targets, None);
        if let Some(dw) = dw {
            assert_eq!(dw.len(), self.vocab * hidden);
            let gradients = RowGradients { targets: &targets, d_logprobs, lse: &lse, entropy: None, divergence: None };
            head.weight_gradient(cpu, gradients, &by_row(r.len()), x, hidden, dw);
            return Vec::new();
        }
        let (mut dx, mut dz) = (vec![0.0; r.len() * hidden], vec![0.0; r.len() * rank]);
        let others = || PackedLhs::new(cpu, self.dtype, &self.others[r.start * hidden..r.end * hidden], hidden);
        let (own, none) = (others(), [HeadRowGroup { rows: 0..r.len(), adapter: None, dz_at: 0 }]);
        let (_, other_lse) = Head { x: &own, groups: &none, ..head }.target_logprobs(cpu, &targets, None);
        let reference = ReferenceHead { x: others(), w: &w, lse: &other_lse };
        let divergences = head.divergences(cpu, &lse, &reference);
        let d_divergences = &self.d_divergences[r.clone()];
        let divergence = Some(RowDivergences { reference: &reference, divergences: &divergences, d_divergences });
        let entropies = head.entropies(cpu, &lse);
        let entropy = EntropyGradient { entropies: &entropies, d_entropies: &self.d_entropies[r.clone()] };
        let gradients = RowGradients { targets: &targets, d_logprobs, lse: &lse, entropy: Some(entropy), divergence };
        head.backward(cpu, &w.transposed(cpu), gradients, &mut dx, &mut dz);
        self.check_kept(cpu, &head, &w, gradients, [&logprobs, &lse, &entropies, &divergences, &dx, &dz]);
        (0..r.len())
            .flat_map(|i| {
                let own = [&logprobs[2 * i..2 * i + 2], &lse[i..=i], &entropies[i..=i], &divergences[i..=i]].concat();
                let row = [&own[..], &dx[i * hidden..(i + 1) * hidden]];
                [row.concat(), dz[i * rank..(i + 1) * rank].to_vec()].concat()
            })
            .collect()
    }

    /// Keeping logits, and taking them from rows in another order, changes no bit.
    fn check_kept(
        &self,
        cpu: &Cpu,
        head: &Head<'_>,
        w: &PackedMatrix,
        gradients: RowGradients<'_>,
        expected: [&Vec<f32>; 6],
    ) {
        let rows = expected[1].len();
        let mut logits = vec![f32::NAN; rows * self.vocab];
        let (logprobs, lse) = head.target_logprobs(cpu, gradients.targets, Some(&mut logits));
        let chunk = |start: usize| (start, (start + CHUNK).min(self.vocab));
        let reversed: Vec<f32> = (0..self.vocab)
            .step_by(CHUNK)
            .map(chunk)
            .flat_map(|(start, end)| logits[rows * start..rows * end].rchunks_exact(end - start).flatten().copied())
            .collect();
        let order: Vec<usize> = (0..rows).rev().collect();
        let saved = Some(SavedLogits { logits: &reversed, rows: &order });
        let (mut dx, mut dz) = (vec![0.0; expected[4].len()], vec![0.0; expected[5].len()]);
        let head = Head { saved, ..*head };
        let entropies = head.entropies(cpu, &lse);
        let compared = gradients.divergence.map(|of| head.divergences(cpu, &lse, of.reference));
        head.backward(cpu, &w.transposed(cpu), gradients, &mut dx, &mut dz);
        for (found, expected) in [logprobs, lse, entropies, compared.unwrap(), dx, dz].iter().zip(expected) {
            assert_eq!(bits(found), bits(expected), "saved logits");
        }
    }
}
