//! Checks of rotation and attention.

use super::{HostAccess, Numbers, Results, host, rotary_table};
use crate::backend::{AttentionCall, AttentionShape, BlockId, KV_BLOCK, Norm, Rotation, Source, Span};

/// Rotation, attention over two sequences, and their backward passes.
pub(crate) fn attention<B: HostAccess>(
    b: &B,
    shape: AttentionShape,
    lens: [usize; 2],
    window: Option<usize>,
    seed: u64,
) -> Results {
    let mut n = Numbers(seed);
    let (rows, width) = (lens[0] + lens[1], shape.qkv_width());
    let rope = b.rope(shape.head_dim / 2, rotary_table(1e4, shape.head_dim / 2));
    let weights = [0, 1].map(|_| b.vector(&[Source::Host(&n.take(shape.head_dim))], 1.0));
    let norms = Some([0, 1].map(|i| Norm { weight: &weights[i], eps: 1e-6 }));
    let positions: Vec<u32> = lens.iter().flat_map(|len| 0..*len as u32).collect();
    let rotation = Rotation { shape: &shape, norms, rope: &rope, positions: &positions };
    let mut qkv = b.rows(&n.take(rows * width), width);
    let before = b.rotate(&rotation, &mut qkv, true);
    let mut pool = b.kv_pool(&shape);
    let mut span = |start: usize, len: usize| Span {
        rows: start..start + len,
        start: 0,
        blocks: (0..len.div_ceil(KV_BLOCK)).map(|_| b.kv_take(&mut pool)).collect::<Vec<BlockId>>(),
        held: 0,
    };
    let spans = [span(0, lens[0]), span(lens[0], lens[1])];
    let layer = shape.layers - 1;
    b.kv_write(&mut pool, &shape, layer, &spans, &qkv);
    let call = AttentionCall { shape: &shape, layer, window, spans: &spans };
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
