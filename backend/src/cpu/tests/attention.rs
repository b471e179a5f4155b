//! Packed sequences against the formula with a full score matrix.

use candle_core::{D, Tensor};

use super::support::{
    assert_close, attend_whole, attention_cpus, attention_shape, constant, elements, gradients, log_sum_exp, ranges,
    rounded, var,
};
use crate::cpu::Cpu;
use crate::{AttentionShape, Dtype};

/// Shorter than a block of 32 keys, exactly one, more than one, more than two, and more than the 128 keys between two
/// updates of a running maximum.
const LENS: [usize; 6] = [1, 31, 32, 33, 65, 150];

/// Heads `[heads, rows, head_dim]` from columns of a sequence's rows.
fn heads(x: &Tensor, at: usize, heads: usize, head_dim: usize) -> Tensor {
    let rows = x.dim(0).unwrap();
    let x = x.narrow(1, at, heads * head_dim).unwrap().reshape((rows, heads, head_dim)).unwrap();
    x.transpose(0, 1).unwrap().contiguous().unwrap()
}

/// Every key and value head once for each query head of its group.
fn repeat(x: &Tensor, group: usize) -> Tensor {
    let (kv_heads, rows, head_dim) = x.dims3().unwrap();
    let x = x.unsqueeze(1).unwrap().broadcast_as((kv_heads, group, rows, head_dim)).unwrap();
    x.contiguous().unwrap().reshape((kv_heads * group, rows, head_dim)).unwrap()
}

fn mask(rows: usize, window: Option<usize>) -> Tensor {
    let hidden = |q: usize, k: usize| k > q || window.is_some_and(|w| q - k >= w);
    let mask: Vec<f64> =
        (0..rows * rows).map(|i| if hidden(i / rows, i % rows) { f64::NEG_INFINITY } else { 0.0 }).collect();
    Tensor::from_vec(mask, (rows, rows), &candle_core::Device::Cpu).unwrap()
}

/// Output `[rows, q_width]` and log-sum-exps `[rows, heads]` of one sequence.
fn reference(shape: &AttentionShape, window: Option<usize>, qkv: &Tensor) -> (Tensor, Tensor) {
    let (rows, hd, group) = (qkv.dim(0).unwrap(), shape.head_dim, shape.heads / shape.kv_heads);
    let (q_width, kv_width) = (shape.heads * hd, shape.kv_heads * hd);
    let q = heads(qkv, 0, shape.heads, hd);
    let k = repeat(&heads(qkv, q_width, shape.kv_heads, hd), group);
    let v = repeat(&heads(qkv, q_width + kv_width, shape.kv_heads, hd), group);
    let scores = (q.matmul(&k.t().unwrap()).unwrap() / (hd as f64).sqrt()).unwrap();
    let scores = scores.broadcast_add(&mask(rows, window)).unwrap();
    let lse = log_sum_exp(&scores);
    let out = scores.broadcast_sub(&lse).unwrap().exp().unwrap().matmul(&v).unwrap();
    let by_row = |x: &Tensor| x.transpose(0, 1).unwrap().contiguous().unwrap();
    (by_row(&out).reshape((rows, q_width)).unwrap(), by_row(&lse.squeeze(D::Minus1).unwrap()))
}

/// Largest error of outputs and of gradients, of the largest element. Inputs are exact in bf16, so where attention is in
/// bf16 only probabilities and the gradients of scores are rounded, each by up to 2^-9 of itself. Weights of an output add up
/// to one after that, which leaves 2^-9 of the distance of values from their mean: less than twice the largest one. Sums of
/// gradients have errors of both signs, and some have terms that are larger than they are.
fn tolerances(cpu: &Cpu) -> [f64; 2] {
    let rounds = cpu.isa().multiplies_bf16() && cpu.dtype == Dtype::Bf16;
    if rounds { [1.0 / 256.0, 1.0 / 128.0] } else { [3e-6, 1e-5] }
}

fn check(shape: &AttentionShape, window: Option<usize>) {
    let rows: usize = LENS.iter().sum();
    // Scores of a few units, so that the softmax is far from uniform.
    let qkv: Vec<f32> =
        rounded(rows * shape.qkv_width(), 1, Dtype::Bf16).iter().map(|x| Dtype::Bf16.round(3.0 * x)).collect();
    let d_out = rounded(rows * shape.q_width(), 2, Dtype::Bf16);
    let vqkv = var(&qkv, &[rows, shape.qkv_width()]);
    let (outs, lses): (Vec<_>, Vec<_>) =
        ranges(&LENS).iter().map(|r| reference(shape, window, &vqkv.narrow(0, r.start, r.len()).unwrap())).unzip();
    let out = Tensor::cat(&outs, 0).unwrap();
    let grads = gradients(&out, &constant(&d_out, &[rows, shape.q_width()]), &[&vqkv]);
    for cpu in attention_cpus() {
        let got = attend_whole(&cpu, shape, window, &LENS, &qkv, &d_out);
        let [of_out, of_gradients] = tolerances(&cpu);
        assert_close("out", &got.out, &elements(&out), of_out);
        assert_close("lse", &got.lse, &elements(&Tensor::cat(&lses, 0).unwrap()), 3e-6);
        assert_close("d_qkv", &got.d_qkv, &grads[0], of_gradients);
    }
}

#[test]
fn causal_attention_and_its_gradient() {
    for head_dim in [16, 64, 72] {
        check(&attention_shape(2, 1, head_dim), None);
        check(&attention_shape(2, 3, head_dim), None);
    }
}

#[test]
fn windowed_attention_and_its_gradient() {
    check(&attention_shape(2, 3, 16), Some(7));
    check(&attention_shape(1, 1, 64), Some(7));
    check(&attention_shape(1, 2, 16), Some(40));
    check(&attention_shape(1, 2, 16), Some(1));
}
