//! The loss head against log-softmax over all logits.

use candle_core::{D, Tensor, Var};

use super::support::{assert_close, bits, constant, cpus, elements, gradients, log_sum_exp as reference_lse};
use super::support::{ranges, rounded, values, var};
use crate::cpu::Cpu;
use crate::cpu::gemm::{GemmRhs, LowRankUpdate, PackedLhs, add_low_rank, matmul};
use crate::cpu::head::{Head, HeadAdapter, HeadRowGroup, RowGradients, log_sum};
use crate::cpu::packed::PackedMatrix;
use crate::{Dtype, Targets};

const HIDDEN: usize = 24;
/// Three chunks of the vocabulary; the last is odd and ends within a panel.
const VOCAB: usize = 1024 + 77;
/// Rows and rank of groups; the third is higher than a block of rows.
const GROUPS: [(usize, usize); 4] = [(3, 0), (4, 8), (70, 3), (2, 0)];
const ROWS: usize = 79;

struct Case {
    x: Vec<f32>,
    w: Vec<f32>,
    /// Low-rank rows by group; empty without an adapter.
    z: Vec<Vec<f32>>,
    b: Vec<Vec<f32>>,
    targets: Targets,
    d_logprobs: Vec<f32>,
}

/// No target, one, the same one twice, and ids at the ends of the vocabulary and of its chunks.
fn targets() -> Targets {
    let all = [7, 0, 7, 1100, 1023, 1024, 500, 1, 1099];
    let (mut offsets, mut ids) = (vec![0], Vec::new());
    for row in 0..ROWS {
        let count = [1, 0, 3, 9][row % 4];
        ids.extend((0..count).map(|t| all[(row + t) % all.len()]));
        offsets.push(ids.len());
    }
    Targets { offsets, ids }
}

impl Case {
    fn new(dtype: Dtype, scale: f32) -> Self {
        let z = (0..).zip(GROUPS).map(|(i, (rows, rank))| rounded(rows * rank, 10 + i, dtype)).collect();
        let b = (0..).zip(GROUPS).map(|(i, (_, rank))| rounded(VOCAB * rank, 20 + i, dtype)).collect();
        let targets = targets();
        let d_logprobs = values(targets.ids.len(), 3);
        let x = rounded(ROWS * HIDDEN, 1, dtype).iter().map(|x| x * scale).collect();
        Self { x, w: rounded(VOCAB * HIDDEN, 2, dtype), z, b, targets, d_logprobs }
    }

    fn gradients<'a>(&'a self, lse: &'a [f32]) -> RowGradients<'a> {
        RowGradients { targets: &self.targets, d_logprobs: &self.d_logprobs, lse, entropy: None, divergence: None }
    }

    /// B and its transpose of every group, in the type in which `cpu` multiplies adapters.
    fn adapters(&self, cpu: &Cpu, dtype: Dtype) -> Vec<[PackedMatrix; 2]> {
        let dtype = cpu.input_type(dtype);
        let pack = |(b, (_, rank)): (&Vec<f32>, (usize, usize))| {
            let rank = rank.max(1);
            [PackedMatrix::pack(cpu, dtype, rank, &[b]), PackedMatrix::pack_transposed(cpu, dtype, rank, b)]
        };
        self.b.iter().zip(GROUPS).map(pack).collect()
    }

    fn groups<'a>(&'a self, adapters: &'a [[PackedMatrix; 2]]) -> Vec<HeadRowGroup<'a>> {
        let rows = ranges(&GROUPS.map(|(rows, _)| rows));
        let mut dz_at = 0;
        let group = |i: usize| {
            let rank = GROUPS[i].1;
            let adapter = (rank > 0).then(|| HeadAdapter {
                z: &self.z[i],
                b: &adapters[i][0],
                b_t: Some(GemmRhs::from(&adapters[i][1])),
                rank,
            });
            let group = HeadRowGroup { rows: rows[i].clone(), adapter, dz_at };
            dz_at += self.z[i].len();
            group
        };
        (0..GROUPS.len()).map(group).collect()
    }

