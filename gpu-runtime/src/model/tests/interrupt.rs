//! Passes that end between blocks, because nobody needs their result.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trainyard_protocol::{Category, Datum, Tensor};

use crate::backend::cpu::{Cpu, Isa};
use crate::backend::{Backend as _, Dtype, Params as _};
use crate::collective::Ranks;
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::{FailedDatum, GradientSum, Model, Saved, TrainGroup, TrainOutput, Weights, train_pass};
use crate::parallel::Parallel;

type Outcomes = Vec<Result<Vec<TrainOutput>, FailedDatum>>;

fn loss() -> LossFn {
    LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap()
}

fn datum(seed: i64) -> PreparedDatum {
    let tokens: Vec<i64> = (0..30).map(|t| (t * 37 + seed * 11) % 512).collect();
    let inputs =
        [("target_tokens".to_owned(), Tensor::i64(tokens.clone())), ("weights".to_owned(), Tensor::f32(vec![1.0; 30]))];
    prepare(&loss(), 0, &Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs), images: Vec::new() }, 512).unwrap()
}

/// An interrupt that is set from the question of this index on, but for the one after it, and how often it was asked.
fn interrupt_at(index: usize) -> (Interrupt, Arc<AtomicUsize>) {
    let questions = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&questions);
    let is_set = move || {
        let question = asked.fetch_add(1, Ordering::Relaxed);
        question >= index && question != index + 1
    };
    (Interrupt::new(is_set), questions)
}

/// One of two blocks saves its activations.
const SAVED: Saved = Saved::with_all_inputs(1);

/// A pass over all parameters of a tiny model, whose groups have a datum each; the gradient is that of the last group.
fn pass(interrupts: &[Interrupt], full: bool, saved: Saved) -> (Outcomes, Vec<f32>) {
    let source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama")).unwrap();
    let backend = Cpu::with_isa(1, Isa::Portable).with_dtype(Dtype::F32);
    let model = Arc::new(Model::new(&backend, &source.config, Ranks::default(), Parallel::default()).unwrap());
    let read = |index: usize| source.tensors.read(&model.table.specs[index].name).map(Cow::Owned);
    let weights = Weights::load(&backend, &model, &mut |index| read(index)).unwrap();
    let lens: Vec<usize> = model.table.specs.iter().map(|spec| spec.len()).collect();
    let mut sum = GradientSum::new(backend.begin_gradient(&lens, None));
    let data: Vec<PreparedDatum> = (0..).zip(interrupts).map(|(seed, _)| datum(seed)).collect();
    let mut groups: Vec<_> = (data.iter().zip(interrupts))
        .map(|(datum, interrupt)| TrainGroup {
            adapter: None,
            scalar_head: None,
            loss: loss(),
            data: vec![datum],
            images: Vec::new(),
            evaluated: Vec::new(),
            interrupt: interrupt.clone(),
            grads: None,
        })
        .collect();
    if full {
        groups.last_mut().unwrap().grads = Some(&mut sum);
    }
    let outcomes = train_pass(&backend, &weights, &mut groups, full, saved);
    drop(groups);
    let gradient = sum.finish(&backend, &model, None::<&trainyard_protocol::LoraSpec>);
    (outcomes, (0..gradient.len()).flat_map(|index| gradient.host(index).into_owned()).collect())
}

#[test]
fn a_pass_that_nobody_waits_for_ends_before_its_next_block() {
    // One question for each of two blocks there and back, and one after each half; and one before a block that is repeated.
    for (saved, count) in [(SAVED, 6), (Saved { blocks: 0, inputs: 1 }, 7)] {
        let (never, asked) = interrupt_at(usize::MAX - 1);
        let (whole, gradient) = pass(&[never], true, saved);
        assert!(whole[0].is_ok() && gradient.iter().any(|value| *value != 0.0));
        let questions = asked.load(Ordering::Relaxed);
        assert_eq!(questions, count);
        for at in 0..questions {
            let (interrupt, asked) = interrupt_at(at);
            let (outcomes, incomplete) = pass(&[interrupt], true, saved);
            let FailedDatum { at: datum, error } = outcomes.into_iter().next().unwrap().map(drop).unwrap_err();
            assert_eq!((datum, error.category), (0, Category::User));
            assert!(error.message.contains("its session ended"), "{error}");
            assert_eq!(asked.load(Ordering::Relaxed), at + 1, "it goes on, or asks again");
            // Of the blocks that were left out there is nothing.
            assert_eq!(incomplete == gradient, at + 1 == questions);
        }
    }
}

#[test]
fn a_pass_goes_on_for_whoever_waits() {
    let bits = |outcomes: &Outcomes, group: usize| {
        let outputs = outcomes[group].as_ref().map_err(|failed| &failed.error).unwrap();
        outputs[0].logprobs.iter().map(|logprob| logprob.to_bits()).collect::<Vec<_>>()
    };
    let (expected, _) = pass(&[Interrupt::default(), Interrupt::default()], false, SAVED);
    let (found, _) = pass(&[Interrupt::new(|| true), Interrupt::default()], false, SAVED);
    for group in 0..2 {
        assert_eq!(bits(&found, group), bits(&expected, group));
    }
    let (ended, _) = pass(&[Interrupt::new(|| true), Interrupt::new(|| true)], false, SAVED);
    assert!(ended.iter().all(Result::is_err));
}
