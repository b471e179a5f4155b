//! The loss head, whole and of a part of the vocabulary.

use std::ops::Range;

use super::access::{HostAccess, Numbers, Results, host};
use crate::{
    DivergenceGradient, EntropyGradient, GradientSinks, GradientSlot, HeadGradient, HeadPart, LinearCall, LogSum,
    LoraSegment, MatrixRole, ReferenceRows, ScoreRequest, Source, Targets, VocabularyOps,
};

/// Rank of adapters on the unembedding.
const RANK: usize = 3;

/// An adapter on the unembedding.
struct Adapter<B: HostAccess> {
    /// Vocabulary size and hidden size.
    extents: (usize, usize),
    a: B::Matrix,
    b: B::Matrix,
}

impl<B: HostAccess> Adapter<B> {
    fn new(backend: &B, n: &mut Numbers, vocab: usize, hidden: usize) -> Self {
        let a = backend.pack(&[Source::Host(&n.take(RANK * hidden))], hidden, MatrixRole::Adapter);
        let b = backend.pack(&[Source::Host(&n.take(vocab * RANK))], RANK, MatrixRole::Adapter);
        Self { extents: (vocab, hidden), a, b }
    }

    fn segment(&self, rows: Range<usize>) -> LoraSegment<'_, B> {
        LoraSegment {
            group: 0,
            rows,
            column: 0,
            extents: self.extents,
            rank: RANK,
            scale: 0.5,
            a: &self.a,
            b: &self.b,
            grads: GradientSlot::pair(0),
            trains: true,
        }
    }
}

/// Distributions that those of rows are compared with.
struct Other<B: HostAccess> {
    unembedding: B::Matrix,
    hidden: B::Rows,
    lse: Vec<f32>,
}

impl<B: HostAccess> Other<B> {
    /// Those of `rows` rows, over `vocab` tokens that are all there.
    fn new(b: &B, n: &mut Numbers, vocab: usize, hidden: usize, rows: usize) -> Self {
        let unembedding = b.pack(&[Source::Host(&n.take(vocab * hidden))], hidden, MatrixRole::Base);
        let hidden = b.rows(&n.take(rows * hidden), hidden);
        let call = LinearCall { weight: &unembedding, bias: None, lora: &[] };
        let targets = Targets { offsets: vec![0; rows + 1], ids: Vec::new() };
        let sums = B::Family::head_part(b, &call, &hidden, &targets, vocab, false).sums;
        let lse = targets.normalise(&sums, &mut []);
        Self { unembedding, hidden, lse }
    }

    fn rows(&self) -> ReferenceRows<'_, B> {
        ReferenceRows { unembedding: &self.unembedding, hidden: &self.hidden, lse: &self.lse }
    }
}

/// Gradients with respect to the hidden states, and to the unembedding or to its adapter.
fn gradients<B: HostAccess>(
    b: &B,
    call: &LinearCall<'_, B>,
    hidden: &B::Rows,
    gradient: &HeadGradient<'_, B>,
    state: &B::HeadState,
    vocab: usize,
    width: usize,
    full: bool,
) -> [Vec<f32>; 2] {
    let lens = if full { vec![vocab * width] } else { vec![RANK * width, vocab * RANK] };
    let mut grads = b.begin_gradient(&lens, None);
    let dx = if full {
        b.head_backward(call, hidden, gradient, state, 0, &mut GradientSinks::Full(&mut grads))
    } else {
        let mut sinks = [Some(&mut grads)];
        b.head_backward(call, hidden, gradient, state, 9, &mut GradientSinks::Adapters(&mut sinks))
    };
    b.finish_gradient(&mut grads);
    [b.values(&dx), host(&grads)]
}

