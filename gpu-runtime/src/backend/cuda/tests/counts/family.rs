//! Kernels of some families and layouts: experts of Qwen3-30B-A3B, latent heads of DeepSeek-V3, gated heads of Qwen3.5-9B, heads of
//! OLMo 3, parts of a vocabulary, ranks.

use super::super::support::{rows, values};
use super::Counts;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::kernels::Argument;
use crate::backend::cuda::ops::combine::{combine, combine_backward};
use crate::backend::cuda::ops::gated::{gate_heads, gate_heads_backward, join_gates, split_gates};
use crate::backend::cuda::ops::latent::{DeviceLatentRotation, columns, join_heads, split_heads};
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::rotary::{DeviceRotation, rotate, rotate_backward};
use crate::backend::cuda::ops::routing::{route, route_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::vocabulary::{join_logits, spread};
use crate::backend::{AttentionShape, IndexKeys, LatentHeads, RouterRule};

const ROWS: usize = 2;
const HIDDEN: usize = 2048;
const EXPERTS: usize = 128;
const PER_TOKEN: usize = 8;

pub(super) fn count(counts: &mut Counts<'_>) {
    experts(counts);
    latent(counts);
    gates(counts);
    joint_norms(counts);
    vocabulary(counts);
    ranks(counts);
}

fn experts(counts: &mut Counts<'_>) {
    let device = counts.device;
    let (rule, shape) = (RouterRule::softmax(PER_TOKEN, true), "2 rows, 8 of 128 experts");
    let (logits, none) = (rows::<f32>(device, &values(ROWS * EXPERTS, 1), EXPERTS), device.zeros(0).unwrap());
    let (dispatch, weights) =
        counts.count(shape, &[("route", "row", ROWS)], |device| route(device, rule, &none, &logits).unwrap());
    let d_weights = rows::<f32>(device, &values(ROWS * PER_TOKEN, 2), PER_TOKEN);
    counts.count(shape, &[("route_backward", "row", ROWS)], |device| {
        route_backward(device, rule, &logits, &dispatch, &weights, &d_weights).unwrap()
    });
    let part = |rows_of: usize, seed: usize| rows::<f32>(device, &values(rows_of * HIDDEN, seed as u64), HIDDEN);
    let parts: Vec<DeviceRows> = dispatch.parts().iter().map(|of| part(of.rows.len(), 10 + of.expert)).collect();
    let (mut onto, d_out) = (part(ROWS, 3), part(ROWS, 4));
    let elements = ROWS * PER_TOKEN * HIDDEN;
    let shape = "2 rows of 8 experts x 2048";
    counts.count(shape, &[("combine", "element", elements)], |device| {
        combine(device, &parts, &dispatch, Some(&weights), &mut onto).unwrap();
    });
    let all = 0..parts.len();
    counts.count(shape, &[("combine_backward", "element", elements)], |device| {
        combine_backward(device, &parts, all, &dispatch, &weights, &d_out).unwrap()
    });
}

fn latent(counts: &mut Counts<'_>) {
    let device = counts.device;
    let h = LatentHeads { heads: 8, nope: 128, rope: 64, value: 128, width: 192, interleaved: true };
    let latent = 512;
    let of = |width: usize, seed| rows::<f32>(device, &values(ROWS * width, seed), width);
    let (q, kv, down) = (of(h.queries(), 5), of(h.keys_and_values(), 6), of(latent + h.rope, 7));
    let (d, rope) = (of(3 * h.heads * h.width, 8), rows::<f32>(device, &values(4 * h.rope, 9), h.rope));
    let rotation = DeviceLatentRotation { heads: h, rope: &rope, positions: &[2, 3] };
    let shape = "2 rows of 8 heads of 192";
    counts
        .count(shape, &[("join_heads", "row", ROWS)], |device| join_heads(device, &rotation, &q, &kv, &down).unwrap());
    counts.count(shape, &[("split_heads", "row", ROWS)], |device| split_heads(device, &rotation, &d).unwrap());
    counts.count("2x512", &[("copy_columns", "element", ROWS * latent)], |device| {
        columns(device, &down, 0..latent).unwrap()
    });
}

fn gates(counts: &mut Counts<'_>) {
    let device = counts.device;
    let of = AttentionShape { layers: 1, heads: 16, kv_heads: 4, head_dim: 256, scale: 1.0, index: IndexKeys::NONE };
    let (q, width) = (of.q_width(), of.qkv_width() + of.q_width());
    let projected = rows::<f32>(device, &values(ROWS * width, 14), width);
    let shape = "2 rows of 16+4 heads of 256";
    let work = |name, elements| [(name, "element", elements)];
    let [qkv, gates] =
        counts.count(shape, &work("split_gates", ROWS * width), |device| split_gates(device, &of, &projected).unwrap());
    counts.count(shape, &work("join_gates", ROWS * width), |device| join_gates(device, &of, &qkv, &gates).unwrap());
    let [heads, d] = [15, 16].map(|seed| rows::<f32>(device, &values(ROWS * q, seed), q));
    counts.count(shape, &work("gate_heads", ROWS * q), |device| gate_heads(device, &heads, &gates).unwrap());
    counts.count(shape, &work("gate_heads_backward", ROWS * q), |device| {
        gate_heads_backward(device, &heads, &gates, &d).unwrap()
    });
}

/// Norms over all heads before rotation.
fn joint_norms(counts: &mut Counts<'_>) {
    let device = counts.device;
    let of = AttentionShape { layers: 1, heads: 32, kv_heads: 8, head_dim: 128, scale: 1.0, index: IndexKeys::NONE };
    let (width, of_row) = (of.qkv_width(), |name: &'static str| (name, "row", ROWS));
    let rope = rows::<f32>(device, &values(8 * of.head_dim, 17), of.head_dim);
    let [wq, mut dq] = [18, 19].map(|seed| device.upload(&values(of.q_width(), seed)).unwrap());
    let [wk, mut dk] = [20, 21].map(|seed| device.upload(&values(of.kv_width(), seed)).unwrap());
    let [mut qkv, mut d] = [22, 23].map(|seed| rows::<f32>(device, &values(ROWS * width, seed), width));
    let norms = Some([&wq, &wk].map(|weight| DeviceNorm { weight, eps: 1e-6 }));
    let positions = &[6, 7];
    let rotation = DeviceRotation { shape: &of, norms, whole_norms: true, rope: &rope, query_rope: None, positions };
    let forward = ["joint_norm_scales", "rotate_parts"].map(of_row);
    let before = counts
        .count("2 rows of 32+8 heads of 128", &forward, |device| rotate(device, &rotation, &mut qkv, true).unwrap());
    let backward =
        ["rotate_parts_back", "joint_norm_scales", "joint_norm_weight_backward", "joint_norm_backward"].map(of_row);
    counts.count("2 rows of 32+8 heads of 128, backward", &backward, |device| {
        rotate_backward(device, &rotation, before.as_ref(), &mut d, Some([&mut dq, &mut dk])).unwrap();
    });
}

fn vocabulary(counts: &mut Counts<'_>) {
    let device = counts.device;
    let from = rows::<f32>(device, &values(HIDDEN, 10), HIDDEN);
    counts.count("1 of 2 rows of 2048", &[("spread", "element", ROWS * HIDDEN)], |device| {
        spread(device, &from, &[1], ROWS).unwrap()
    });
    let (width, mut out) = (4096, rows::<f32>(device, &values(ROWS * 4096, 11), 4096));
    let own: Slice<f32> = device.upload(&values(ROWS * width, 12)).unwrap();
    counts.count("2x4096", &[("place_columns", "element", ROWS * width)], |device| {
        join_logits(device, &[&own], ROWS, &mut out).unwrap();
    });
}

/// Counts the kernel that [`DeviceRanks`](crate::backend::cuda::ops::ranks::DeviceRanks) launches for two ranks after
/// NCCL has gathered their parts.
fn ranks(counts: &mut Counts<'_>) {
    let length = ROWS * HIDDEN;
    let parts: Slice<f32> = counts.device.upload(&values(2 * length, 13)).unwrap();
    let mut to: Slice<f32> = counts.device.uninitialised(length).unwrap();
    counts.count("2 ranks of 2x2048", &[("sum_ranks", "element", length)], |device| {
        let arguments = [(&parts).into(), (&mut to).into(), Argument::wide(length as u64), 2u32.into()];
        device.launch("sum_ranks", [length.div_ceil(256) as u32, 1, 1], 256, &arguments).unwrap();
    });
}
