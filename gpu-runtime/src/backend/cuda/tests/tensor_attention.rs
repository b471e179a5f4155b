use half::bf16;

use super::simulated::on_device;
use super::support::{close, rounded, rows, values, wide};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::attention::{DeviceAttention, DeviceKvPool, DeviceSpans, kv_write};
use crate::backend::cuda::ops::attention_tiles::has_tensor_attention;
use crate::backend::cuda::ops::tensor_attention::{tensor_attention, tensor_attention_backward};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionCall, AttentionShape, Backend, BlockId, IndexKeys, KV_BLOCK, Span};

fn shape(heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 2, heads, kv_heads, head_dim, scale: 0.3, index: IndexKeys::NONE }
}

/// Spans of whole sequences of these lengths, the blocks of each in reverse order; a row before them has none.
fn spans(lens: &[usize]) -> (Vec<Span>, usize) {
    let (mut found, mut row, mut block) = (Vec::new(), 1, 0);
    for len in lens {
        let count = len.div_ceil(KV_BLOCK) as u32;
        let blocks = (block..block + count).rev().map(BlockId).collect();
        block += count;
        found.push(Span { rows: row..row + len, start: 0, blocks, held: 0, state: None });
        row += len;
    }
    (found, row)
}

/// Elements that bf16 has.
fn narrow(count: usize, seed: u64) -> Vec<f32> {
    wide(&rounded::<bf16>(&values(count, seed)))
}

/// The output, the log-sum-exp, and the gradient, on the device and on the reference, from the same rounded elements: what differs is
/// the rounding of probabilities.
fn compare(device: &CudaDevice, shape: &AttentionShape, lens: &[usize], window: Option<usize>) {
    let (spans, count) = spans(lens);
    let [qkv, d_out] =
        [(shape.qkv_width(), 91), (shape.q_width(), 92)].map(|(width, seed)| narrow(count * width, seed));
    let (mut pool, mut expected_pool) = (DeviceKvPool::<bf16>::new(shape).unwrap(), Reference.kv_pool(shape));
    for _ in spans.iter().flat_map(|span| &span.blocks) {
        assert_eq!(pool.take(device).unwrap(), Reference.kv_take(&mut expected_pool));
    }

    let on_spans = DeviceSpans::upload(device, &pool, &spans, count).unwrap();
    let call = DeviceAttention { shape, layer: 1, window, spans: &on_spans };
    let on_qkv = rows::<f32>(device, &qkv, shape.qkv_width());
    let on_d_out = rows::<f32>(device, &d_out, shape.q_width());
    kv_write(device, call, &mut pool, &on_qkv).unwrap();
    let [out, log_sums] = tensor_attention(device, call, &pool, &on_qkv).unwrap();
    let forward = [&out, &log_sums];
    let gradient = tensor_attention_backward(device, call, &pool, &on_qkv, forward, &on_d_out).unwrap();

    let (qkv, d_out) = (Matrix::new(qkv, shape.qkv_width()), Matrix::new(d_out, shape.q_width()));
    let call = AttentionCall { shape, layer: 1, window, spans: &spans, chosen: None };
    Reference.kv_write(&mut expected_pool, shape, 1, &spans, &qkv);
    let [expected, expected_sums] = Reference.attention(call, &expected_pool, &qkv);
    let forward = [&expected, &expected_sums];
    let expected_gradient = Reference.attention_backward(call, &expected_pool, &qkv, forward, &d_out);
    close("log-sum-exp", &log_sums.to_host().unwrap(), expected_sums.data(), 2e-6);
    close("output", &out.to_host().unwrap(), expected.data(), 4e-3);
    close("gradient", &gradient.to_host().unwrap(), expected_gradient.data(), 6e-3);
}

#[test]
fn attention_and_its_gradient() {
    on_device(|device| {
        compare(device, &shape(1, 1, 8), &[1], None);
        compare(device, &shape(4, 2, 24), &[3, 1, 70], None);
        compare(device, &shape(2, 1, 128), &[33, 5], None);
        compare(device, &shape(3, 1, 64), &[67], None);
        compare(device, &shape(1, 1, 72), &[130], None);
        compare(device, &shape(1, 1, 72), &[128], None);
        compare(device, &shape(2, 2, 16), &[300, 128, 129], None);
    });
}

#[test]
fn windowed_attention_and_its_gradient() {
    on_device(|device| {
        compare(device, &shape(2, 2, 16), &[40, 3], Some(1));
        compare(device, &shape(3, 1, 40), &[100], Some(7));
        compare(device, &shape(1, 1, 8), &[150], Some(33));
        compare(device, &shape(1, 1, 8), &[70], Some(usize::MAX >> 32));
        compare(device, &shape(1, 1, 16), &[400], Some(100));
    });
}

