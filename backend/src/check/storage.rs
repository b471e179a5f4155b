//! Weights, parameters with their optimizer, rows and blocks of the KV pool.

use trainyard_protocol::AdamParams;

use super::access::{HostAccess, Numbers, Results, host};
use crate::{AdamWStep, AttentionCall, AttentionShape, KV_BLOCK, LinearCall, MatrixRole, Params as _, Source, Span};

/// Matrices packed, shared and packed anew; vectors and embeddings.
pub(super) fn weights<B: HostAccess>(b: &B, outputs: usize, k: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let params = b.upload_params(vec![n.take(outputs * k), n.take(2 * k)]);
    let parts = [Source::Param(&params, 0), Source::Part(&params, 1, (k, 2 * k))];
    let mut matrix = b.pack(&parts, k, MatrixRole::Base);
    let first = b.matrix_to_host(&matrix, &b.fence());
    let shared = b.matrix_to_host(&b.share(&matrix), &b.fence());
    let other = n.take((outputs + 1) * k);
    b.repack(vec![(&mut matrix, vec![Source::Host(&other)])]);
    let x = b.rows(&n.take(3 * k), k);
    let mut out = b.alloc(3, outputs + 1);
    b.linear(&LinearCall { weight: &matrix, bias: None, lora: &[] }, &b.lhs(&x), None, &mut out);
    let vector = b.vector(&[Source::Host(&other[..k]), Source::Param(&params, 1)], 1.0);
    let table = b.table(Source::Host(&other), k);
    vec![
        ("packed", first),
        ("shared", shared),
        ("packed anew", b.matrix_to_host(&matrix, &b.fence())),
        ("its GEMM", b.values(&out)),
        ("vector", b.vector_to_host(&vector, &b.fence())),
        ("embedding", b.table_to_host(&table, &b.fence())),
    ]
}

/// Two AdamW steps of two runs, with sums of gradients and norms.
pub(super) fn parameters<B: HostAccess>(b: &B, lens: &[usize], seed: u64) -> Results {
    let mut n = Numbers(seed);
    let mut arrays = || b.upload_params(lens.iter().map(|len| n.take(*len)).collect());
    let (mut first, mut second, mut grads, others) = (arrays(), arrays(), arrays(), arrays());
    let old = arrays();
    let mut cleared = b.begin_gradient(lens, Some(old));
    b.finish_gradient(&mut cleared);
    let joint = b.squared_norms(&grads, Some(&others));
    b.add_params(&mut grads, &others);
    grads.add(0, 1, &[0.5]);
    grads.write(1, 0, &[0.25]);
    let own = b.squared_norms(&grads, None);
    let hyper =
        AdamParams { learning_rate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, grad_clip_norm: 0.0 };
    let mut moments = [(); 4].map(|()| b.zero_params(lens));
    let mut done = Vec::new();
    for step in 1..3 {
        let [m, v, other_m, other_v] = &mut moments;
        let steps = [(&mut first, [m, v], 1.0), (&mut second, [other_m, other_v], 0.5)];
        let of = |(params, moments, grad_scale)| AdamWStep {
            params,
            grads: &grads,
            moments,
            hyper: &hyper,
            step,
            grad_scale,
        };
        done.extend(
            b.adamw(steps.into_iter().map(of).collect()).iter().map(|result| f32::from(u8::from(result.is_ok()))),
        );
    }
    let narrow = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
    vec![
        ("steps", done),
        ("zeros", host(&cleared)),
        ("norms of sums", narrow(joint)),
        ("norms", narrow(own)),
        ("sums", host(&grads)),
        ("parameters", [host(&first), host(&second)].concat()),
        ("moments", moments.iter().flat_map(host).collect()),
    ]
}

/// Rows copied, gathered and scattered.
pub(super) fn rows<B: HostAccess>(b: &B, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let x = b.rows(&n.take(5 * width), width);
    let mut to = b.zeros(6, width);
    b.scatter(&b.gather(&x, &[4, 1, 1]), &[5, 0, 2], &mut to);
    let copy = b.copy(&to);
    b.scatter(&x, &[0, 1, 2, 3, 4], &mut to);
    vec![("scattered", b.values(&to)), ("copy", b.values(&copy))]
}

/// Attention of later rows over a block that another sequence has written, and over a copy of it.
pub(super) fn blocks<B: HostAccess>(b: &B, shape: AttentionShape, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let (mut pool, width) = (b.kv_pool(&shape), shape.qkv_width());
    let [first, copy, own, other] = [(); 4].map(|()| b.kv_take(&mut pool));
    let prompt = b.rows(&n.take(KV_BLOCK * width), width);
    let next = b.rows(&n.take(4 * width), width);
    let mut results = Vec::new();
    for layer in 0..shape.layers {
        let written = [Span { rows: 0..KV_BLOCK, start: 0, blocks: vec![first], held: 0, state: None }];
        b.kv_write(&mut pool, &shape, layer, &written, &prompt);
        b.kv_copy(&mut pool, first, copy);
        let span =
            |rows, block, own| Span { rows, start: KV_BLOCK, blocks: vec![block, own], held: KV_BLOCK, state: None };
        let spans = [span(0..3, first, own), span(3..4, copy, other)];
        b.kv_write(&mut pool, &shape, layer, &spans, &next);
        let call = AttentionCall { shape: &shape, layer, window: None, spans: &spans, chosen: None };
        let [out, lse] = b.attention(call, &pool, &next);
        results.extend([("out", b.values(&out)), ("lse", b.values(&lse))]);
    }
    b.kv_release(&mut pool, own);
    let reused = b.kv_take(&mut pool);
    let before = vec![f32::from(u8::from(reused == own))];
    results.push(("reused", before));
    results
}
