//! Ops of decoder blocks: norms, activations, linear layers with adapters, embeddings.

use super::access::{HostAccess, Numbers, Results, host};
use crate::{
    Activation, EmbeddingGradient, GradientSlot, Held, LinearCall, LoraSegment, MatrixRole, Norm, Source, WeightPart,
};

/// RMSNorm of rows, onto a residual, and its gradient.
pub fn norms<B: HostAccess>(b: &B, rows: usize, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let weight = b.vector(&[Source::Host(&n.take(width))], 1.0);
    let norm = Norm { weight: &weight, eps: 1e-5 };
    let (x, dy) = (b.rows(&n.take(rows * width), width), b.rows(&n.take(rows * width), width));
    let mut dx = b.rows(&n.take(rows * width), width);
    let mut sum = b.rows(&n.take(rows * width), width);
    let mut grads = b.upload_params(vec![n.take(width)]);
    let y = b.norm(norm, &x);
    b.add_norm(norm, &x, &mut sum);
    b.norm_backward(norm, &x, &dy, &mut dx, Some((&mut grads, 0)));
    vec![("y", b.values(&y)), ("x + y", b.values(&sum)), ("dx", b.values(&dx)), ("dw", host(&grads))]
}

/// A gated activation and its gradient, read through an identity of a linear layer.
pub fn activations<B: HostAccess>(b: &B, kind: Activation, rows: usize, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let scaled = |x: Vec<f32>| x.iter().map(|x| 9.0 * x).collect::<Vec<_>>();
    let columns = if kind.is_gated() { 2 * width } else { width };
    let gate_up = b.rows(&scaled(n.take(rows * columns)), columns);
    let identity: Vec<f32> = (0..width * width).map(|i| f32::from(u8::from(i / width == i % width))).collect();
    let eye = b.pack(&[Source::Host(&identity)], width, MatrixRole::Base);
    let call = LinearCall { weight: &eye, bias: None, lora: &[] };
    let mut out = b.alloc(rows, width);
    b.linear(&call, &b.activate(kind, &gate_up), None, &mut out);
    let d = b.rows(&n.take(rows * width), width);
    let sequences = [0..rows / 2, rows / 2..rows];
    let (d_gate_up, act) = b.activate_backward(kind, gate_up, d, &sequences, true);
    vec![("out", b.values(&out)), ("d gate, up", b.gradient(&d_gate_up)), ("recomputed", b.input(&act))]
}

/// A linear layer of two parts with biases, and two groups of rows with adapters on the parts.
pub fn linears<B: HostAccess>(b: &B, rows: usize, k: usize, outputs: [usize; 2], rank: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let total = outputs[0] + outputs[1];
    let parts = outputs.map(|outputs| n.take(outputs * k));
    let weight = b.pack(&[Source::Host(&parts[0]), Source::Host(&parts[1])], k, MatrixRole::Base);
    let bias = b.vector(&[Source::Host(&n.take(total))], 0.0);
    let mut pair = |outputs: usize| {
        let (a, low) = (n.take(rank * k), n.take(outputs * rank));
        let pack = |values: &[f32], k| b.pack(&[Source::Host(values)], k, MatrixRole::Adapter);
        (pack(&a, k), pack(&low, rank))
    };
    let pairs = [pair(outputs[0]), pair(outputs[1]), pair(outputs[0])];
    let split = rows / 2;
    let segment = |pair: usize, group: usize, part: usize, param: usize| LoraSegment {
        group,
        rows: if group == 0 { 0..split } else { split..rows },
        column: if part == 0 { 0 } else { outputs[0] },
        extents: (outputs[part], k),
        rank,
        scale: 1.5,
        a: &pairs[pair].0,
        b: &pairs[pair].1,
        grads: GradientSlot::pair(param),
        trains: true,
    };
    let lora = [segment(0, 0, 0, 0), segment(2, 1, 0, 0), segment(1, 0, 1, 2)];
    let call = LinearCall { weight: &weight, bias: Some(&bias), lora: &lora };
    let x = b.rows(&n.take(rows * k), k);
    let (residual, mut out) = (b.rows(&n.take(rows * total), total), b.alloc(rows, total));
    let z = b.linear(&call, &b.lhs(&x), Some(&residual), &mut out);
    let sequences = [0..split, split..rows];
    let dy = b.output_gradient(Held::Owned(b.rows(&n.take(rows * total), total)), &sequences);
    let mut dx = b.alloc(rows, k);
    let dz = b.linear_backward(&call, &dy, &mut dx);
    let lens = |outputs: &[usize]| outputs.iter().flat_map(|n| [rank * k, n * rank]).collect::<Vec<_>>();
    let [mut first, mut second] = [&outputs[..], &outputs[..1]].map(|outputs| b.begin_gradient(&lens(outputs), None));
    let x = b.weight_input(Held::Borrowed(&x), &sequences);
    b.lora_gradients(&lora, &sequences, &x, &dy, [&z, &dz], &mut [Some(&mut first), Some(&mut second)]);
    let mut full = b.begin_gradient(&[outputs[0] * k, outputs[1] * k, outputs[0], outputs[1]], None);
    let part = |i: usize| WeightPart { weight: i, bias: Some(2 + i), column: i * outputs[0], outputs: outputs[i] };
    b.weight_gradients(&[part(0), part(1)], &sequences, &x, &dy, &mut full);
    [&mut first, &mut second, &mut full].into_iter().for_each(|gradient| b.finish_gradient(gradient));
    vec![
        ("out", b.values(&out)),
        ("dx", b.values(&dx)),
        ("first adapter", host(&first)),
        ("second adapter", host(&second)),
        ("weights", host(&full)),
    ]
}

/// Lookups in an embedding and in the unembedding, and their gradients.
pub fn embeddings<B: HostAccess>(b: &B, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let (vocab, tokens) = (11, [3u32, 10, 3, 0]);
    let values = n.take(vocab * width);
    let table = b.table(Source::Host(&values), width);
    let head = b.pack(&[Source::Host(&values)], width, MatrixRole::Base);
    let dx = b.rows(&n.take(tokens.len() * width), width);
    let (mut grads, mut sums) = (b.upload_params(vec![n.take(vocab * width); 2]), B::EmbeddingSums::default());
    b.embed_backward(&tokens, &dx, 2.5, EmbeddingGradient::Param(&mut grads, 0));
    b.embed_backward(&tokens, &dx, 2.5, EmbeddingGradient::Sums(&mut sums));
    b.add_embedding_sums(sums, &mut grads, 1);
    let rows = [b.embed_table(&table, width, &tokens, 2.5), b.embed_tied(&head, &tokens, 1.0)];
    let [table, tied] = rows.map(|rows| b.values(&rows));
    vec![("table", table), ("tied", tied), ("gradient", host(&grads))]
}
