#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trainyard_protocol::{Datum, Tensor};

use super::*;
use crate::kernels::Cpu;
use crate::kernels::packed::Dtype;
use crate::kernels::rope::Rope;
use crate::load::load;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::{Adapter, GradientSum, Gradients, ParamLayout, TrainGroup, train_pass};

const MEMORY: PassMemory = PassMemory { kv: 5, block: 100, input: 10, working: 45, head: 20, logits: 10, blocks: 4 };

#[test]
fn a_pass_keeps_what_the_budget_allows() {
    assert_eq!(MEMORY.bytes(2, 4), 2 * (400 + 50));
    assert_eq!(MEMORY.bytes(2, 1), 2 * (100 + 30 + 50));
    assert_eq!(MEMORY.rows_within(4499, 1000), 9);
    assert_eq!(MEMORY.rows_within(4499, 5), 5);
    assert_eq!(MEMORY.rows_within(100, 1000), 0);
    assert_eq!(MEMORY.kept_within(2, 900), 4);
    assert_eq!(MEMORY.kept_within(2, 899), 3);
    assert_eq!(MEMORY.kept_within(2, 719), 2);
    assert_eq!(MEMORY.kept_within(2, 360), 1);
    // A block that computes again holds as much as one that does not.
    assert_eq!(MEMORY.kept_within(2, 0), 0);
}

#[test]
fn logits_count_as_far_as_they_are_kept() {
    let wide = PassMemory { logits: 1 << 20, ..MEMORY };
    assert_eq!(wide.bytes(2, 4), 2 * (400 + 5 + 20 + (1 << 20)));
    assert_eq!(wide.bytes(1000, 4), 1000 * (400 + 5 + 20) + KEPT_LOGITS);
}

fn datum(length: usize, seed: i64, vocab: i64) -> PreparedDatum {
    let tokens: Vec<i64> = (0..length as i64).map(|t| (t * 7 + seed) % vocab).collect();
    let inputs = [
        ("target_tokens".to_owned(), Tensor::i64(tokens.clone())),
        ("weights".to_owned(), Tensor::f32(vec![1.0; length])),
    ];
    let loss = LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap();
    prepare(&loss, 0, &Datum { tokens, loss_fn_inputs: BTreeMap::from(inputs) }, vocab as usize).unwrap()
}

/// Runs a pass over `count` examples of 128 rows; what was predicted for its buffers, and the peak of what it took.
fn pass(family: &str, dtype: Dtype, lora: bool, count: usize, again: usize) -> (usize, usize) {
    let cpu = Cpu::new(1);
    let source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)).unwrap();
    let config = Arc::new(source.config);
    let layout = Arc::new(ParamLayout::new(&config));
    let rope = Arc::new(Rope::new(&config.rope, config.head_dim, config.max_position_embeddings));
    let mut read = |i: usize| source.tensors.read(&layout.specs[i].name).map(Cow::Owned);
    let weights = Weights::build(&cpu, &config, &layout, &rope, dtype, &mut read).unwrap();
    let spec = LoraSpec { rank: 4, seed: 1, train_unembed: false, train_mlp: true, train_attn: true };
    let zeros: Gradients = match lora {
        true => Adapter::params(&config, &spec).iter().map(|p| vec![0.0; p.len()]).collect(),
        false => layout.zeros(),
    };
    let adapter = lora.then(|| Arc::new(Adapter::build(&cpu, dtype, &config, &spec, &zeros)));
    let memory = PassMemory::of(&weights, lora.then_some(&spec).into_iter());
    let data: Vec<_> = (0..count as i64).map(|seed| datum(128, seed, config.vocab_size as i64)).collect();
    let kept = config.num_layers - again;
    let mut grads = GradientSum::new(zeros);
    let loss = LossFn::parse("cross_entropy", &BTreeMap::new()).unwrap();
    let group = TrainGroup { adapter, loss, data: data.iter().collect(), grads: Some(&mut grads) };
    cpu.usage.reset_peak();
    let outcomes = train_pass(&cpu, &weights, &mut [group], !lora, kept);
    assert!(outcomes.iter().all(Result::is_ok));
    (memory.buffers(count * 128, kept), cpu.usage.peak())
}

#[test]
fn a_pass_takes_what_was_predicted() {
    for family in ["llama", "qwen2", "qwen3"] {
        for (dtype, lora, again) in
            [(Dtype::Bf16, true, 0), (Dtype::Bf16, true, 1), (Dtype::F32, true, 2), (Dtype::Bf16, false, 0)]
        {
            let (predicted, measured) = pass(family, dtype, lora, 24, again);
            // Tiles of products, whatever the rows.
            let fixed = 2 << 20;
            let text = format!("{family}, {dtype:?}, {lora}, {again}: {predicted} predicted, {measured} measured");
            assert!(measured <= predicted + fixed && predicted <= measured + measured / 4, "{text}");
        }
    }
}
