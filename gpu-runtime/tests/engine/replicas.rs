//! Data parallel replicas behind the engine's trait: the guarantees of one rank hold, and files are the same.

use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_protocol::{
    Engine, ModelHead, Operation, Optimizer, RunSpec, SampleProgress, SampleResult, SamplerSource, SamplingParams,
    Tensor,
};

use crate::equality::parity;
use crate::isolation::{batch, train};
use crate::ranks::{moved, saved_weights};
use crate::support::{
    Driver, datum, golden, layout_options, lora, loss_op, on_one_rank, on_ranks, params, sample, sample_result, tokens,
};

#[test]
fn logprobs_of_sampler_and_trainer_are_bit_equal_on_replicas() {
    for (family, layout, full, dtype) in [
        ("llama", "dp=2", false, Dtype::Bf16),
        ("qwen3_moe", "dp=2", false, Dtype::Bf16),
        ("qwen2", "dp=4", true, Dtype::Bf16),
        ("gemma3", "tp=2,dp=2", false, Dtype::F32),
    ] {
        parity(&mut on_ranks(family, layout, dtype), full);
    }
}

#[test]
fn a_run_on_replicas_is_bit_equal_alone_and_batched_with_others() {
    for (family, layout) in [("qwen3", "dp=2"), ("qwen3", "tp=2,dp=2"), ("gpt_oss", "dp=2")] {
        for full in [false, true] {
            let alone = train(&mut on_ranks(family, layout, Dtype::Bf16), 0, full);
            let batched = train(&mut on_ranks(family, layout, Dtype::Bf16), 3, full);
            assert_eq!(alone, batched, "{family}, {layout}, full {full}");
        }
    }
}

#[test]
fn microbatches_do_not_change_the_bits_of_replicas() {
    for full in [false, true] {
        let train_with = |microbatch_tokens| {
            let options =
                EngineOptions { microbatch_tokens: Some(microbatch_tokens), ..layout_options("dp=2", Dtype::F32) };
            train(&mut Driver::on_layout(&golden("llama_tied"), options), 0, full)
        };
        let whole = train_with(1 << 20);
        for tokens in [100, 1] {
            assert!(whole == train_with(tokens), "full {full}, {tokens} tokens");
        }
    }
}

#[test]
fn replicas_compute_what_one_computes() {
    for full in [false, true] {
        let alone = train(&mut on_one_rank("qwen2", Dtype::F32), 0, full);
        for layout in ["dp=2", "dp=4", "tp=2,dp=2"] {
            let (results, last) = train(&mut on_ranks("qwen2", layout, Dtype::F32), 0, full);
            for (found, expected) in results.iter().chain([&last]).zip(alone.0.iter().chain([&alone.1])) {
                for (found, expected) in found.outputs.iter().zip(&expected.outputs) {
                    for (a, b) in found.logprobs.iter().zip(&expected.logprobs) {
                        assert!((a - b).abs() < 1e-4, "{layout}: {a} != {b}");
                    }
                }
            }
            if layout != "tp=2,dp=2" {
                assert_eq!(results[0], alone.0[0], "rows have the same bits, and losses add up in the order of data");
            }
        }
    }
}

#[test]
fn greedy_tokens_are_those_of_one_rank() {
    for (family, layouts) in [
        ("llama", &["dp=2", "tp=2,dp=2"][..]),
        ("qwen3", &["dp=2", "dp=4", "tp=2,dp=2"]),
        ("gemma3", &["dp=2", "tp=2,dp=2"]),
        ("deepseek_v3", &["dp=2"]),
    ] {
        let expected = greedy(&mut on_one_rank(family, Dtype::F32));
        for layout in layouts {
            let found = greedy(&mut on_ranks(family, layout, Dtype::F32));
            for (found, expected) in found.iter().zip(&expected) {
                let tokens =
                    |result: &SampleResult| result.sequences.iter().map(|s| s.tokens.clone()).collect::<Vec<_>>();
                assert_eq!(tokens(found), tokens(expected), "{family}, {layout}");
                assert!(!layout.starts_with("dp") || found.sequences == expected.sequences, "{family}, {layout}");
            }
        }
    }
}

fn greedy<E: Engine>(d: &mut Driver<E>) -> Vec<SampleResult> {
    let ids: Vec<_> = (0..7).map(|seed| d.start(of_base(5 + 9 * seed, seed, params(12, 0.0, 1)))).collect();
    ids.iter().map(|id| sample_result(d.take(id))).collect()
}

fn of_base(length: usize, seed: usize, params: SamplingParams) -> Operation {
    let source = SamplerSource::Base { model: "m".into() };
    Operation::Sample(Box::new(sample(source, tokens(length, 512, seed), 2, params)))
}

#[test]
fn runs_move_between_layouts_with_replicas() {
    for adapter in [Some(lora(6, 5)), None] {
        let of = |layout| on_ranks("qwen2", layout, Dtype::F32);
        moved(&mut of("dp=2"), &mut on_one_rank("qwen2", Dtype::F32), adapter.clone());
        moved(&mut on_one_rank("qwen2", Dtype::F32), &mut of("tp=2,dp=2"), adapter.clone());
        moved(&mut of("tp=2,dp=2"), &mut of("dp=4"), adapter);
    }
}

#[test]
fn samples_from_saved_weights_are_those_from_memory_on_replicas() {
    saved_weights(|| on_ranks("qwen3", "dp=2", Dtype::Bf16));
    saved_weights(|| on_ranks("qwen3", "tp=2,dp=2", Dtype::Bf16));
}

