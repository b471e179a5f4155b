use half::bf16;

use super::simulated::on_device;
use super::support::{close, rounded, rows, values, wide};
use crate::backend::cuda::{
    CudaDevice, DeviceAttention, DeviceKvPool, DeviceSpans, has_tensor_attention, kv_write, tensor_attention,
    tensor_attention_backward,
};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionCall, AttentionShape, Backend, BlockId, KV_BLOCK, Span};

fn shape(heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 2, heads, kv_heads, head_dim, scale: 0.3 }
}

/// Spans of whole sequences of these lengths, the blocks of each in reverse order; a row before them has none.
fn spans(lens: &[usize]) -> (Vec<Span>, usize) {
    let (mut found, mut row, mut block) = (Vec::new(), 1, 0);
    for len in lens {
        let count = len.div_ceil(KV_BLOCK) as u32;
        let blocks = (block..block + count).rev().map(BlockId).collect();
        block += count;
        found.push(Span { rows: row..row + len, start: 0, blocks, held: 0 });
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
    let call = AttentionCall { shape, layer: 1, window, spans: &spans };
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
    });
}

#[test]
fn windowed_attention_and_its_gradient() {
    on_device(|device| {
        compare(device, &shape(2, 2, 16), &[40, 3], Some(1));
        compare(device, &shape(3, 1, 40), &[100], Some(7));
        compare(device, &shape(1, 1, 8), &[150], Some(33));
        compare(device, &shape(1, 1, 8), &[70], Some(usize::MAX >> 32));
    });
}

/// The output of a pass over some positions of one sequence, whose keys and values it writes first, behind another sequence.
fn pass(
    device: &CudaDevice,
    pool: &mut DeviceKvPool<bf16>,
    qkv: &[f32],
    positions: std::ops::Range<usize>,
) -> Vec<f32> {
    let (shape, blocks) = (shape(4, 2, 16), vec![BlockId(1), BlockId(0), BlockId(3)]);
    let width = shape.qkv_width();
    let span = Span { rows: 2..2 + positions.len(), start: positions.start, blocks, held: 0 };
    let other = Span { rows: 0..2, start: 0, blocks: vec![BlockId(2)], held: 0 };
    let count = positions.len() + 2;
    let spans = DeviceSpans::upload(device, pool, &[other, span], count).unwrap();
    let call = DeviceAttention { shape: &shape, layer: 0, window: Some(50), spans: &spans };
    let others = values(2 * width, positions.start as u64);
    let qkv = [&others[..], &qkv[positions.start * width..positions.end * width]].concat();
    let qkv = rows::<f32>(device, &qkv, width);
    kv_write(device, call, pool, &qkv).unwrap();
    tensor_attention(device, call, pool, &qkv).unwrap()[0].to_host().unwrap()[2 * shape.q_width()..].to_vec()
}

#[test]
fn a_sequence_may_be_cut_into_passes_and_batched_with_others() {
    on_device(|device| {
        let shape = shape(4, 2, 16);
        let qkv = values(90 * shape.qkv_width(), 93);
        let mut pool = DeviceKvPool::new(&shape).unwrap();
        (0..4).for_each(|_| {
            pool.take(device).unwrap();
        });
        let whole = pass(device, &mut pool, &qkv, 0..90);
        let parts = [0..10, 10..33, 33..34, 34..90].map(|part| pass(device, &mut pool, &qkv, part));
        assert_eq!(parts.concat(), whole);
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
            let spans = [Span { rows: 0..1, start: 0, blocks: vec![block], held: 0 }];
            let spans = DeviceSpans::upload(device, &pool, &spans, 1).unwrap();
            let call = DeviceAttention { shape: &shape, layer: 0, window: None, spans: &spans };
            let qkv = rows::<f32>(device, &values(shape.qkv_width(), 94), shape.qkv_width());
            kv_write(device, call, &mut pool, &qkv).unwrap();
            let error = tensor_attention(device, call, &pool, &qkv).unwrap_err().to_string();
            assert!(error.starts_with("tensor_attention: the width of a head is"), "{error}");
        }
    });
}
