//! Each op of the CPU backend against the reference backend, on inputs of odd extents, for every kernel class.

use proptest::prelude::*;

use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{
    Activation, AttentionCall, AttentionShape, Backend, BlockId, Dtype, EmbeddingGradient, GradientSinks, GradientSlot,
    HeadGradient, Held, KV_BLOCK, LinearCall, LoraSegment, MatrixRole, Norm, Params, Rotation, Rows, Source, Span,
    Targets, WeightPart,
};
use crate::model::rope_table;
use crate::rng::kaiming_uniform_fill;

/// A number generator; each call returns an independent stream.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn take(&mut self, len: usize) -> Vec<f32> {
        self.0 += 1;
        let mut out = vec![0.0; len];
        kaiming_uniform_fill(self.0, 7, &mut out, 1.0);
        out
    }
}

/// Rows from and to the host, for tests.
pub(super) trait ToHost: Backend {
    fn rows(&self, rows: &[f32], width: usize) -> Self::Rows;
    fn values(&self, rows: &Self::Rows) -> Vec<f32>;
    fn gradient(&self, dy: &Self::OutputGradient<'_>) -> Vec<f32>;
    fn input(&self, x: &Self::WeightInput<'_>) -> Vec<f32>;
}

impl ToHost for Cpu {
    fn rows(&self, rows: &[f32], width: usize) -> Self::Rows {
        let mut out = self.alloc(rows.len() / width, width);
        out.copy_from_slice(rows);
        out
    }

    fn values(&self, rows: &Self::Rows) -> Vec<f32> {
        rows.to_vec()
    }

    fn gradient(&self, dy: &Self::OutputGradient<'_>) -> Vec<f32> {
        dy.to_rows()
    }

    fn input(&self, x: &Self::WeightInput<'_>) -> Vec<f32> {
        x.to_rows()
    }
}

impl ToHost for Reference {
    fn rows(&self, rows: &[f32], width: usize) -> Matrix {
        Matrix::new(rows.to_vec(), width)
    }

    fn values(&self, rows: &Matrix) -> Vec<f32> {
        rows.data().to_vec()
    }

    fn gradient(&self, dy: &Held<'_, Matrix>) -> Vec<f32> {
        dy.data().to_vec()
    }

    fn input(&self, x: &Held<'_, Matrix>) -> Vec<f32> {
        x.data().to_vec()
    }
}

/// Results of an op by name.
pub(super) type Results = Vec<(&'static str, Vec<f32>)>;

pub(super) fn close(class: &str, found: &Results, expected: &Results, tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len(), "{class}, {name}");
        let most = expected.iter().fold(1f32, |m, x| m.max(x.abs()));
        for (i, (a, e)) in found.iter().zip(expected).enumerate() {
            assert!((a - e).abs() <= tolerance * most, "{class}, {name}: element {i} is {a}, not {e}");
        }
    }
}

/// Runs an op on the reference and on the CPU in f32, for every kernel class.
macro_rules! compare {
    ($op:ident, $($arg:expr),*) => {
        let expected = $op(&Reference, $($arg),*);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            close(isa.name(), &$op(&cpu, $($arg),*), &expected, 2e-5);
        }
    };
}

pub(super) fn host(params: &impl Params) -> Vec<f32> {
    (0..params.len()).flat_map(|i| params.host(i).into_owned()).collect()
}