    /// All logits, by plain GEMMs.
    fn logits(cpu: &Cpu, lhs: &PackedLhs, w: &PackedMatrix, groups: &[HeadRowGroup<'_>]) -> Vec<f32> {
        let mut logits = vec![0.0; ROWS * VOCAB];
        matmul(cpu, lhs, w, &mut logits, false);
        for g in groups {
            if let Some(a) = g.adapter {
                let z = PackedLhs::new(cpu, a.b.dtype(), a.z, a.rank);
                let terms = vec![(&z, GemmRhs::from(a.b))];
                add_low_rank(cpu, &mut logits, VOCAB, &[LowRankUpdate { rows: g.rows.clone(), at: 0, terms }]);
            }
        }
        logits
    }
}

/// Results computed by candle.
struct Reference {
    logprobs: Vec<f64>,
    lse: Vec<f64>,
    dx: Vec<f64>,
    dw: Vec<f64>,
    /// Gradients by group with an adapter.
    dz: Vec<Vec<f64>>,
    db: Vec<Vec<f64>>,
}

impl Reference {
    fn new(case: &Case) -> Self {
        let (x, w) = (var(&case.x, &[ROWS, HIDDEN]), var(&case.w, &[VOCAB, HIDDEN]));
        let adapter = |i: usize| {
            let (rows, rank) = GROUPS[i];
            (rank > 0).then(|| (var(&case.z[i], &[rows, rank]), var(&case.b[i], &[VOCAB, rank])))
        };
        let adapters: [Option<(Var, Var)>; 4] = std::array::from_fn(adapter);
        let base = x.matmul(&w.t().unwrap()).unwrap();
        let of_group = |(rows, adapter): (std::ops::Range<usize>, &Option<(Var, Var)>)| {
            let base = base.narrow(0, rows.start, rows.len()).unwrap();
            match adapter {
                Some((z, b)) => (base + z.matmul(&b.t().unwrap()).unwrap()).unwrap(),
                None => base,
            }
        };
        let rows = ranges(&GROUPS.map(|(rows, _)| rows));
        let logits: Vec<Tensor> = rows.into_iter().zip(&adapters).map(of_group).collect();
        let logits = Tensor::cat(&logits, 0).unwrap();
        let lse = reference_lse(&logits);
        let all = logits.broadcast_sub(&lse).unwrap().flatten_all().unwrap();
        let at: Vec<u32> = (0..ROWS)
            .flat_map(|row| {
                let ids = &case.targets.ids[case.targets.offsets[row]..case.targets.offsets[row + 1]];
                ids.iter().map(move |id| (row * VOCAB) as u32 + id)
            })
            .collect();
        let count = at.len();
        let logprobs = all.index_select(&Tensor::from_vec(at, count, x.device()).unwrap(), 0).unwrap();
        let mut vars = vec![&x, &w];
        vars.extend(adapters.iter().flatten().flat_map(|(z, b)| [z, b]));
        let mut grads = gradients(&logprobs, &constant(&case.d_logprobs, &[count]), &vars).into_iter();
        let (dx, dw) = (grads.next().unwrap(), grads.next().unwrap());
        let (mut dz, mut db) = (Vec::new(), Vec::new());
        while let (Some(z), Some(b)) = (grads.next(), grads.next()) {
            dz.push(z);
            db.push(b);
        }
        let lse = elements(&lse.squeeze(D::Minus1).unwrap());
        Self { logprobs: elements(&logprobs), lse, dx, dw, dz, db }
    }
}

/// Checks the forward and every gradient. Where gradients with respect to logits are rounded to bf16 before they meet the
/// weights, `dx` is off by up to 2^-9 of its terms.
fn check(cpu: &Cpu, dtype: Dtype, case: &Case, expected: &Reference, tolerance: f64) {
    let w = PackedMatrix::pack(cpu, dtype, HIDDEN, &[&case.w]);
    let lhs = PackedLhs::new(cpu, dtype, &case.x, HIDDEN);
    let adapters = case.adapters(cpu, dtype);
    let groups = case.groups(&adapters);
    let head = Head { x: &lhs, w: &w, vocab: w.n(), groups: &groups, saved: None };
    let (logprobs, lse) = head.target_logprobs(cpu, &case.targets, None);
    assert_close("logprobs", &logprobs, &expected.logprobs, tolerance);
    assert_close("lse", &lse, &expected.lse, tolerance);

    let (mut dx, mut dz) = (vec![0.0; ROWS * HIDDEN], vec![0.0; case.z.iter().map(Vec::len).sum()]);
    let wt = w.transposed(cpu);
    let gradients = case.gradients(&lse);
    head.backward(cpu, &wt, gradients, &mut dx, &mut dz);
    let rounding = if dtype == Dtype::Bf16 { 4e-3 } else { tolerance };
    assert_close("dx", &dx, &expected.dx, rounding);
    assert_close("dz", &dz, &expected.dz.concat(), rounding);

    let mut dw = vec![0.0; VOCAB * HIDDEN];
    // Tiles round both sides.
    let summed = if cpu.isa().multiplies_bf16() { 4e-3 } else { tolerance };
    let sequences = [0..ROWS / 3, ROWS / 3..ROWS];
    head.weight_gradient(cpu, gradients, &sequences, &case.x, HIDDEN, &mut dw);
    assert_close("dw", &dw, &expected.dw, summed);

    for (group, expected) in groups.iter().filter(|group| group.adapter.is_some()).zip(&expected.db) {
        let alone = Alone::new(cpu, dtype, case, group);
        let own = [HeadRowGroup { rows: 0..group.rows.len(), dz_at: 0, ..*group }];
        let head = Head { x: &alone.x, w: &w, vocab: w.n(), groups: &own, saved: None };
        let a = group.adapter.unwrap();
        let mut db = vec![0.0; VOCAB * a.rank];
        let lse = &lse[group.rows.clone()];
        let sequences = std::slice::from_ref(&own[0].rows);
        let gradients = RowGradients {
            targets: &alone.targets,
            d_logprobs: alone.d_logprobs,
            lse,
            entropy: None,
            divergence: None,
        };
        head.weight_gradient(cpu, gradients, sequences, a.z, a.rank, &mut db);
        assert_close("db", &db, expected, summed);
    }
}

/// A group's rows without the others.
struct Alone<'a> {
    x: PackedLhs,
    targets: Targets,
    d_logprobs: &'a [f32],
}

