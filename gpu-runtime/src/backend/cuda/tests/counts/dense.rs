//! Kernels of dense models, by rows and widths of Qwen3-8B.

use half::bf16;
use trainyard_protocol::AdamParams;

use super::super::support::{rows, values};
use super::Counts;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::activation::{activate, activate_backward, activate_backward_rounded};
use crate::backend::cuda::ops::bias::{add_bias, bias_backward};
use crate::backend::cuda::ops::copies::{gather, part_of_rows, round_bf16, scatter, shift};
use crate::backend::cuda::ops::embedding::{embed, embed_backward};
use crate::backend::cuda::ops::head::{
    DeviceDivergences, DeviceLogSums, DeviceRowGradients, DeviceTargets, LogitChunk, OtherChunk, add_divergences,
    add_entropies, logit_gradient,
};
use crate::backend::cuda::ops::norm::{DeviceNorm, add_norm, norm, norm_backward};
use crate::backend::cuda::ops::optimizer::{DeviceStep, adamw};
use crate::backend::cuda::ops::rotary::{DeviceRotation, rotate, rotate_backward, rotate_backward_rounded};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::scalar_head::{DeviceScalarHead, scalar_head, scalar_head_backward};
use crate::backend::cuda::ops::squares::{add, squared_norms};
use crate::backend::{Activation, AttentionShape, IndexKeys, Targets};

const ROWS: usize = 2;
const HIDDEN: usize = 4096;
const INNER: usize = 12_288;
const SHAPE: AttentionShape =
    AttentionShape { layers: 1, heads: 32, kv_heads: 8, head_dim: 128, scale: 1.0, index: IndexKeys::NONE };
/// Tokens of a chunk of the vocabulary.
const CHUNK: usize = 8192;

const EACH: &str = "element";
const WIDE: &str = "2x4096";

fn hidden(device: &CudaDevice, seed: u64) -> DeviceRows {
    rows(device, &values(ROWS * HIDDEN, seed), HIDDEN)
}

pub(super) fn count(counts: &mut Counts<'_>) {
    embedding(counts);
    norms(counts);
    rotation(counts);
    activations(counts);
    copies(counts);
    head(counts);
    scalar(counts);
    biases(counts);
    optimizer(counts);
}

fn embedding(counts: &mut Counts<'_>) {
    let elements = ROWS * HIDDEN;
    let table = values(4 * HIDDEN, 1);
    let narrow = rows::<bf16>(counts.device, &table, HIDDEN);
    let wide = rows::<f32>(counts.device, &table, HIDDEN);
    counts.count(WIDE, &[("embed_bf16", EACH, elements)], |device| embed(device, &narrow, &[3, 1], 1.0).unwrap());
    counts.count(WIDE, &[("embed_f32", EACH, elements)], |device| embed(device, &wide, &[3, 1], 1.0).unwrap());
    let (dx, mut gradient) = (hidden(counts.device, 2), rows::<f32>(counts.device, &table, HIDDEN));
    counts.count(WIDE, &[("embed_backward", EACH, elements)], |device| {
        embed_backward(device, &[3, 1], &dx, 1.0, gradient.data_mut()).unwrap();
    });
}

fn norms(counts: &mut Counts<'_>) {
    let elements = ROWS * HIDDEN;
    let weight = counts.device.upload(&values(HIDDEN, 3)).unwrap();
    let of = DeviceNorm { weight: &weight, eps: 1e-6 };
    let (x, dy, mut dx) = (hidden(counts.device, 4), hidden(counts.device, 5), hidden(counts.device, 6));
    let mut dw = counts.device.upload(&values(HIDDEN, 7)).unwrap();
    counts.count(WIDE, &[("norm_bf16", EACH, elements)], |device| norm::<bf16>(device, of, &x).unwrap());
    counts.count(WIDE, &[("norm_f32", EACH, elements)], |device| norm::<f32>(device, of, &x).unwrap());
    counts.count(WIDE, &[("add_norm", EACH, elements)], |device| add_norm(device, of, &x, &mut dx).unwrap());
    let backward = [("norm_backward", EACH, elements), ("norm_weight_backward", EACH, elements)];
    counts.count(WIDE, &backward, |device| norm_backward(device, of, &x, &dy, &mut dx, Some(&mut dw)).unwrap());
}

