//! Ops of the tower of Qwen3-VL-8B: 1,152 columns, 16 heads of 72.

use std::slice::from_ref;

use half::bf16;

use super::super::support::{rows, values};
use super::Counts;
use crate::backend::cuda::ops::image_attention::{attend_images, tensor_attend_images};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::vision::{DeviceLayerNorm, add_rows, gelu, layer_norm, mix_rows};
use crate::backend::{AttentionShape, Gelu, IndexKeys, RowMix};

const ROWS: usize = 2;
const WIDTH: usize = 1152;

pub(super) fn count(counts: &mut Counts<'_>) {
    of_rows(counts);
    attention(counts);
}

fn of_rows(counts: &mut Counts<'_>) {
    let device = counts.device;
    let of = |count: usize, seed| rows::<f32>(device, &values(count * WIDTH, seed), WIDTH);
    let [weight, bias] = [1, 2].map(|seed| device.upload(&values(WIDTH, seed)).unwrap());
    let norm = DeviceLayerNorm { weight: &weight, bias: &bias, eps: 1e-6 };
    let (x, elements, shape) = (of(ROWS, 3), ROWS * WIDTH, "2x1152");
    let work = |name| [(name, "element", elements)];
    counts.count(shape, &work("layer_norm_f32"), |device| layer_norm::<f32>(device, norm, &x).unwrap());
    counts.count(shape, &work("layer_norm_bf16"), |device| layer_norm::<bf16>(device, norm, &x).unwrap());
    counts.count(shape, &work("gelu_f32"), |device| gelu::<f32>(device, Gelu::Tanh, &x).unwrap());
    counts.count(shape, &work("gelu_bf16"), |device| gelu::<bf16>(device, Gelu::Tanh, &x).unwrap());
    let mix = RowMix { per_row: 4, rows: vec![0, 1, 2, 3, 3, 2, 1, 0], weights: values(8, 4) };
    let table = of(4, 5);
    counts.count(shape, &work("mix_rows"), |device| mix_rows(device, &table, &mix).unwrap());
    let mut onto = of(4, 6);
    counts.count(shape, &work("add_rows"), |device| add_rows(device, &x, &[3, 1], &mut onto).unwrap());
}

/// A head of an image of 256 patches, of 64 without tensor cores.
fn attention(counts: &mut Counts<'_>) {
    for (head_dim, kernel) in [(72, "tensor_attention_all_128"), (64, "tensor_attention_all_64")] {
        let (of, qkv) = image(counts, head_dim, 256);
        let written = ("kv_write_bf16", "element", 2 * 256 * head_dim);
        counts.count(
            &format!("256 rows of 1 head of {head_dim} in an image"),
            &[written, (kernel, "pair", 256 * 256)],
            |device| tensor_attend_images(device, &of, from_ref(&(0..256)), &qkv).unwrap(),
        );
    }
    let (of, qkv) = image(counts, 64, 64);
    let work = [("kv_write_f32", "element", 2 * 64 * 64), ("attention", "pair", 64 * 64)];
    counts.count("64 rows of 1 head of 64 in an image", &work, |device| {
        attend_images(device, &of, from_ref(&(0..64)), &qkv).unwrap()
    });
}

fn image(counts: &Counts<'_>, head_dim: usize, count: usize) -> (AttentionShape, DeviceRows) {
    let of = AttentionShape { layers: 1, heads: 1, kv_heads: 1, head_dim, scale: 0.1, index: IndexKeys::NONE };
    (of, rows::<f32>(counts.device, &values(count * 3 * head_dim, 7), 3 * head_dim))
}
