//! Entropies of the head's distributions and their divergences from others, against those over all logits.

use candle_core::{D, Tensor};

use super::support::{assert_close, constant, cpus, elements, gradients, log_sum_exp as reference_lse, values, var};
use crate::cpu::Cpu;
use crate::cpu::gemm::PackedLhs;
use crate::cpu::head::{Head, HeadRowGroup, ReferenceHead, RowDivergences, RowGradients};
use crate::cpu::packed::PackedMatrix;
use crate::{Dtype, EntropyGradient, Targets};

const HIDDEN: usize = 24;
/// Three chunks of the vocabulary; the last is odd and ends within a panel.
const VOCAB: usize = 1024 + 77;
const ROWS: usize = 79;

/// Hidden states and an unembedding.
fn case() -> (Vec<f32>, Vec<f32>) {
    (values(ROWS * HIDDEN, 1).iter().map(|x| x * 4.0).collect(), values(VOCAB * HIDDEN, 2))
}

#[test]
fn entropies_and_their_gradient() {
    let (own_x, own_w) = case();
    let (x, w) = (var(&own_x, &[ROWS, HIDDEN]), var(&own_w, &[VOCAB, HIDDEN]));
    let logits = x.matmul(&w.t().unwrap()).unwrap();
    let logs = logits.broadcast_sub(&reference_lse(&logits)).unwrap();
    let entropies = (logs.exp().unwrap() * &logs).unwrap().sum(D::Minus1).unwrap().neg().unwrap();
    let mut d_entropies = values(ROWS, 8);
    d_entropies[3] = 0.0;
    let expected = gradients(&entropies, &constant(&d_entropies, &[ROWS]), &[&x, &w]);
    let targets = Targets { offsets: vec![0; ROWS + 1], ids: Vec::new() };
    for cpu in cpus() {
        let packed = PackedMatrix::pack(&cpu, Dtype::F32, HIDDEN, &[&own_w]);
        let lhs = PackedLhs::new(&cpu, Dtype::F32, &own_x, HIDDEN);
        let groups = [HeadRowGroup { rows: 0..ROWS, adapter: None, dz_at: 0 }];
        let head = Head { x: &lhs, w: &packed, vocab: VOCAB, groups: &groups, saved: None };
        let (_, lse) = head.target_logprobs(&cpu, &targets, None);
        let found = head.entropies(&cpu, &lse);
        assert_close("entropies", &found, &elements(&entropies), 1e-6);
        let entropy = Some(EntropyGradient { entropies: &found, d_entropies: &d_entropies });
        let gradients = RowGradients { targets: &targets, d_logprobs: &[], lse: &lse, entropy, divergence: None };
        let (mut dx, mut dw) = (vec![0.0; ROWS * HIDDEN], vec![0.0; VOCAB * HIDDEN]);
        head.backward(&cpu, &packed.transposed(&cpu), gradients, &mut dx, &mut []);
        assert_close("dx", &dx, &expected[0], 1e-5);
        assert!(dx[3 * HIDDEN..4 * HIDDEN].iter().all(|x| *x == 0.0), "a row without a gradient");
        let all = 0..ROWS;
        head.weight_gradient(&cpu, gradients, std::slice::from_ref(&all), &own_x, HIDDEN, &mut dw);
        assert_close("dw", &dw, &expected[1], 1e-5);
    }
}

