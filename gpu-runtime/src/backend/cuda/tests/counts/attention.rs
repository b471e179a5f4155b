//! Attention of a key head of Qwen3-8B with its four query heads, and sinks.

use half::bf16;

use super::super::support::{Rounded, rows, values};
use super::Counts;
use crate::backend::cuda::ops::attention::{
    DeviceAttention, DeviceKvPool, DeviceSpans, attention, attention_backward, kv_write,
};
use crate::backend::cuda::ops::rows::{DeviceRows, RowElement};
use crate::backend::cuda::ops::sinks::{add_sinks, sinks_backward};
use crate::backend::cuda::ops::tensor_attention::{tensor_attention, tensor_attention_backward};
use crate::backend::{AttentionShape, IndexKeys, KV_BLOCK, Span};

const HEADS: usize = 4;

fn shape(head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 1, heads: HEADS, kv_heads: 1, head_dim, scale: 0.1, index: IndexKeys::NONE }
}

/// A sequence of `len` positions, all of them in the pool, and the rows of the last `rows` of them.
struct Sequence<T: RowElement> {
    shape: AttentionShape,
    pool: DeviceKvPool<T>,
    spans: DeviceSpans<T>,
    qkv: DeviceRows,
}

impl<T: Rounded> Sequence<T> {
    fn new(counts: &mut Counts<'_>, head_dim: usize, len: usize, count: usize) -> Self {
        let (device, shape) = (counts.device, shape(head_dim));
        let mut pool = DeviceKvPool::new(&shape).unwrap();
        let blocks: Vec<_> = (0..len.div_ceil(KV_BLOCK)).map(|_| pool.take(device).unwrap()).collect();
        let span = |start: usize| Span { rows: 0..len - start, start, blocks: blocks.clone(), held: 0, state: None };
        let all = DeviceSpans::upload(device, &pool, &[span(0)], len).unwrap();
        let qkv = rows::<f32>(device, &values(len * shape.qkv_width(), 1), shape.qkv_width());
        let call = DeviceAttention { shape: &shape, layer: 0, window: None, spans: &all };
        let name = format!("kv_write_{}", <T as RowElement>::SUFFIX);
        let written = format!("{len} rows of 1 head of {head_dim}");
        if count == len {
            counts.count(&written, &[(&name, "element", 2 * len * head_dim)], |device| {
                kv_write(device, call, &mut pool, &qkv).unwrap();
            });
        } else {
            kv_write(device, call, &mut pool, &qkv).unwrap();
        }
        let spans = DeviceSpans::upload(device, &pool, &[span(len - count)], count).unwrap();
        let qkv = rows(device, &values(count * shape.qkv_width(), 2), shape.qkv_width());
        Self { shape, pool, spans, qkv }
    }

    fn call(&self) -> DeviceAttention<'_, T> {
        DeviceAttention { shape: &self.shape, layer: 0, window: None, spans: &self.spans }
    }
}

pub(super) fn count(counts: &mut Counts<'_>) {
    plain(counts);
    on_tensor_cores(counts, 128, 1024);
    on_tensor_cores(counts, 64, 128);
    sinks(counts);
}

/// Pairs of a query and a key that it sees, of all heads.
fn pairs(len: usize) -> usize {
    HEADS * len * (len + 1) / 2
}

fn plain(counts: &mut Counts<'_>) {
    let (len, shape) = (64, "64 rows of 4+1 heads of 128");
    let of = Sequence::<f32>::new(counts, 128, len, len);
    let work = |name| (name, "pair", pairs(len));
    let [out, sums] =
        counts.count(shape, &[work("attention")], |device| attention(device, of.call(), &of.pool, &of.qkv).unwrap());
    let d_out = rows(counts.device, &values(len * HEADS * 128, 3), HEADS * 128);
    counts.count(shape, &[work("attention_backward_q"), work("attention_backward_kv")], |device| {
        attention_backward(device, of.call(), &of.pool, &of.qkv, [&out, &sums], &d_out).unwrap()
    });
    let of = Sequence::<f32>::new(counts, 128, 256, 1);
    let work = [("attention", "pair", 256 * HEADS)];
    counts.count("1 row of 4+1 heads of 128, 256 keys", &work, |device| {
        attention(device, of.call(), &of.pool, &of.qkv).unwrap()
    });
}

/// 64 queries are 16 rows, which see the tiles of 32 keys up to their last one. 64 keys meet 16 queries of a head at a time, from their
/// own position on. A sequence of 1,024 rows is long enough that it is not split.
fn on_tensor_cores(counts: &mut Counts<'_>, head_dim: usize, len: usize) {
    let shape = format!("{len} rows of 4+1 heads of {head_dim}");
    let tiles = (0..len / 16).map(|i| (16 * i + 15) / 32 + 1).sum::<usize>();
    let steps = HEADS * (0..len / 64).map(|i| (len - 64 * i) / 16).sum::<usize>();
    let of = Sequence::<bf16>::new(counts, head_dim, len, len);
    let name = |name: &str| format!("{name}_{head_dim}");
    let forward = name("tensor_attention");
    let [out, sums] = counts.count(&shape, &[(&forward, "tile", tiles)], |device| {
        tensor_attention(device, of.call(), &of.pool, &of.qkv).unwrap()
    });
    let d_out = rows(counts.device, &values(len * HEADS * head_dim, 4), HEADS * head_dim);
    let (q, kv) = (name("tensor_attention_backward_q"), name("tensor_attention_backward_kv"));
    // Kernels that widths share have a line for each.
    let work = [("tensor_attention_prepare", "row of a head", HEADS * len), (&q, "tile", tiles), (&kv, "step", steps)];
    counts.count(&shape, &work, |device| {
        tensor_attention_backward(device, of.call(), &of.pool, &of.qkv, [&out, &sums], &d_out).unwrap()
    });
    // Two splits of four tiles.
    let of = Sequence::<bf16>::new(counts, head_dim, 256, 1);
    let split = name("tensor_attention_split");
    let work = [(&split[..], "tile", 8), ("tensor_attention_join", "split of a head", HEADS * 2)];
    counts.count(&format!("1 row of 4+1 heads of {head_dim}, 256 keys"), &work, |device| {
        tensor_attention(device, of.call(), &of.pool, &of.qkv).unwrap()
    });
}

fn sinks(counts: &mut Counts<'_>) {
    let (len, heads, head_dim, shape) = (2, 64, 64, "2 rows of 64 heads of 64");
    let of = counts.device.upload(&values(heads, 5)).unwrap();
    let mut dw = counts.device.upload(&values(heads, 6)).unwrap();
    let width = heads * head_dim;
    let [mut out, d_out] = [7, 8].map(|seed| rows::<f32>(counts.device, &values(len * width, seed), width));
    let mut sums = rows::<f32>(counts.device, &values(len * heads, 9), heads);
    counts.count(shape, &[("add_sinks", "row of a head", len * heads)], |device| {
        add_sinks(device, &of, [&mut out, &mut sums]).unwrap();
    });
    let work = [("sinks_terms", "row of a head", len * heads), ("bias_backward", "element", len * heads)];
    counts.count(shape, &work, |device| sinks_backward(device, &of, [&out, &sums], &d_out, &mut dw).unwrap());
}
