//! Inputs, candle tensors, comparisons and passes of attention.

use std::ops::Range;

use candle_core::{D, DType, Device, Tensor, Var};
use trainyard_gpu_runtime::kernels::attention::{
    AttentionGradient, AttentionShape, KvSequence, Span, attention, attention_backward, write_kv,
};
use trainyard_gpu_runtime::kernels::packed::Dtype;
use trainyard_gpu_runtime::kernels::{Cpu, Isa};
use trainyard_gpu_runtime::rng::kaiming_uniform_fill;

/// Numbers in [-1, 1); streams of different `seed` are independent.
pub(crate) fn values(n: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; n];
    kaiming_uniform_fill(seed, 0, &mut out, 1.0);
    out
}

/// As [`values`], exact in `dtype`.
pub(crate) fn rounded(n: usize, seed: u64, dtype: Dtype) -> Vec<f32> {
    values(n, seed).into_iter().map(|x| dtype.round(x)).collect()
}

/// A processor of two threads for every instruction set.
pub(crate) fn cpus() -> Vec<Cpu> {
    Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa)).collect()
}

/// A variable of candle's, in f64.
pub(crate) fn var(x: &[f32], shape: &[usize]) -> Var {
    Var::from_tensor(&constant(x, shape)).unwrap()
}

/// As [`var`], without a gradient.
pub(crate) fn constant(x: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_slice(x, shape, &Device::Cpu).unwrap().to_dtype(DType::F64).unwrap()
}

/// The elements of a tensor.
pub(crate) fn elements(x: &Tensor) -> Vec<f64> {
    x.flatten_all().unwrap().to_vec1().unwrap()
}

/// Gradients of `Σ y · dy` by each of `vars`.
pub(crate) fn gradients(y: &Tensor, dy: &Tensor, vars: &[&Var]) -> Vec<Vec<f64>> {
    let grads = (y * dy).unwrap().sum_all().unwrap().backward().unwrap();
    vars.iter().map(|v| elements(grads.get(v).unwrap())).collect()
}

/// Largest of a row, kept as a column.
pub(crate) fn row_max(x: &Tensor) -> Tensor {
    x.max_keepdim(D::Minus1).unwrap().detach()
}

/// log Σ exp of the last dimension, kept.
pub(crate) fn log_sum_exp(x: &Tensor) -> Tensor {
    let max = row_max(x);
    let sum = x.broadcast_sub(&max).unwrap().exp().unwrap().sum_keepdim(D::Minus1).unwrap();
    (sum.log().unwrap() + max).unwrap()
}

/// Fails where a number is farther from what is expected than `tolerance` of the largest one expected (or of
/// one, if that is larger).
#[track_caller]
pub(crate) fn assert_close(what: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    let most = expected.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!((f64::from(*a) - e).abs() <= tolerance * most, "{what}: element {i} is {a}, not {e}");
    }
}

/// The bits, so that a difference of a last place or of a zero's sign shows.
pub(crate) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Ranges of `lens` consecutive elements.
pub(crate) fn ranges(lens: &[usize]) -> Vec<Range<usize>> {
    lens.iter()
        .scan(0, |end, len| {
            *end += len;
            Some(*end - len..*end)
        })
        .collect()
}

/// The layer that attention is tested at; there is another before it.
pub(crate) const LAYER: usize = 1;

/// Extents of an attention of two layers.
pub(crate) fn attention_shape(kv_heads: usize, group: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 2, heads: kv_heads * group, kv_heads, head_dim }
}

/// Appends rows of `qkv` to their sequences and attends: the outputs and log-sum-exps of all rows.
pub(crate) fn attend(
    cpu: &Cpu,
    shape: &AttentionShape,
    window: Option<usize>,
    qkv: &[f32],
    parts: &mut [(Range<usize>, &mut KvSequence)],
) -> (Vec<f32>, Vec<f32>) {
    let mut spans = Vec::new();
    for (rows, kv) in parts.iter_mut() {
        let start = kv.len();
        kv.reserve(shape, start + rows.len());
        spans.push((rows.clone(), start, &mut **kv));
    }
    write_kv(cpu, shape, LAYER, qkv, &mut spans);
    for (rows, start, kv) in &mut spans {
        kv.set_len(*start + rows.len());
    }
    let spans: Vec<Span<'_>> =
        spans.iter().map(|(rows, start, kv)| Span { rows: rows.clone(), start: *start, kv }).collect();
    let rows = qkv.len() / shape.qkv_width();
    let (mut out, mut lse) = (vec![0.0; rows * shape.q_width()], vec![0.0; rows * shape.heads]);
    attention(cpu, shape, LAYER, window, &spans, qkv, &mut out, &mut lse);
    (out, lse)
}

/// Output, log-sum-exps and gradient of whole sequences of `lens` rows in one pass.
pub(crate) struct Attended {
    pub(crate) out: Vec<f32>,
    pub(crate) lse: Vec<f32>,
    pub(crate) dqkv: Vec<f32>,
}

/// Attends to whole sequences and takes the gradient of `Σ out · dout`.
pub(crate) fn attend_whole(
    cpu: &Cpu,
    shape: &AttentionShape,
    window: Option<usize>,
    lens: &[usize],
    qkv: &[f32],
    dout: &[f32],
) -> Attended {
    let mut kvs = vec![KvSequence::default(); lens.len()];
    let mut parts: Vec<_> = ranges(lens).into_iter().zip(&mut kvs).collect();
    let (out, lse) = attend(cpu, shape, window, qkv, &mut parts);
    let spans: Vec<Span<'_>> =
        ranges(lens).into_iter().zip(&kvs).map(|(rows, kv)| Span { rows, start: 0, kv }).collect();
    // Whatever is there is overwritten.
    let mut dqkv = vec![f32::NAN; qkv.len()];
    let gradient = AttentionGradient { qkv, out: &out, lse: &lse, dout };
    attention_backward(cpu, shape, LAYER, window, &spans, &gradient, &mut dqkv);
    Attended { out, lse, dqkv }
}
