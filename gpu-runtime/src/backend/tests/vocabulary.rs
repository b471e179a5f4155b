//! Ops of a part of the vocabulary, of which the last rows of the unembedding may be no tokens, on each class of kernels against the
//! reference backend.

use proptest::prelude::*;

use super::ops::{Numbers, Results, ToHost, close, host};
use crate::backend::cpu::{Cpu, Isa};
use crate::backend::reference::Reference;
use crate::backend::{
    Dtype, GradientSinks, GradientSlot, HeadGradient, HeadPart, LinearCall, LogSum, LoraSegment, MatrixRole,
    ScoreRequest, Source, Targets, VocabularyOps,
};

/// Extents of a head: rows, width of the hidden states, tokens of a part, and rows of the unembedding that are none.
type Extents = (usize, usize, usize, usize);

fn heads<B: ToHost>(b: &B, extents: Extents, (full, keep): (bool, bool), seed: u64) -> Results {
    let (rows, hidden, tokens, others) = extents;
    let (mut n, vocab, rank) = (Numbers(seed), tokens + others, 3);
    // What is beyond the tokens has values, and no effect.
    let weight = b.pack(&[Source::Host(&n.take(vocab * hidden))], hidden, MatrixRole::Base);
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
    let lora: Vec<_> = if full { Vec::new() } else { vec![segment(0..rows)] };
    let call = LinearCall { weight: &weight, bias: None, lora: &lora };
    let x = b.rows(&n.take(rows * hidden), hidden);
    let mut targets = Targets::empty();
    let id = |at: usize| if at % 3 == 2 || tokens == 0 { Targets::ELSEWHERE } else { (at * 17 % tokens) as u32 };
    (0..rows).for_each(|row| targets.push((0..2).map(|t| id(row * 5 + t))));
    let HeadPart { sums, logits, mut state } = B::Family::head_part(b, &call, &x, &targets, tokens, keep);
    let elsewhere = targets.ids.iter().zip(&logits).filter(|(id, _)| **id == Targets::ELSEWHERE);
    assert!(elsewhere.clone().count() > 0 && elsewhere.clone().all(|(_, logit)| logit.to_bits() == (-0f32).to_bits()));
    // Another part has as many logits of 1.
    let other = LogSum { max: 1.0, sum: tokens as f32 + 1.0 };
    let lse: Vec<f32> = sums.iter().map(|sum| LogSum::of([*sum, other].into_iter()).value()).collect();
    B::Family::set_log_sums(&mut state, lse.clone());
    let active: Vec<usize> = (0..rows).collect();
    let d_logprobs = n.take(targets.ids.len());
    let (sequences, all) = ([0..rows / 2, rows / 2..rows], &active[..]);
    let gradient = HeadGradient { rows: all, sequences: &sequences, targets: &targets, d_logprobs: &d_logprobs };
    let lens = if full { vec![vocab * hidden] } else { vec![rank * hidden, vocab * rank] };
    let mut grads = b.zero_params(&lens);
    let dx = if full {
        b.head_backward(&call, &x, &gradient, &state, 0, &mut GradientSinks::Full(&mut grads))
    } else {
        let mut sinks = [Some(&mut grads)];
        b.head_backward(&call, &x, &gradient, &state, 9, &mut GradientSinks::Adapters(&mut sinks))
    };
    let grads = host(&grads);
    let width = if full { hidden } else { rank };
    assert!(grads[grads.len() - others * width..].iter().all(|value| *value == 0.0), "rows that are no tokens");
    vec![("lse", lse), ("logits", logits), ("dx", b.values(&dx)), ("weights", grads)]
}

fn scores<B: ToHost>(b: &B, (rows, width, tokens): (usize, usize, usize), seed: u64) -> Results {
    let logits = b.rows(&Numbers(seed).take(rows * width), width);
    let ids = |row: usize| vec![Targets::ELSEWHERE, (row % tokens) as u32];
    let requests: Vec<_> =
        (0..rows).map(|row| ScoreRequest { row, targets: ids(row), topk: 5, alternatives: None }).collect();
    let parts = B::Family::score_part(b, &logits, tokens, &requests);
    assert!(parts.iter().all(|part| part.topk.len() == tokens.min(5) && part.targets[0].to_bits() == 1 << 31));
    vec![
        ("lse", parts.iter().map(|part| part.sum.value()).collect()),
        ("targets", parts.iter().flat_map(|part| part.targets.clone()).collect()),
        ("tokens", parts.iter().flat_map(|part| part.topk.iter().map(|(id, _)| *id as f32)).collect()),
        ("candidates", parts.iter().flat_map(|part| part.topk.iter().map(|(_, logit)| *logit)).collect()),
    ]
}

fn spread<B: ToHost>(b: &B, at: &[usize], rows: usize, width: usize) -> Vec<u32> {
    let from = b.rows(&Numbers(3).take(at.len() * width), width);
    b.values(&B::Family::spread(b, &from, at, rows)).into_iter().map(f32::to_bits).collect()
}

#[test]
fn rows_that_are_elsewhere_are_negative_zeros() {
    for isa in Isa::available() {
        let cpu = Cpu::with_isa(2, isa);
        for at in [&[4, 0, 2][..], &[1], &[]] {
            let (found, expected) = (spread(&cpu, at, 6, 7), spread(&Reference, at, 6, 7));
            assert_eq!(found, expected);
            assert_eq!(found.iter().filter(|bits| **bits == 1 << 31).count(), (6 - at.len()) * 7);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn heads_of_parts_agree(
        rows in 4usize..12,
        tokens in prop_oneof![Just(0usize), 1usize..40, Just(511usize), Just(530usize)],
        others in 0usize..40,
        full: bool,
        keep: bool,
        seed in 0u64..1 << 40,
    ) {
        let extents = (rows, 20, tokens, if tokens == 0 { others.max(1) } else { others });
        let expected = heads(&Reference, extents, (full, keep), seed);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            close(isa.name(), &heads(&cpu, extents, (full, keep), seed), &expected, 2e-5);
        }
    }

    #[test]
    fn scores_of_parts_agree(rows in 1usize..9, tokens in 1usize..700, others in 0usize..9, seed in 0u64..1 << 40) {
        let extents = (rows, tokens + others, tokens);
        let expected = scores(&Reference, extents, seed);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            close(isa.name(), &scores(&cpu, extents, seed), &expected, 2e-5);
        }
    }
}