impl<'a> Alone<'a> {
    fn new(cpu: &Cpu, dtype: Dtype, case: &'a Case, group: &HeadRowGroup<'_>) -> Self {
        let rows = group.rows.clone();
        let at = case.targets.offsets[rows.start]..case.targets.offsets[rows.end];
        let offsets = case.targets.offsets[rows.start..=rows.end].iter().map(|o| o - at.start).collect();
        Self {
            x: PackedLhs::new(cpu, dtype, &case.x[rows.start * HIDDEN..rows.end * HIDDEN], HIDDEN),
            targets: Targets { offsets, ids: case.targets.ids[at.clone()].to_vec() },
            d_logprobs: &case.d_logprobs[at],
        }
    }
}

/// Entropies of the rows without adapters, and the gradient of their weighted sum.
#[test]
fn a_group_has_the_same_bits_without_the_others() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let case = Case::new(dtype, 1.0);
        for cpu in cpus() {
            let w = PackedMatrix::pack(&cpu, dtype, HIDDEN, &[&case.w]);
            let wt = w.transposed(&cpu);
            let run = |x: &PackedLhs, groups: &[HeadRowGroup<'_>], targets: &Targets, d_logprobs: &[f32]| {
                let head = Head { x, w: &w, vocab: w.n(), groups, saved: None };
                let (logprobs, lse) = head.target_logprobs(&cpu, targets, None);
                let (mut dx, mut dz) = (vec![0.0; lse.len() * HIDDEN], vec![0.0; case.z.concat().len()]);
                let gradients = RowGradients { targets, d_logprobs, lse: &lse, entropy: None, divergence: None };
                head.backward(&cpu, &wt, gradients, &mut dx, &mut dz);
                [logprobs, lse, dx, dz].map(|x| bits(&x))
            };
            let adapters = case.adapters(&cpu, dtype);
            let groups = case.groups(&adapters);
            let all = run(&PackedLhs::new(&cpu, dtype, &case.x, HIDDEN), &groups, &case.targets, &case.d_logprobs);
            for group in &groups {
                let alone = Alone::new(&cpu, dtype, &case, group);
                let own = [HeadRowGroup { rows: 0..group.rows.len(), dz_at: 0, ..*group }];
                let [logprobs, lse, dx, dz] = run(&alone.x, &own, &alone.targets, alone.d_logprobs);
                let r = group.rows.clone();
                let at = case.targets.offsets[r.start]..case.targets.offsets[r.end];
                let z_len = group.adapter.map_or(0, |a| a.z.len());
                assert_eq!(logprobs, all[0][at]);
                assert_eq!(lse, all[1][r.clone()]);
                assert_eq!(dx, all[2][r.start * HIDDEN..r.end * HIDDEN]);
                assert_eq!(dz[..z_len], all[3][group.dz_at..group.dz_at + z_len]);
            }
        }
    }
}

#[test]
fn log_probabilities_and_their_gradients() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let case = Case::new(dtype, 1.0);
        let expected = Reference::new(&case);
        for cpu in cpus() {
            check(&cpu, dtype, &case, &expected, 2e-6);
        }
    }
}

