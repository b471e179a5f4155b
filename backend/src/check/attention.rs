//! Checks of rotation, attention and its gates.

use super::access::{HostAccess, Numbers, Results, host, rotary_table};
use super::{POSITIONS, positions};
use crate::{AttentionCall, AttentionShape, BlockId, GateOps, KV_BLOCK, Norm, Rotation, Source, Span};

/// Rotation, attention over two sequences, and their backward passes.
pub fn attention<B: HostAccess>(
    b: &B,
    shape: AttentionShape,
    lens: [usize; 2],
    window: Option<usize>,
    seed: u64,
) -> Results {
    let mut n = Numbers(seed);
    let (rows, width) = (lens[0] + lens[1], shape.qkv_width());
    let rope = b.rope(shape.head_dim / 2, rotary_table(rows, 1e4, shape.head_dim / 2));
    let weights = [0, 1].map(|_| b.vector(&[Source::Host(&n.take(shape.head_dim))], 1.0));
    let norms = Some([0, 1].map(|i| Norm { weight: &weights[i], eps: 1e-6 }));
    let positions: Vec<u32> = lens.iter().flat_map(|len| 0..*len as u32).collect();
    let rotation =
        Rotation { shape: &shape, norms, whole_norms: false, rope: &rope, query_rope: None, positions: &positions };
    let mut qkv = b.rows(&n.take(rows * width), width);
    let before = b.rotate(&rotation, &mut qkv, true);
    let mut pool = b.kv_pool(&shape);
    let mut span = |start: usize, len: usize| Span {
        rows: start..start + len,
        start: 0,
        blocks: (0..len.div_ceil(KV_BLOCK)).map(|_| b.kv_take(&mut pool)).collect::<Vec<BlockId>>(),
        held: 0,
        state: None,
    };
    let spans = [span(0, lens[0]), span(lens[0], lens[1])];
    let layer = shape.layers - 1;
    b.kv_write(&mut pool, &shape, layer, &spans, &qkv);
    let call = AttentionCall { shape: &shape, layer, window, spans: &spans, chosen: None };
    let [out, lse] = b.attention(call, &pool, &qkv);
    let d_out = b.rows(&n.take(rows * shape.q_width()), shape.q_width());
    let d_rotated = b.attention_backward(call, &pool, &qkv, [&out, &lse], &d_out);
    let mut grads = b.zero_params(&[shape.head_dim; 2]);
    let attended = b.values(&d_rotated);
    let sequences = [0..lens[0], lens[0]..rows];
    let d_qkv = b.rotate_backward(&rotation, before.as_ref(), d_rotated, Some((&mut grads, [0, 1])), &sequences);
    vec![
        ("qkv", b.values(&qkv)),
        ("out", b.values(&out)),
        ("lse", b.values(&lse)),
        ("d rotated", attended),
        ("d qkv", b.gradient(&d_qkv)),
        ("d norms", host(&grads)),
    ]
}

/// Rotation of the first `rotated` elements of heads, of queries by another table than keys, after norms of each head or over all;
/// and the backward pass with and without gradients of the norms.
pub fn rotations<B: HostAccess>(
    b: &B,
    shape: AttentionShape,
    rotated: usize,
    whole_norms: bool,
    rows: usize,
    seed: u64,
) -> Results {
    let mut n = Numbers(seed);
    let (width, positions) = (shape.qkv_width(), positions(rows));
    let table = rotary_table(POSITIONS, 100.0, rotated / 2);
    let scaled = table.iter().map(|(cos, sin)| (1.25 * cos, 1.25 * sin)).collect();
    let [rope, query_rope] = [table, scaled].map(|table| b.rope(rotated / 2, table));
    let widths = if whole_norms { [shape.q_width(), shape.kv_width()] } else { [shape.head_dim; 2] };
    let weights = widths.map(|width| b.vector(&[Source::Host(&n.take(width))], 1.0));
    let norms = Some(weights.each_ref().map(|weight| Norm { weight, eps: 1e-6 }));
    let query_rope = Some(&query_rope);
    let rotation = Rotation { shape: &shape, norms, whole_norms, rope: &rope, query_rope, positions: &positions };
    let mut qkv = b.rows(&n.take(rows * width), width);
    let before = b.rotate(&rotation, &mut qkv, true);
    let d = n.take(rows * width);
    let mut grads = b.upload_params(widths.map(|width| n.take(width)).to_vec());
    let sequences = [0..rows / 2, rows / 2..rows];
    let dw = Some((&mut grads, [0, 1]));
    let d_qkv = b.rotate_backward(&rotation, before.as_ref(), b.rows(&d, width), dw, &sequences);
    let without = B::Family::rotate_backward_rows(b, &rotation, before.as_ref(), b.rows(&d, width), None);
    vec![
        ("qkv", b.values(&qkv)),
        ("d qkv", b.gradient(&d_qkv)),
        ("d qkv as rows", b.values(&without)),
        ("d norms", host(&grads)),
    ]
}

/// Gates of attention's output: split off a projection, joined to it, applied to heads; and the gradients.
pub fn gates<B: HostAccess>(b: &B, shape: AttentionShape, rows: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let (q, width) = (shape.q_width(), shape.qkv_width() + shape.q_width());
    let projected = b.rows(&n.take(rows * width), width);
    let [qkv, gates] = B::Family::split_gates(b, &shape, &projected);
    let joined = B::Family::join_gates(b, &shape, &qkv, &gates);
    let [heads, d_out] = [0, 1].map(|_| b.rows(&n.take(rows * q), q));
    // Gates up to those whose sigmoids are 0 and 1.
    let steep: Vec<f32> = n.take(rows * q).iter().map(|x| 120.0 * x).collect();
    let steep = b.rows(&steep, q);
    let [d_heads, d_gates] = B::Family::gate_heads_backward(b, &heads, &gates, &d_out);
    vec![
        ("q, k and v", b.values(&qkv)),
        ("gates", b.values(&gates)),
        ("joined", b.values(&joined)),
        ("gated", b.values(&B::Family::gate_heads(b, &heads, &gates))),
        ("gated steeply", b.values(&B::Family::gate_heads(b, &heads, &steep))),
        ("d heads", b.values(&d_heads)),
        ("d gates", b.values(&d_gates)),
    ]
}