/// A sequence's output and log-sum-exps in a pass over some of its positions, whose keys and values it writes first, behind `others`
/// sequences of one row.
fn pass(
    device: &CudaDevice,
    pool: &mut DeviceKvPool<bf16>,
    qkv: &[f32],
    (positions, window): (std::ops::Range<usize>, usize),
    others: usize,
) -> [Vec<f32>; 2] {
    let (shape, blocks) = (shape(4, 2, 16), (0..BLOCKS).rev().map(BlockId).collect());
    let width = shape.qkv_width();
    let span = Span { rows: others..others + positions.len(), start: positions.start, blocks, held: 0, state: None };
    let other = |row: usize| {
        let blocks = vec![BlockId(BLOCKS + row as u32)];
        Span { rows: row..row + 1, start: 0, blocks, held: 0, state: None }
    };
    let spans: Vec<_> = (0..others).map(other).chain([span]).collect();
    let count = positions.len() + others;
    let spans = DeviceSpans::upload(device, pool, &spans, count).unwrap();
    let call = DeviceAttention { shape: &shape, layer: 0, window: Some(window), spans: &spans };
    let of_others = values(others * width, positions.start as u64);
    let qkv = [&of_others[..], &qkv[positions.start * width..positions.end * width]].concat();
    let qkv = rows::<f32>(device, &qkv, width);
    kv_write(device, call, pool, &qkv).unwrap();
    let results = tensor_attention(device, call, pool, &qkv).unwrap();
    results.map(|rows| rows.to_host().unwrap()[others * rows.width()..].to_vec())
}

/// Blocks of the sequence.
const BLOCKS: u32 = 12;

#[test]
fn a_sequence_may_be_cut_into_passes_and_batched_with_others() {
    on_device(|device| {
        let (shape, len) = (shape(4, 2, 16), BLOCKS as usize * KV_BLOCK - 20);
        let qkv = values(len * shape.qkv_width(), 93);
        let mut pool = DeviceKvPool::new(&shape).unwrap();
        (0..BLOCKS + 140).for_each(|_| {
            pool.take(device).unwrap();
        });
        for window in [50, 200, len] {
            // Splits of keys have blocks of threads of their own where there are few others.
            let whole = pass(device, &mut pool, &qkv, (0..len, window), 2);
            assert_eq!(pass(device, &mut pool, &qkv, (0..len, window), 140), whole);
            let parts = [0..10, 10..33, 33..34, 34..300, 300..len - 1, len - 1..len];
            let parts = parts.map(|part| pass(device, &mut pool, &qkv, (part, window), 1));
            for which in 0..2 {
                assert_eq!(parts.each_ref().map(|part| &part[which][..]).concat(), whole[which]);
            }
        }
    });
}

#[test]
fn a_row_sees_more_splits_than_are_joined_at_once() {
    on_device(|device| {
        // Nine splits of 128 keys.
        let (shape, len) = (shape(4, 2, 16), 1_100);
        let width = shape.qkv_width();
        let qkv = narrow(len * width, 95);
        let (mut pool, mut expected_pool) = (DeviceKvPool::<bf16>::new(&shape).unwrap(), Reference.kv_pool(&shape));
        let blocks: Vec<_> = (0..len.div_ceil(KV_BLOCK)).map(|_| pool.take(device).unwrap()).collect();
        blocks.iter().for_each(|block| assert_eq!(Reference.kv_take(&mut expected_pool), *block));
        let part = |positions: std::ops::Range<usize>| {
            let span =
                Span { rows: 0..positions.len(), start: positions.start, blocks: blocks.clone(), held: 0, state: None };
            ([span], qkv[positions.start * width..positions.end * width].to_vec())
        };
        for positions in [0..len - 1, len - 1..len] {
            let (spans, qkv) = part(positions.clone());
            let on_spans = DeviceSpans::upload(device, &pool, &spans, positions.len()).unwrap();
            let call = DeviceAttention { shape: &shape, layer: 1, window: None, spans: &on_spans };
            let on_qkv = rows::<f32>(device, &qkv, width);
            kv_write(device, call, &mut pool, &on_qkv).unwrap();
            let qkv = Matrix::new(qkv, width);
            Reference.kv_write(&mut expected_pool, &shape, 1, &spans, &qkv);
            if positions.len() == 1 {
                let [out, log_sums] = tensor_attention(device, call, &pool, &on_qkv).unwrap();
                let call = AttentionCall { shape: &shape, layer: 1, window: None, spans: &spans, chosen: None };
                let [expected, expected_sums] = Reference.attention(call, &expected_pool, &qkv);
                close("log-sum-exp", &log_sums.to_host().unwrap(), expected_sums.data(), 2e-6);
                close("output", &out.to_host().unwrap(), expected.data(), 4e-3);
            }
        }
    });
}

#[test]
fn heads_are_checked() {
    on_device(|device| {
        assert!(has_tensor_attention(&shape(64, 1, 128)));
        for shape in [shape(1, 1, 12), shape(1, 1, 136), shape(65, 1, 8)] {
            assert!(!has_tensor_attention(&shape));
            let mut pool = DeviceKvPool::<bf16>::new(&shape).unwrap();
            let block = pool.take(device).unwrap();
            let spans = [Span { rows: 0..1, start: 0, blocks: vec![block], held: 0, state: None }];
            let spans = DeviceSpans::upload(device, &pool, &spans, 1).unwrap();
            let call = DeviceAttention { shape: &shape, layer: 0, window: None, spans: &spans };
            let qkv = rows::<f32>(device, &values(shape.qkv_width(), 94), shape.qkv_width());
            kv_write(device, call, &mut pool, &qkv).unwrap();
            let error = tensor_attention(device, call, &pool, &qkv).unwrap_err().to_string();
            assert!(error.starts_with("tensor_attention: the width of a head is"), "{error}");
        }
    });
}
