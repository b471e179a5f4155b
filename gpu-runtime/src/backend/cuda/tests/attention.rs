use std::ops::Range;

use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::attention::{
    DeviceAttention, DeviceKvPool, DeviceSpans, attention, attention_backward, kv_write,
};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionCall, AttentionShape, Backend, BlockId, IndexKeys, KV_BLOCK, Span, Tensors};

fn shape(heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 2, heads, kv_heads, head_dim, scale: 0.7, index: IndexKeys::NONE }
}

/// Spans of whole sequences of these lengths, with blocks in order; a row before them has none.
fn spans(lens: &[usize]) -> (Vec<Span>, usize) {
    let (mut found, mut row, mut block) = (Vec::new(), 1, 0);
    for len in lens {
        let blocks = (0..len.div_ceil(KV_BLOCK)).map(|i| BlockId(block + i as u32)).collect::<Vec<_>>();
        block += blocks.len() as u32;
        found.push(Span { rows: row..row + len, start: 0, blocks, held: 0, state: None });
        row += len;
    }
    (found, row)
}

fn pools(device: &CudaDevice, shape: &AttentionShape, blocks: usize) -> (DeviceKvPool, <Reference as Tensors>::KvPool) {
    let (mut pool, mut expected) = (DeviceKvPool::new(shape).unwrap(), Reference.kv_pool(shape));
    for _ in 0..blocks {
        assert_eq!(pool.take(device).unwrap(), Reference.kv_take(&mut expected));
    }
    (pool, expected)
}

/// The output, the log-sum-exp, and the gradient, on the device and on the reference.
fn compare(device: &CudaDevice, shape: &AttentionShape, lens: &[usize], window: Option<usize>) {
    let (spans, count) = spans(lens);
    let blocks = spans.iter().map(|span| span.blocks.len()).sum();
    let [qkv, d_out] =
        [(shape.qkv_width(), 91), (shape.q_width(), 92)].map(|(width, seed)| values(count * width, seed));
    let (mut pool, mut expected_pool) = pools(device, shape, blocks);

    let on_spans = DeviceSpans::upload(device, &pool, &spans, count).unwrap();
    let call = DeviceAttention { shape, layer: 1, window, spans: &on_spans };
    let on_qkv = rows::<f32>(device, &qkv, shape.qkv_width());
    let on_d_out = rows::<f32>(device, &d_out, shape.q_width());
    kv_write(device, call, &mut pool, &on_qkv).unwrap();
    let [out, log_sums] = attention(device, call, &pool, &on_qkv).unwrap();
    let gradient = attention_backward(device, call, &pool, &on_qkv, [&out, &log_sums], &on_d_out).unwrap();

    let (qkv, d_out) = (Matrix::new(qkv, shape.qkv_width()), Matrix::new(d_out, shape.q_width()));
    let call = AttentionCall { shape, layer: 1, window, spans: &spans, chosen: None };
    Reference.kv_write(&mut expected_pool, shape, 1, &spans, &qkv);
    let [expected, expected_sums] = Reference.attention(call, &expected_pool, &qkv);
    let forward = [&expected, &expected_sums];
    let expected_gradient = Reference.attention_backward(call, &expected_pool, &qkv, forward, &d_out);

    // The first row is of no sequence: zeros.
    close("output", &out.to_host().unwrap(), expected.data(), 2e-6);
    close("log-sum-exp", &log_sums.to_host().unwrap(), expected_sums.data(), 2e-6);
    close("gradient", &gradient.to_host().unwrap(), expected_gradient.data(), 1e-5);
}

#[test]
fn attention_and_its_gradient() {
    on_device(|device| {
        compare(device, &shape(1, 1, 2), &[1], None);
        compare(device, &shape(4, 2, 6), &[3, 1, 35], None);
        compare(device, &shape(2, 1, 160), &[5, 2], None);
    });
}

#[test]
fn windowed_attention_and_its_gradient() {
    on_device(|device| {
        compare(device, &shape(2, 2, 6), &[40, 3], Some(1));
        compare(device, &shape(3, 1, 34), &[38], Some(7));
        compare(device, &shape(2, 1, 4), &[70], Some(33));
    });
}