/// The loss head with an adapter on some rows.
pub fn heads<B: HostAccess>(
    b: &B,
    rows: usize,
    hidden: usize,
    vocab: usize,
    keep: bool,
    full: bool,
    seed: u64,
) -> Results {
    let mut n = Numbers(seed);
    let weight = b.pack(&[Source::Host(&n.take(vocab * hidden))], hidden, MatrixRole::Base);
    let adapter = Adapter::new(b, &mut n, vocab, hidden);
    // In the forward pass the adapter is on the rows from the second one on, of which every other has a gradient.
    let lora: Vec<_> = if full { Vec::new() } else { vec![adapter.segment(1..rows)] };
    let mut targets = Targets::empty();
    (0..rows).for_each(|row| targets.push((0..row % 3).map(|t| ((row * 31 + t * 17) % vocab) as u32)));
    let x = b.rows(&n.take(rows * hidden), hidden);
    let call = LinearCall { weight: &weight, bias: None, lora: &lora };
    let (logprobs, state) = b.target_logprobs(&call, &x, &targets, keep);
    let active: Vec<usize> = (1..rows).step_by(2).filter(|row| row % 3 > 0).collect();
    let mut own = Targets::empty();
    active.iter().for_each(|row| own.push(targets.ids[targets.of(*row)].iter().copied()));
    let d_logprobs = n.take(own.ids.len());
    let lora: Vec<_> = if full { Vec::new() } else { vec![adapter.segment(0..active.len())] };
    let call = LinearCall { weight: &weight, bias: None, lora: &lora };
    let sequences = [0..active.len() / 3, active.len() / 3..active.len()];
    let gradient = HeadGradient {
        rows: &active,
        sequences: &sequences,
        targets: &own,
        d_logprobs: &d_logprobs,
        entropy: None,
        divergence: None,
    };
    let picked = b.gather(&x, &active);
    let [dx, grads] = gradients(b, &call, &picked, &gradient, &state, vocab, hidden, full);
    let entropies = B::Family::entropies(b, &call, &picked, &active, &state);
    // Every third row has no gradient of its entropy.
    let mut d_entropies = n.take(active.len());
    d_entropies.iter_mut().step_by(3).for_each(|d| *d = 0.0);
    let entropy = Some(EntropyGradient { entropies: &entropies, d_entropies: &d_entropies });
    let gradient = HeadGradient { entropy, ..gradient };
    let [entropy_dx, entropy_grads] = gradients(b, &call, &picked, &gradient, &state, vocab, hidden, full);
    let other = Other::new(b, &mut n, vocab, hidden, active.len());
    let reference = other.rows();
    let divergences = B::Family::divergences(b, &call, &picked, &active, &state, &reference);
    let mut d_divergences = n.take(active.len());
    d_divergences.iter_mut().skip(1).step_by(3).for_each(|d| *d = 0.0);
    let divergence = DivergenceGradient { reference, divergences: &divergences, d_divergences: &d_divergences };
    let gradient = HeadGradient { divergence: Some(&divergence), ..gradient };
    let [divergence_dx, divergence_grads] = gradients(b, &call, &picked, &gradient, &state, vocab, hidden, full);
    vec![
        ("logprobs", logprobs),
        ("dx", dx),
        ("weights", grads),
        ("entropies", entropies),
        ("dx with entropies", entropy_dx),
        ("weights with entropies", entropy_grads),
        ("divergences", divergences),
        ("dx with divergences", divergence_dx),
        ("weights with divergences", divergence_grads),
    ]
}