#[test]
fn divergences_and_their_gradient() {
    let (own_x, own_w) = case();
    let (other_x, other_w) = (values(ROWS * HIDDEN, 11), values(VOCAB * HIDDEN, 12));
    let (x, w) = (var(&own_x, &[ROWS, HIDDEN]), var(&own_w, &[VOCAB, HIDDEN]));
    let logs = |x: &Tensor, w: &Tensor| {
        let logits = x.matmul(&w.t().unwrap()).unwrap();
        logits.broadcast_sub(&reference_lse(&logits)).unwrap()
    };
    let (logs, others) =
        (logs(&x, &w), logs(&constant(&other_x, &[ROWS, HIDDEN]), &constant(&other_w, &[VOCAB, HIDDEN])));
    let divergences = (logs.exp().unwrap() * (&logs - &others).unwrap()).unwrap().sum(D::Minus1).unwrap();
    let mut d_divergences = values(ROWS, 9);
    d_divergences[3] = 0.0;
    let expected = gradients(&divergences, &constant(&d_divergences, &[ROWS]), &[&x, &w]);
    let targets = Targets { offsets: vec![0; ROWS + 1], ids: Vec::new() };
    for cpu in cpus() {
        let packed = PackedMatrix::pack(&cpu, Dtype::F32, HIDDEN, &[&own_w]);
        let lhs = PackedLhs::new(&cpu, Dtype::F32, &own_x, HIDDEN);
        let groups = [HeadRowGroup { rows: 0..ROWS, adapter: None, dz_at: 0 }];
        let head = Head { x: &lhs, w: &packed, vocab: VOCAB, groups: &groups, saved: None };
        let (_, lse) = head.target_logprobs(&cpu, &targets, None);
        let other_w = PackedMatrix::pack(&cpu, Dtype::F32, HIDDEN, &[&other_w]);
        let other_lhs = PackedLhs::new(&cpu, Dtype::F32, &other_x, HIDDEN);
        let other_head = Head { x: &other_lhs, w: &other_w, vocab: VOCAB, groups: &groups, saved: None };
        let (_, other_lse) = other_head.target_logprobs(&cpu, &targets, None);
        let reference = ReferenceHead { x: other_lhs, w: &other_w, lse: &other_lse };
        let found = head.divergences(&cpu, &lse, &reference);
        assert_close("divergences", &found, &elements(&divergences), 1e-5);
        let divergence =
            Some(RowDivergences { reference: &reference, divergences: &found, d_divergences: &d_divergences });
        let gradients = RowGradients { targets: &targets, d_logprobs: &[], lse: &lse, entropy: None, divergence };
        let (mut dx, mut dw) = (vec![0.0; ROWS * HIDDEN], vec![0.0; VOCAB * HIDDEN]);
        head.backward(&cpu, &packed.transposed(&cpu), gradients, &mut dx, &mut []);
        assert_close("dx", &dx, &expected[0], 1e-5);
        assert!(dx[3 * HIDDEN..4 * HIDDEN].iter().all(|x| *x == 0.0), "a row without a gradient");
        let all = 0..ROWS;
        head.weight_gradient(&cpu, gradients, std::slice::from_ref(&all), &own_x, HIDDEN, &mut dw);
        assert_close("dw", &dw, &expected[1], 1e-5);
    }
}

/// Logits that no token of the vocabulary has: a mask of a model, or an overflow.
#[test]
fn logits_of_minus_infinity_add_nothing_to_entropies() {
    let cpu = Cpu::new(1);
    let (w, x) = ([1.0, 1.0, f32::NEG_INFINITY], [0.5]);
    let packed = PackedMatrix::pack(&cpu, Dtype::F32, 1, &[&w]);
    let lhs = PackedLhs::new(&cpu, Dtype::F32, &x, 1);
    let groups = [HeadRowGroup { rows: 0..1, adapter: None, dz_at: 0 }];
    let head = Head { x: &lhs, w: &packed, vocab: 3, groups: &groups, saved: None };
    let targets = Targets { offsets: vec![0; 2], ids: Vec::new() };
    let (_, lse) = head.target_logprobs(&cpu, &targets, None);
    assert_close("entropy", &head.entropies(&cpu, &lse), &[std::f64::consts::LN_2], 1e-6);
}

/// The reference excludes a token that the rows do not, and the other way round.
#[test]
fn tokens_that_one_side_excludes_are_no_trap() {
    let cpu = Cpu::new(1);
    let excluded = f32::NEG_INFINITY;
    let x = [0.5];
    let lhs = || PackedLhs::new(&cpu, Dtype::F32, &x, 1);
    let groups = [HeadRowGroup { rows: 0..1, adapter: None, dz_at: 0 }];
    let targets = Targets { offsets: vec![0; 2], ids: Vec::new() };
    let divergence = |own: [f32; 3], other: [f32; 3]| {
        let [own, other] = [own, other].map(|w| PackedMatrix::pack(&cpu, Dtype::F32, 1, &[&w]));
        let own_lhs = lhs();
        let head = Head { x: &own_lhs, w: &own, vocab: 3, groups: &groups, saved: None };
        let other_lhs = lhs();
        let other_head = Head { x: &other_lhs, w: &other, vocab: 3, groups: &groups, saved: None };
        let [(_, lse), (_, other_lse)] = [&head, &other_head].map(|head| head.target_logprobs(&cpu, &targets, None));
        head.divergences(&cpu, &lse, &ReferenceHead { x: lhs(), w: &other, lse: &other_lse })[0]
    };
    let of_two = divergence([1.0, 1.0, excluded], [1.0, 1.0, 1.0]);
    assert_close("divergence", &[of_two], &[1.5f64.ln()], 1e-6);
    let of_none = divergence([1.0, 1.0, excluded], [2.0, 2.0, excluded]);
    assert!(of_none.abs() < 1e-6, "{of_none}");
    assert!(divergence([1.0, 1.0, 1.0], [1.0, 1.0, excluded]) > 1e37);
}