#[test]
fn large_logits_stay_finite_and_right() {
    let case = Case::new(Dtype::F32, 4000.0);
    let expected = Reference::new(&case);
    assert!(expected.lse.iter().all(|lse| *lse > 1e4));
    let dtype = Dtype::F32;
    for cpu in cpus() {
        // An ulp of logits of 1e4 is 1e-3, which is the error of gradients with respect to them.
        let w = PackedMatrix::pack(&cpu, Dtype::F32, HIDDEN, &[&case.w]);
        let lhs = PackedLhs::new(&cpu, Dtype::F32, &case.x, HIDDEN);
        let adapters = case.adapters(&cpu, dtype);
        let groups = case.groups(&adapters);
        let head = Head { x: &lhs, w: &w, vocab: w.n(), groups: &groups, saved: None };
        let (logprobs, lse) = head.target_logprobs(&cpu, &case.targets, None);
        assert_close("logprobs", &logprobs, &expected.logprobs, 1e-6);
        assert_close("lse", &lse, &expected.lse, 1e-6);
        assert!(logprobs.iter().all(|x| *x <= 0.0));
        let (mut dx, mut dz) = (vec![0.0; ROWS * HIDDEN], vec![0.0; case.z.iter().map(Vec::len).sum()]);
        head.backward(&cpu, &w.transposed(&cpu), case.gradients(&lse), &mut dx, &mut dz);
        assert_close("dx", &dx, &expected.dx, 1e-2);
        assert_close("dz", &dz, &expected.dz.concat(), 1e-2);
    }
}

#[test]
fn log_sum_exp_of_logits_has_the_bits_of_the_head() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        for scale in [1.0, 4000.0] {
            let case = Case::new(dtype, scale);
            for cpu in cpus() {
                let w = PackedMatrix::pack(&cpu, dtype, HIDDEN, &[&case.w]);
                let lhs = PackedLhs::new(&cpu, dtype, &case.x, HIDDEN);
                let adapters = case.adapters(&cpu, dtype);
                let groups = case.groups(&adapters);
                let (logprobs, lse) = Head { x: &lhs, w: &w, vocab: w.n(), groups: &groups, saved: None }
                    .target_logprobs(&cpu, &case.targets, None);
                let logits = Case::logits(&cpu, &lhs, &w, &groups);
                for (row, logits) in logits.chunks_exact(VOCAB).enumerate() {
                    let own = log_sum(&cpu, logits, 1.0).value();
                    assert_eq!(own.to_bits(), lse[row].to_bits());
                    let at = case.targets.offsets[row]..case.targets.offsets[row + 1];
                    let ids = &case.targets.ids[at.clone()];
                    let expected: Vec<f32> = ids.iter().map(|id| logits[*id as usize] - own).collect();
                    assert_eq!(bits(&logprobs[at]), bits(&expected));
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "rows beyond the hidden states")]
fn kept_logits_have_room_for_every_row() {
    let case = Case::new(Dtype::F32, 1.0);
    let cpu = Cpu::new(2);
    let w = PackedMatrix::pack(&cpu, Dtype::F32, HIDDEN, &[&case.w]);
    // The groups have all rows, the left side and the buffer for logits one less.
    let lhs = PackedLhs::new(&cpu, Dtype::F32, &case.x[HIDDEN..], HIDDEN);
    let adapters = case.adapters(&cpu, Dtype::F32);
    let groups = case.groups(&adapters);
    let mut keep = vec![0.0; (ROWS - 1) * VOCAB];
    let head = Head { x: &lhs, w: &w, vocab: w.n(), groups: &groups, saved: None };
    head.target_logprobs(&cpu, &case.targets, Some(&mut keep));
}

#[test]
fn log_sum_exp_at_a_temperature() {
    let logits: Vec<f32> = values(3000, 1).iter().map(|x| 10.0 * x).collect();
    for cpu in cpus() {
        for scale in [0.5f32, 1.0, 2.0, 1000.0] {
            let expected = elements(&reference_lse(&(constant(&logits, &[1, 3000]) * f64::from(scale)).unwrap()));
            assert_close("lse", &[log_sum(&cpu, &logits, scale).value()], &expected, 1e-6);
        }
        // Tokens that are ruled out count for nothing, even a chunk of them.
        let mut ruled_out = logits.clone();
        ruled_out[..2000].fill(f32::NEG_INFINITY);
        let expected = elements(&reference_lse(&constant(&logits[2000..], &[1, 1000])));
        assert_close("lse", &[log_sum(&cpu, &ruled_out, 1.0).value()], &expected, 1e-6);
    }
}