#[test]
fn samples_are_followed_on_whichever_replica_they_are() {
    let mut d = on_ranks("llama", "dp=2", Dtype::Bf16);
    let ids: Vec<_> = (0..4).map(|seed| d.start(of_base(9, seed, params(24, 1.0, seed as u64)))).collect();
    let mut followed = vec![vec![Vec::<u32>::new(); 2]; ids.len()];
    let (mut admitted, mut seen) = (Vec::new(), 0);
    while !d.engine.is_idle() {
        d.tick();
        admitted.extend(d.engine.take_admitted());
        for (id, sequences) in ids.iter().zip(&mut followed) {
            let known: Vec<usize> = sequences.iter().map(Vec::len).collect();
            for SampleProgress { sequence, first_index, tokens, logprobs, .. } in d.engine.sampled_since(id, &known) {
                assert_eq!((first_index, logprobs.len()), (known[sequence], tokens.len()));
                sequences[sequence].extend(tokens);
                seen += 1;
            }
        }
    }
    admitted.sort();
    assert_eq!(admitted, ids);
    assert!(seen > ids.len());
    let mut alone = on_one_rank("llama", Dtype::Bf16);
    for ((seed, id), followed) in ids.iter().enumerate().zip(&followed) {
        let result = sample_result(d.take(id));
        let expected = sample_result(alone.run(of_base(9, seed, params(24, 1.0, seed as u64))));
        assert_eq!(result.sequences, expected.sequences);
        for (followed, sequence) in followed.iter().zip(&result.sequences) {
            assert!(!followed.is_empty() && sequence.tokens.starts_with(followed));
        }
    }
    let stats = d.engine.stats();
    assert_eq!((stats.sampled_tokens, stats.active_samples), (4 * 2 * 24, 0));
    assert_eq!(stats.prompt_tokens, alone.engine.stats().prompt_tokens);
}

#[test]
fn cancelled_samples_end_on_every_replica() {
    let mut d = on_ranks("llama", "dp=2", Dtype::Bf16);
    let ids: Vec<_> = (0..4).map(|seed| d.start(of_base(9, seed, params(200, 1.0, 1)))).collect();
    (0..3).for_each(|_| d.tick());
    d.engine.cancel(&ids[..3].iter().cloned().collect());
    assert!(!d.engine.is_idle());
    d.take(&ids[3]).unwrap();
    assert!(ids[..3].iter().all(|id| !d.is_done(id)));
    // The ranks still agree.
    d.create("after", Some(lora(2, 1)));
    d.forward("after", batch(1, 3));
}

#[test]
fn a_failed_request_has_the_error_of_its_first_example() {
    let mut with_failure = on_ranks("llama", "dp=2", Dtype::F32);
    let mut without = on_ranks("llama", "dp=2", Dtype::F32);
    for d in [&mut with_failure, &mut without] {
        d.create("x", Some(lora(4, 1)));
        d.forward_backward("x", batch(1, 4));
    }
    let mut bad = batch(2, 8);
    // Terms that do not fit in f32, on both replicas.
    for datum in &mut bad[3..] {
        let length = datum.tokens.len();
        datum.loss_fn_inputs.insert("weights".into(), Tensor::f32(vec![f32::MAX; length]));
    }
    let error = with_failure.run(loss_op("x", bad, false)).unwrap_err();
    assert!(error.message.contains("data[3]"), "{error}");
    for d in [&mut with_failure, &mut without] {
        d.step("x", 1e-2);
    }
    assert_eq!(with_failure.forward("x", batch(3, 3)), without.forward("x", batch(3, 3)));
}

#[test]
fn one_example_and_steps_without_gradient_are_accepted() {
    let mut d = on_ranks("llama", "dp=4", Dtype::F32);
    d.create("x", Some(lora(4, 1)));
    d.step("x", 1e-2);
    let before = d.forward_backward("x", vec![datum(&tokens(20, 512, 5))]);
    d.step("x", 1e-2);
    let after = d.forward("x", vec![datum(&tokens(20, 512, 5))]);
    assert!(after.metrics["loss:sum"] < before.metrics["loss:sum"]);
}

#[test]
fn replicas_divide_the_optimizers_state() {
    let spec = |d: &dyn Engine| {
        let (lora, optimizer, head) = (None, Optimizer::AdamW, ModelHead::Unembedding);
        let spec = RunSpec { base_model: "m".into(), lora, optimizer, head };
        d.memory().run(&spec).unwrap().bytes
    };
    let (alone, two) =
        (spec(&on_one_rank("llama", Dtype::F32).engine), spec(&on_ranks("llama", "dp=2", Dtype::F32).engine));
    assert!(two < 2 * alone, "{two} on two replicas, {alone} on one rank");
    // Masters, moments and gradients: 5 arrays on one rank, 2 whole ones and 4 halves on each of two replicas.
    let mut d = on_ranks("llama", "dp=2", Dtype::F32);
    d.create("x", None);
    d.forward_backward("x", batch(1, 4));
    d.step("x", 1e-3);
    d.forward_backward("x", batch(1, 4));
    let used = d.engine.stats().memory.runs;
    assert!(used <= two, "{used} used, {two} predicted");
}

#[test]
fn the_replicas_are_part_of_the_numerics() {
    let layout = |layout| on_ranks("llama", layout, Dtype::F32).engine.numerics().remove("m").unwrap().layout;
    assert_eq!((layout("dp=2").as_str(), layout("tp=2,dp=2").as_str()), ("dp=2", "tp=2,dp=2"));
}