fn rotation(counts: &mut Counts<'_>) {
    let width = SHAPE.qkv_width();
    let rope = rows::<f32>(counts.device, &values(8 * SHAPE.head_dim, 8), SHAPE.head_dim);
    let [wq, wk, mut dq, mut dk] = [9, 10, 11, 12].map(|i| counts.device.upload(&values(SHAPE.head_dim, i)).unwrap());
    let norms = [&wq, &wk].map(|weight| DeviceNorm { weight, eps: 1e-6 });
    let norms = Some(norms);
    let of =
        DeviceRotation { shape: &SHAPE, norms, whole_norms: false, rope: &rope, query_rope: None, positions: &[6, 7] };
    let [mut qkv, mut d] = [13, 14].map(|seed| rows::<f32>(counts.device, &values(ROWS * width, seed), width));
    let shape = "2 rows of 32+8 heads of 128";
    let before = counts.count(shape, &[("rotate", "row", ROWS)], |device| rotate(device, &of, &mut qkv, true).unwrap());
    counts.count(shape, &[("rotate_back_rounded", "row", ROWS)], |device| {
        rotate_backward_rounded(device, &of, before.as_ref().unwrap(), &d).unwrap();
    });
    let backward = ["rotate_back", "head_norm_weight_backward", "head_norm_backward"].map(|name| (name, "row", ROWS));
    counts.count(shape, &backward, |device| {
        rotate_backward(device, &of, before.as_ref(), &mut d, Some([&mut dq, &mut dk])).unwrap();
    });
}

fn activations(counts: &mut Counts<'_>) {
    let of = Activation::Silu;
    let mut gate_up = rows::<f32>(counts.device, &values(2 * INNER, 15), 2 * INNER);
    let mut d = rows::<f32>(counts.device, &values(INNER, 16), INNER);
    let work = |name| [(name, EACH, INNER)];
    let shape = "1x12288";
    counts.count(shape, &work("activate_bf16"), |device| activate::<bf16>(device, of, &gate_up).unwrap());
    counts.count(shape, &work("activate_f32"), |device| activate::<f32>(device, of, &gate_up).unwrap());
    counts.count(shape, &work("activate_backward_bf16"), |device| {
        activate_backward_rounded(device, of, &gate_up, &d).unwrap();
    });
    counts.count(shape, &work("activate_backward_f32"), |device| {
        activate_backward(device, of, &mut gate_up, &mut d).unwrap();
    });
}

fn copies(counts: &mut Counts<'_>) {
    let elements = ROWS * HIDDEN;
    let (x, mut to) = (hidden(counts.device, 17), hidden(counts.device, 18));
    let mut narrow = DeviceRows::<bf16>::zeros(counts.device, ROWS, HIDDEN).unwrap();
    let work = |name| [(name, EACH, elements)];
    counts.count(WIDE, &work("gather_rows"), |device| gather(device, &x, &[1, 0]).unwrap());
    counts.count(WIDE, &work("scatter_rows"), |device| scatter(device, &x, &[1, 0], &mut to).unwrap());
    counts.count(WIDE, &work("part_of_rows_f32"), |device| part_of_rows(device, &x, 0..ROWS, HIDDEN).unwrap());
    counts.count(WIDE, &work("part_of_rows_bf16"), |device| part_of_rows(device, &narrow, 0..ROWS, HIDDEN).unwrap());
    counts.count(WIDE, &work("round_to_bf16"), |device| {
        round_bf16(device, x.data(), 0..elements, narrow.data_mut(), 0).unwrap();
    });
    counts.count(WIDE, &work("shift"), |device| {
        shift(device, x.data(), 0..elements, 1.0, to.data_mut(), 0).unwrap();
    });
}

