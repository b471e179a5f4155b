//! Inputs, candle tensors, comparisons and passes of attention.

use std::ops::Range;

use candle_core::{D, DType, Device, Tensor, Var};

use crate::cpu::attention::{AttentionGradient, attention, attention_backward};
use crate::cpu::rows::HostRows;
use crate::cpu::{Cpu, Isa};
use crate::kv::{KvCache, KvSequence};
use crate::rng::kaiming_uniform_fill;
use crate::{AttentionCall, AttentionShape, Dtype, IndexKeys, Span};

/// Numbers in [-1, 1); streams of different `seed` are independent.
pub(crate) fn values(n: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; n];
    kaiming_uniform_fill(seed, 0, &mut out, 1.0);
    out
}

/// Like [`values`], but exact in `dtype`.
pub(crate) fn rounded(n: usize, seed: u64, dtype: Dtype) -> Vec<f32> {
    values(n, seed).into_iter().map(|x| dtype.round(x)).collect()
}

/// A processor of two threads for every instruction set, with base weights in f32.
pub(crate) fn cpus() -> Vec<Cpu> {
    Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa).with_dtype(Dtype::F32)).collect()
}

/// The processors of [`cpus`], and those that multiply bf16, whose attention rounds to bf16 with bf16 base weights.
pub(crate) fn attention_cpus() -> Vec<Cpu> {
    let rounding = Isa::available().into_iter().filter(|isa| isa.multiplies_bf16()).map(|isa| Cpu::with_isa(2, isa));
    cpus().into_iter().chain(rounding).collect()
}

/// A variable of candle's, in f64.
pub(crate) fn var(x: &[f32], shape: &[usize]) -> Var {
    Var::from_tensor(&constant(x, shape)).unwrap()
}

/// Like [`var`], but without a gradient.
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

/// Largest of each row, as a column.
pub(crate) fn row_max(x: &Tensor) -> Tensor {
    x.max_keepdim(D::Minus1).unwrap().detach()
}

/// log Σ exp over the last dimension, which stays with extent 1.
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

/// The bits, so that a difference of an ulp or of a zero's sign is found.
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
    let scale = 1.0 / (head_dim as f32).sqrt();
    AttentionShape { layers: 2, heads: kv_heads * group, kv_heads, head_dim, scale, index: IndexKeys::NONE }
}

/// Attention on a processor, with a pool for the keys and values of its sequences.
pub(crate) struct Attention<'a> {
    cpu: &'a Cpu,
    shape: &'a AttentionShape,
    window: Option<usize>,
    pub(crate) cache: KvCache<Cpu>,
}

impl<'a> Attention<'a> {
    pub(crate) fn new(cpu: &'a Cpu, shape: &'a AttentionShape, window: Option<usize>) -> Self {
        Self { cpu, shape, window, cache: KvCache::new(cpu, shape, &[]) }
    }

    /// Appends `lens` rows of `qkv` to the sequences, and attends: returns the outputs and log-sum-exps of all rows.
    pub(crate) fn attend(&mut self, qkv: &[f32], lens: &[usize], kvs: &mut [KvSequence]) -> (Vec<f32>, Vec<f32>) {
        let spans = self.append(qkv, lens, kvs);
        let rows = qkv.len() / self.shape.qkv_width();
        let (mut out, mut lse) = (vec![0.0; rows * self.shape.q_width()], vec![0.0; rows * self.shape.heads]);
        attention(self.cpu, self.call(&spans), self.cache.pool(), qkv, &mut out, &mut lse);
        (out, lse)
    }

    /// Writes the keys and values of rows of `qkv`.
    fn append(&mut self, qkv: &[f32], lens: &[usize], kvs: &mut [KvSequence]) -> Vec<Span> {
        let starts: Vec<_> = ranges(lens).into_iter().zip(kvs.iter().map(KvSequence::len)).collect();
        let spans = self.cache.extend(self.cpu, &starts, kvs);
        let width = self.shape.qkv_width();
        let mut rows = HostRows::alloc(self.cpu, qkv.len() / width, width);
        rows.copy_from_slice(qkv);
        self.cache.write(self.cpu, LAYER, &spans, &rows);
        for (kv, span) in kvs.iter_mut().zip(&spans) {
            kv.set_len(span.start + span.rows.len());
        }
        spans
    }

    pub(crate) fn call<'s>(&self, spans: &'s [Span]) -> AttentionCall<'s>
    where
        'a: 's,
    {
        AttentionCall { shape: self.shape, layer: LAYER, window: self.window, spans, chosen: None }
    }
}

/// Output, log-sum-exps and gradient of whole sequences of `lens` rows in one pass.
pub(crate) struct Attended {
    pub(crate) out: Vec<f32>,
    pub(crate) lse: Vec<f32>,
    pub(crate) d_qkv: Vec<f32>,
}

/// Attends to whole sequences and takes the gradient of `Σ out · d_out`.
pub(crate) fn attend_whole(
    cpu: &Cpu,
    shape: &AttentionShape,
    window: Option<usize>,
    lens: &[usize],
    qkv: &[f32],
    d_out: &[f32],
) -> Attended {
    let mut attending = Attention::new(cpu, shape, window);
    let mut kvs = vec![KvSequence::default(); lens.len()];
    let (out, lse) = attending.attend(qkv, lens, &mut kvs);
    let starts: Vec<_> = ranges(lens).into_iter().map(|rows| (rows, 0)).collect();
    let spans = attending.cache.extend(cpu, &starts, &mut kvs);
    // Whatever is there is overwritten.
    let mut d_qkv = vec![f32::NAN; qkv.len()];
    let gradient = AttentionGradient { qkv, out: &out, lse: &lse, d_out };
    attention_backward(cpu, attending.call(&spans), attending.cache.pool(), &gradient, &mut d_qkv);
    Attended { out, lse, d_qkv }
}