/// The output of a pass over some positions of one sequence, whose keys and values it writes first.
fn pass(device: &CudaDevice, pool: &mut DeviceKvPool, qkv: &[f32], positions: Range<usize>) -> Vec<f32> {
    let (shape, blocks) = (shape(2, 1, 6), vec![BlockId(1), BlockId(0)]);
    let width = shape.qkv_width();
    let span = Span { rows: 0..positions.len(), start: positions.start, blocks, held: 0, state: None };
    let spans = DeviceSpans::upload(device, pool, &[span], positions.len()).unwrap();
    let call = DeviceAttention { shape: &shape, layer: 0, window: None, spans: &spans };
    let qkv = rows::<f32>(device, &qkv[positions.start * width..positions.end * width], width);
    kv_write(device, call, pool, &qkv).unwrap();
    attention(device, call, pool, &qkv).unwrap()[0].to_host().unwrap()
}

#[test]
fn a_sequence_may_be_cut_into_passes() {
    on_device(|device| {
        let shape = shape(2, 1, 6);
        let qkv = values(40 * shape.qkv_width(), 93);
        let (mut pool, _) = pools(device, &shape, 2);
        let whole = pass(device, &mut pool, &qkv, 0..40);
        let (mut pool, _) = pools(device, &shape, 2);
        let parts = [0..10, 10..33, 33..34, 34..40].map(|part| pass(device, &mut pool, &qkv, part));
        assert_eq!(parts.concat(), whole);
    });
}

#[test]
fn held_positions_are_not_written_and_blocks_are_copied() {
    on_device(|device| {
        let shape = shape(2, 1, 6);
        let qkv = values(4 * shape.qkv_width(), 94);
        let (mut pool, _) = pools(device, &shape, 3);
        let first = pass(device, &mut pool, &qkv, 0..4);
        pool.copy(BlockId(1), BlockId(2)).unwrap();
        // Another sequence's q, k and v, of which only the last row is written.
        let other = [&values(3 * shape.qkv_width(), 95), &qkv[3 * shape.qkv_width()..]].concat();
        let span = Span { rows: 0..4, start: 0, blocks: vec![BlockId(2)], held: 3, state: None };
        let spans = DeviceSpans::upload(device, &pool, &[span], 4).unwrap();
        let call = DeviceAttention { shape: &shape, layer: 0, window: None, spans: &spans };
        let other = rows::<f32>(device, &other, shape.qkv_width());
        kv_write(device, call, &mut pool, &other).unwrap();
        let found = attention(device, call, &pool, &other).unwrap()[0].to_host().unwrap();
        assert_eq!(found[3 * shape.q_width()..], first[3 * shape.q_width()..]);
    });
}

#[test]
fn sequences_and_blocks_are_checked() {
    on_device(|device| {
        let shape = shape(2, 1, 4);
        let (mut pool, _) = pools(device, &shape, 2);
        pool.release(BlockId(0));
        let span = |rows: Range<usize>, start: usize, block| Span {
            rows,
            start,
            blocks: vec![BlockId(block)],
            held: 0,
            state: None,
        };
        let upload = |pool: &DeviceKvPool, spans: &[Span]| DeviceSpans::upload(device, pool, spans, 4);
        assert!(upload(&pool, &[span(0..1, 0, 0)]).is_err(), "the block is free");
        assert!(upload(&pool, &[span(0..1, 32, 1)]).is_err(), "the sequence has one block");
        assert!(upload(&pool, &[span(0..5, 0, 1)]).is_err(), "there are four rows");
        assert!(upload(&pool, &[span(0..2, 0, 1), span(1..3, 2, 1)]).is_err(), "both have row 1");
        assert!(upload(&pool, &[span(0..2, 0, 1), span(2..3, 0, 1)]).is_err(), "both write position 0");
        assert_eq!(pool.take(device).unwrap(), BlockId(0));
        let spans = upload(&pool, &[span(0..4, 3, 1)]).unwrap();
        let call = DeviceAttention { shape: &shape, layer: 0, window: None, spans: &spans };
        let qkv = rows::<f32>(device, &values(4 * 16, 96), 16);
        assert!(attention(device, DeviceAttention { layer: 2, ..call }, &pool, &qkv).is_err());
        assert!(attention(device, DeviceAttention { window: Some(0), ..call }, &pool, &qkv).is_err());
        kv_write(device, call, &mut pool, &qkv).unwrap();
        // Positions 0 to 2 are zeros: a block is made of them.
        let forward = attention(device, call, &pool, &qkv).unwrap();
        let d = rows::<f32>(device, &values(4 * 8, 97), 8);
        let refused = attention_backward(device, call, &pool, &qkv, forward.each_ref(), &d);
        assert!(refused.is_err(), "the sequence begins at position 3");
    });
}