fn norms<B: ToHost>(b: &B, rows: usize, width: usize, seed: u64) -> Results {
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

fn activations<B: ToHost>(b: &B, kind: Activation, rows: usize, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let scaled = |x: Vec<f32>| x.iter().map(|x| 9.0 * x).collect::<Vec<_>>();
    let gate_up = b.rows(&scaled(n.take(rows * 2 * width)), 2 * width);
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
fn linears<B: ToHost>(b: &B, rows: usize, k: usize, outputs: [usize; 2], rank: usize, seed: u64) -> Results {
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
    let (mut first, mut second) = (b.zero_params(&lens(&outputs)), b.zero_params(&lens(&outputs[..1])));
    let x = b.weight_input(Held::Borrowed(&x), &sequences);
    b.lora_gradients(&lora, &sequences, &x, &dy, [&z, &dz], &mut [Some(&mut first), Some(&mut second)]);
    let mut full = b.zero_params(&[outputs[0] * k, outputs[1] * k, outputs[0], outputs[1]]);
    let part = |i: usize| WeightPart { weight: i, bias: Some(2 + i), column: i * outputs[0], outputs: outputs[i] };
    b.weight_gradients(&[part(0), part(1)], &sequences, &x, &dy, &mut full);
    vec![
        ("out", b.values(&out)),
        ("dx", b.values(&dx)),
        ("first adapter", host(&first)),
        ("second adapter", host(&second)),
        ("weights", host(&full)),
    ]
}

/// Rotation, attention over two sequences, and their backward passes.
fn attention<B: ToHost>(b: &B, shape: AttentionShape, lens: [usize; 2], window: Option<usize>, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let (rows, width) = (lens[0] + lens[1], shape.qkv_width());
    let config = crate::config::RopeConfig { theta: 1e4, scaling: crate::config::RopeScaling::None };
    let rope = b.rope(shape.head_dim / 2, rope_table(&config, shape.head_dim, 200));
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

/// The loss head with an adapter on some rows.
fn heads<B: ToHost>(b: &B, rows: usize, hidden: usize, vocab: usize, keep: bool, full: bool, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let weight = b.pack(&[Source::Host(&n.take(vocab * hidden))], hidden, MatrixRole::Base);
    let rank = 3;
    let a = b.pack(&[Source::Host(&n.take(rank * hidden))], hidden, MatrixRole::Adapter);
    let low = b.pack(&[Source::Host(&n.take(vocab * rank))], rank, MatrixRole::Adapter);
    let segment = |rows| LoraSegment {
        group: 0,
        rows,
        column: 0,
        extents: (vocab, hidden),
        rank,
        scale: 0.5,
        a: &a,
        b: &low,
        grads: GradientSlot::pair(0),
        trains: true,
    };
    // In the forward pass the adapter is on the rows from the second one on, of which every other has a gradient.
    let lora: Vec<_> = if full { Vec::new() } else { vec![segment(1..rows)] };
    let mut targets = Targets::empty();
    (0..rows).for_each(|row| targets.push((0..row % 3).map(|t| ((row * 31 + t * 17) % vocab) as u32)));
    let x = b.rows(&n.take(rows * hidden), hidden);
    let call = LinearCall { weight: &weight, bias: None, lora: &lora };
    let (logprobs, state) = b.target_logprobs(&call, &x, &targets, keep);
    let active: Vec<usize> = (1..rows).step_by(2).filter(|row| row % 3 > 0).collect();
    let mut own = Targets::empty();
    active.iter().for_each(|row| own.push(targets.ids[targets.of(*row)].iter().copied()));
    let d_logprobs = n.take(own.ids.len());
    let lora: Vec<_> = if full { Vec::new() } else { vec![segment(0..active.len())] };
    let call = LinearCall { weight: &weight, bias: None, lora: &lora };
    let sequences = [0..active.len() / 3, active.len() / 3..active.len()];
    let gradient = HeadGradient { rows: &active, sequences: &sequences, targets: &own, d_logprobs: &d_logprobs };
    let picked = b.gather(&x, &active);
    let lens = if full { vec![vocab * hidden] } else { vec![rank * hidden, vocab * rank] };
    let mut grads = b.zero_params(&lens);
    let dx = if full {
        b.head_backward(&call, &picked, &gradient, &state, 0, &mut GradientSinks::Full(&mut grads))
    } else {
        let mut sinks = [Some(&mut grads)];
        b.head_backward(&call, &picked, &gradient, &state, 9, &mut GradientSinks::Adapters(&mut sinks))
    };
    vec![("logprobs", logprobs), ("dx", b.values(&dx)), ("weights", host(&grads))]
}

fn embeddings<B: ToHost>(b: &B, width: usize, seed: u64) -> Results {
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
    assert_eq!((rows[0].rows(), rows[0].width()), (tokens.len(), width));
    let [table, tied] = rows.map(|rows| b.values(&rows));
    vec![("table", table), ("tied", tied), ("gradient", host(&grads))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn norms_agree(rows in 1usize..20, width in 1usize..90, seed in 0u64..1 << 40) {
        compare!(norms, rows, width, seed);
    }

    #[test]
    fn activations_agree(rows in 1usize..12, width in 1usize..70, seed in 0u64..1 << 40) {
        compare!(activations, Activation::Silu, rows, width, seed);
        compare!(activations, Activation::GeluTanh, rows, width, seed);
        compare!(activations, Activation::ClampedSwish, rows, width, seed);
    }

    #[test]
    fn linear_layers_agree(
        rows in 2usize..40, k in 1usize..80, first in 1usize..70, second in 1usize..40, rank in 1usize..9,
        seed in 0u64..1 << 40,
    ) {
        compare!(linears, rows, k, [first, second], rank, seed);
    }

    #[test]
    fn attention_agrees(
        kv_heads in 1usize..3, group in 1usize..4, half in 1usize..12, first in 1usize..80, second in 1usize..40,
        window in prop::option::of(1usize..50), seed in 0u64..1 << 40,
    ) {
        let (heads, head_dim) = (kv_heads * group, 2 * half);
        let shape = AttentionShape { layers: 2, heads, kv_heads, head_dim, scale: 0.7 };
        compare!(attention, shape, [first, second], window, seed);
    }

    #[test]
    fn loss_heads_agree(
        rows in 2usize..40, hidden in 1usize..40, vocab in 2usize..1200, keep: bool, full: bool,
        seed in 0u64..1 << 40,
    ) {
        compare!(heads, rows, hidden, vocab, keep, full, seed);
    }

    #[test]
    fn embeddings_agree(width in 1usize..50, seed in 0u64..1 << 40) {
        compare!(embeddings, width, seed);
    }
}