/// One target for each row.
fn head(counts: &mut Counts<'_>) {
    let (elements, shape) = (ROWS * CHUNK, "2x8192");
    let mut targets = Targets::empty();
    targets.push([5]);
    targets.push([8000]);
    let targets = DeviceTargets::upload(counts.device, &targets, CHUNK).unwrap();
    let logits = rows::<f32>(counts.device, &values(elements, 21), CHUNK);
    let chunk = LogitChunk { logits: &logits, column: 0, tokens: (0, CHUNK) };
    let mut sums = DeviceLogSums::new(counts.device, ROWS).unwrap();
    let mut found = counts.device.zeros(ROWS).unwrap();
    let work = |name| [(name, EACH, elements)];
    counts.count(shape, &work("head_chunk"), |device| sums.add(device, chunk, &targets, &mut found).unwrap());
    let [lse, d] = [vec![9.5; ROWS], values(ROWS, 22)].map(|values| counts.device.upload(&values).unwrap());
    let mut entropies = counts.device.zeros(ROWS).unwrap();
    counts.count(shape, &work("head_entropy"), |device| add_entropies(device, chunk, &lse, &mut entropies).unwrap());
    let entropies = [entropies, counts.device.upload(&values(ROWS, 23)).unwrap()];
    let others = rows::<f32>(counts.device, &values(elements, 24), CHUNK);
    let other = OtherChunk { logits: &others, log_sums: &lse };
    let mut found = counts.device.zeros(ROWS).unwrap();
    counts.count(shape, &work("head_divergence"), |device| {
        add_divergences(device, chunk, &lse, other, &mut found).unwrap();
    });
    let divergences = DeviceDivergences { other, values: &found, d: &entropies[1] };
    let kernels = [
        (["head_gradient_f32", "head_gradient_bf16"], None, None),
        (["head_entropy_gradient_f32", "head_entropy_gradient_bf16"], Some(&entropies), None),
        (["head_divergence_gradient_f32", "head_divergence_gradient_bf16"], Some(&entropies), Some(divergences)),
    ];
    for ([wide, rounded], entropies, divergences) in kernels {
        let gradients = DeviceRowGradients { targets: &targets, log_sums: &lse, d: &d, entropies, divergences };
        counts.count(shape, &work(wide), |device| {
            logit_gradient::<f32>(device, chunk, &gradients).unwrap();
        });
        counts.count(shape, &work(rounded), |device| {
            logit_gradient::<bf16>(device, chunk, &gradients).unwrap();
        });
    }
}

fn scalar(counts: &mut Counts<'_>) {
    let elements = ROWS * HIDDEN;
    let (x, mut dx) = (hidden(counts.device, 23), hidden(counts.device, 24));
    let [weight, mut dw] = [25, 26].map(|seed| counts.device.upload(&values(HIDDEN, seed)).unwrap());
    let [bias, mut db] = [27, 28].map(|seed| counts.device.upload(&values(1, seed)).unwrap());
    let of = DeviceScalarHead { weight: &weight, bias: &bias };
    counts.count(WIDE, &[("scalar_head", EACH, elements)], |device| scalar_head(device, of, &x, 0..ROWS).unwrap());
    let of = DeviceScalarHead { weight: &weight, bias: &bias };
    let backward = ["scalar_head_backward", "scalar_head_gradients"].map(|name| (name, EACH, elements));
    counts.count(WIDE, &backward, |device| {
        let grads = DeviceScalarHead { weight: &mut dw, bias: &mut db };
        scalar_head_backward(device, of, &x, 0..ROWS, &[0.5, 0.25], &mut dx, Some(grads)).unwrap();
    });
}

fn biases(counts: &mut Counts<'_>) {
    let elements = ROWS * HIDDEN;
    let mut x = hidden(counts.device, 29);
    let mut bias = counts.device.upload(&values(HIDDEN, 30)).unwrap();
    counts.count(WIDE, &[("add_bias", EACH, elements)], |device| add_bias(device, &bias, ROWS, &mut x).unwrap());
    counts.count(WIDE, &[("bias_backward", EACH, elements)], |device| {
        bias_backward(device, &x, 0..HIDDEN, &mut bias).unwrap();
    });
}

fn optimizer(counts: &mut Counts<'_>) {
    let (len, shape) = (32 * HIDDEN, "32x4096");
    let array = |seed| -> Vec<Slice<f32>> {
        let all: Vec<f32> = values(len, seed).iter().map(|x| x.abs()).collect();
        vec![counts.device.upload(&all).unwrap()]
    };
    let [mut params, grads, mut first, mut second] = [31, 32, 33, 34].map(array);
    let hyper =
        AdamParams { learning_rate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.0, grad_clip_norm: 0.0 };
    counts.count(shape, &[("adamw", EACH, len)], |device| {
        let moments = [&mut first[..], &mut second[..]];
        let step = DeviceStep { params: &mut params, grads: &grads, moments, hyper: &hyper, step: 1, grad_scale: 1.0 };
        adamw(device, vec![step]).unwrap();
    });
    let work = [("squares", EACH, len), ("sum_partials", "array", 1)];
    counts.count(shape, &work, |device| squared_norms(device, &grads, None).unwrap());
    counts.count(shape, &[("add", EACH, len)], |device| add(device, &mut params[0], &grads[0]).unwrap());
}