/// The loss head of a part of the vocabulary: hidden states `[rows, hidden]`, and an unembedding of `tokens` rows that are tokens
/// and `others` that are none.
pub fn head_parts<B: HostAccess>(
    b: &B,
    rows: usize,
    hidden: usize,
    tokens: usize,
    others: usize,
    full: bool,
    keep: bool,
    seed: u64,
) -> Results {
    let (mut n, vocab) = (Numbers(seed), tokens + others);
    // What is beyond the tokens has values, and no effect.
    let weight = b.pack(&[Source::Host(&n.take(vocab * hidden))], hidden, MatrixRole::Base);
    let adapter = Adapter::new(b, &mut n, vocab, hidden);
    let lora: Vec<_> = if full { Vec::new() } else { vec![adapter.segment(0..rows)] };
    let call = LinearCall { weight: &weight, bias: None, lora: &lora };
    let x = b.rows(&n.take(rows * hidden), hidden);
    let mut targets = Targets::empty();
    let id = |at: usize| if at % 3 == 2 || tokens == 0 { Targets::ELSEWHERE } else { (at * 17 % tokens) as u32 };
    (0..rows).for_each(|row| targets.push((0..2).map(|t| id(row * 5 + t))));
    let HeadPart { sums, logits, mut state } = B::Family::head_part(b, &call, &x, &targets, tokens, keep);
    let elsewhere = targets.ids.iter().zip(&logits).filter(|(id, _)| **id == Targets::ELSEWHERE);
    let elsewhere = elsewhere.map(|(_, logit)| f32::from(u8::from(logit.to_bits() == (-0f32).to_bits()))).collect();
    // Another part has as many logits of 1.
    let other = LogSum { max: 1.0, sum: tokens as f32 + 1.0 };
    let lse: Vec<f32> = sums.iter().map(|sum| LogSum::of([*sum, other].into_iter()).value()).collect();
    B::Family::set_log_sums(&mut state, lse.clone());
    let active: Vec<usize> = (0..rows).collect();
    let d_logprobs = n.take(targets.ids.len());
    let (sequences, all) = ([0..rows / 2, rows / 2..rows], &active[..]);
    let entropies = B::Family::entropies(b, &call, &x, all, &state);
    let d_entropies = n.take(rows);
    let entropy = Some(EntropyGradient { entropies: &entropies, d_entropies: &d_entropies });
    // Those of all logits of the other distributions, tokens or not: the part contributes terms of its tokens alone.
    let other = Other::new(b, &mut n, vocab, hidden, rows);
    let divergences = B::Family::divergences(b, &call, &x, all, &state, &other.rows());
    let d_divergences = n.take(rows);
    let (reference, values) = (other.rows(), &divergences);
    let divergence = DivergenceGradient { reference, divergences: values, d_divergences: &d_divergences };
    let (divergence, targets) = (Some(&divergence), &targets);
    let gradient =
        HeadGradient { rows: all, sequences: &sequences, targets, d_logprobs: &d_logprobs, entropy, divergence };
    let [dx, grads] = gradients(b, &call, &x, &gradient, &state, vocab, hidden, full);
    let width = if full { hidden } else { RANK };
    let beyond = grads[grads.len() - others * width..].to_vec();
    vec![
        ("lse", lse),
        ("elsewhere", elsewhere),
        ("logits", logits),
        ("dx", dx),
        ("beyond", beyond),
        ("weights", grads),
        ("entropies", entropies),
        ("divergences", divergences),
    ]
}

/// Scores that parts of the vocabulary contribute to rows of logits.
pub fn score_parts<B: HostAccess>(b: &B, rows: usize, width: usize, tokens: usize, seed: u64) -> Results {
    let logits = b.rows(&Numbers(seed).take(rows * width), width);
    let ids = |row: usize| vec![Targets::ELSEWHERE, (row % tokens) as u32];
    let requests: Vec<_> =
        (0..rows).map(|row| ScoreRequest { row, targets: ids(row), topk: 5, alternatives: None }).collect();
    let parts = B::Family::score_part(b, &logits, tokens, &requests);
    vec![
        ("lse", parts.iter().map(|part| part.sum.value()).collect()),
        ("targets", parts.iter().flat_map(|part| part.targets.clone()).collect()),
        ("tokens", parts.iter().flat_map(|part| part.topk.iter().map(|(id, _)| *id as f32)).collect()),
        ("candidates", parts.iter().flat_map(|part| part.topk.iter().map(|(_, logit)| *logit)).collect()),
    ]
}

/// Rows at their places among negative zeros.
pub fn spread<B: HostAccess>(b: &B, at: &[usize], rows: usize, width: usize) -> Results {
    let from = b.rows(&Numbers(3).take(at.len() * width), width);
    vec![("rows", b.values(&B::Family::spread(b, &from, at, rows)))]
}
