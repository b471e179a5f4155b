//! Runs whose parameters replicas divide (ZeRO stage 3) behind the engine's trait: the guarantees of replicas hold, results are
//! theirs to the bit, and files are the same.

use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_protocol::{Datum, Engine, ForwardBackwardResult, TenantShare, Tensor};

use crate::equality::parity;
use crate::isolation::{batch, train};
use crate::ranks::{moved, outcome, saved_weights};
use crate::scalar_head;
use crate::support::{
    Driver, datum, golden, layout_options, lora, loss_op, loss_result, on_one_rank, on_ranks, tokens,
};

/// Examples that are several rounds of each of two replicas.
fn rounds(seed: usize) -> Vec<Datum> {
    (0..70).map(|i| datum(&tokens(20 + (i * 13 + seed * 7) % 70, 512, seed * 100 + i))).collect()
}

/// Results of training on requests of several rounds, and a last forward pass.
fn long<E: Engine>(d: &mut Driver<E>) -> Vec<ForwardBackwardResult> {
    d.create("x", None);
    let mut results = Vec::new();
    for step in 0..2 {
        results.push(d.forward_backward("x", rounds(step)));
        results.push(d.forward_backward("x", batch(step, 3)));
        d.step("x", 1e-2);
    }
    results.push(d.forward("x", batch(77, 5)));
    results
}

#[test]
fn logprobs_of_sampler_and_trainer_are_bit_equal_where_parameters_are_divided() {
    for (family, layout, full, dtype) in [
        ("qwen2", "dp=2,zero=3", true, Dtype::Bf16),
        ("llama_tied", "dp=4,zero=3", true, Dtype::F32),
        ("gemma3", "tp=2,dp=2,zero=3", true, Dtype::Bf16),
        ("deepseek_v3", "dp=2,zero=3", true, Dtype::Bf16),
        ("llama", "dp=2,zero=3", false, Dtype::Bf16),
    ] {
        parity(&mut on_ranks(family, layout, dtype), full);
    }
}

#[test]
fn a_run_is_bit_equal_to_one_on_replicas_with_all_parameters() {
    for (family, dtype) in [("llama_tied", Dtype::Bf16), ("qwen2", Dtype::F32), ("gpt_oss", Dtype::Bf16)] {
        for dp in [2, 4] {
            let [whole, divided] = ["", ",zero=3"].map(|stage| {
                let mut d = on_ranks(family, &format!("dp={dp}{stage}"), dtype);
                outcome(&mut d, true)
            });
            assert_eq!(whole, divided, "{family}, dp={dp}");
        }
    }
    // Adapters are not divided.
    let [whole, divided] =
        ["dp=2", "dp=2,zero=3"].map(|layout| train(&mut on_ranks("qwen3", layout, Dtype::Bf16), 0, false));
    assert_eq!(whole, divided);
}

#[test]
fn a_divided_run_is_bit_equal_alone_and_batched_with_others() {
    for (family, layout) in [("qwen3", "dp=2,zero=3"), ("llama_tied", "tp=2,dp=2,zero=3"), ("gpt_oss", "dp=2,zero=3")] {
        let alone = train(&mut on_ranks(family, layout, Dtype::Bf16), 0, true);
        let batched = train(&mut on_ranks(family, layout, Dtype::Bf16), 3, true);
        assert_eq!(alone, batched, "{family}, {layout}");
    }
}

/// Neither the size of microbatches nor memory for activations nor another tenant's work changes what a round is.
#[test]
fn rounds_follow_from_the_request_alone() {
    let with = |options: EngineOptions| long(&mut Driver::on_layout(&golden("llama_tied"), options));
    let of = || layout_options("dp=2,zero=3", Dtype::F32);
    let expected = with(of());
    for options in [
        EngineOptions { microbatch_tokens: Some(1), ..of() },
        EngineOptions { microbatch_tokens: Some(1 << 20), ..of() },
        EngineOptions { activation_bytes: 100_000, ..of() },
    ] {
        assert_eq!(expected, with(options));
    }
    let mut d = on_ranks("llama_tied", "dp=2,zero=3", Dtype::F32);
    d.create("other", Some(lora(4, 1)));
    d.create("x", None);
    let mut results = Vec::new();
    for step in 0..2 {
        let other = d.start_for(TenantShare::new("u"), loss_op("other", batch(step, 40), false));
        results.push(d.forward_backward("x", rounds(step)));
        results.push(d.forward_backward("x", batch(step, 3)));
        d.step("x", 1e-2);
        d.take(&other).unwrap();
    }
    results.push(d.forward("x", batch(77, 5)));
    assert_eq!(expected, results);
}

#[test]
fn several_rounds_compute_what_one_rank_computes() {
    let alone = long(&mut on_one_rank("qwen2", Dtype::F32));
    for layout in ["dp=2,zero=3", "dp=4,zero=3", "tp=2,dp=2,zero=3"] {
        let found = long(&mut on_ranks("qwen2", layout, Dtype::F32));
        for (found, expected) in found.iter().zip(&alone) {
            for (found, expected) in found.outputs.iter().zip(&expected.outputs) {
                for (a, b) in found.logprobs.iter().zip(&expected.logprobs) {
                    assert!((a - b).abs() < 1e-4, "{layout}: {a} != {b}");
                }
            }
        }
    }
}

#[test]
fn greedy_tokens_of_a_trained_run_are_those_of_one_rank() {
    for family in ["llama", "qwen3", "gemma3"] {
        let (_, expected) = outcome(&mut on_one_rank(family, Dtype::F32), true);
        for layout in ["dp=2,zero=3", "dp=4,zero=3", "tp=2,dp=2,zero=3"] {
            let (_, found) = outcome(&mut on_ranks(family, layout, Dtype::F32), true);
            assert_eq!(found[0].tokens, expected[0].tokens, "{family}, {layout}");
        }
    }
}

#[test]
fn runs_move_between_layouts_that_divide_parameters_and_others() {
    let of = |layout| on_ranks("qwen2", layout, Dtype::F32);
    moved(&mut of("dp=2,zero=3"), &mut on_one_rank("qwen2", Dtype::F32), None);
    moved(&mut on_one_rank("qwen2", Dtype::F32), &mut of("tp=2,dp=2,zero=3"), None);
    moved(&mut of("tp=2"), &mut of("dp=4,zero=3"), None);
    moved(&mut of("dp=4,zero=3"), &mut of("dp=2"), None);
    moved(&mut of("dp=2,zero=3"), &mut of("dp=2"), Some(lora(6, 5)));
    let experts = |layout| on_ranks("qwen3_moe", layout, Dtype::F32);
    moved(&mut experts("dp=2,ep=2,zero=3"), &mut experts("dp=2,zero=3"), None);
}

#[test]
fn samples_from_saved_weights_are_those_from_memory_where_parameters_are_divided() {
    saved_weights(|| on_ranks("qwen3", "dp=2,zero=3", Dtype::Bf16));
    saved_weights(|| on_ranks("llama_tied", "tp=2,dp=2,zero=3", Dtype::Bf16));
}

#[test]
fn a_scalar_head_is_divided_with_the_rest() {
    for family in ["llama", "llama_tied"] {
        let [whole, divided] = ["dp=2", "dp=2,zero=3"].map(|layout| {
            let mut d = on_ranks(family, layout, Dtype::Bf16);
            scalar_head::create(&mut d, "x", None);
            scalar_head::train(&mut d, 0..3, 0)
        });
        assert_eq!(whole, divided, "{family}");
    }
}

#[test]
fn a_failed_request_leaves_a_divided_run_unchanged() {
    let [mut with_failure, mut without] = [0, 1].map(|_| on_ranks("llama", "dp=2,zero=3", Dtype::F32));
    for d in [&mut with_failure, &mut without] {
        d.create("x", None);
        d.forward_backward("x", batch(1, 4));
    }
    for from in [0, 3] {
        // Terms that do not fit in f32, on both replicas, or on one.
        let mut bad = batch(2, 8);
        let end = if from == 0 { bad.len() } else { from + 1 };
        for datum in &mut bad[from..end] {
            let length = datum.tokens.len();
            datum.loss_fn_inputs.insert("weights".into(), Tensor::f32(vec![f32::MAX; length]));
        }
        let error = with_failure.run(loss_op("x", bad, false)).unwrap_err();
        assert!(error.message.contains(&format!("data[{from}]")), "{error}");
    }
    for d in [&mut with_failure, &mut without] {
        d.step("x", 1e-2);
    }
    assert_eq!(with_failure.forward("x", batch(3, 3)), without.forward("x", batch(3, 3)));
}

#[test]
fn fewer_examples_than_replicas_and_steps_without_gradient_are_accepted() {
    let mut d = on_ranks("llama", "dp=4,zero=3", Dtype::F32);
    d.create("x", None);
    d.step("x", 1e-3);
    let before = d.forward_backward("x", vec![datum(&tokens(20, 512, 5))]);
    d.step("x", 1e-3);
    let after = d.forward("x", vec![datum(&tokens(20, 512, 5))]);
    assert!(after.metrics["loss:sum"] < before.metrics["loss:sum"]);
    // An example whose gradient is zero is one that no replica has a backward pass for.
    let mut zero = vec![datum(&tokens(20, 512, 5))];
    zero[0].loss_fn_inputs.insert("weights".into(), Tensor::f32(vec![0.0; 19]));
    let request = loss_op("x", zero, false);
    loss_result(d.run(request));
    d.step("x", 1e-3);
}

#[test]
fn the_division_is_part_of_the_numerics() {
    let numerics = |layout| on_ranks("llama", layout, Dtype::F32).engine.numerics().remove("m").unwrap();
    let (divided, whole) = (numerics("dp=2,zero=3"), numerics("dp=2"));
    assert_eq!((divided.layout.as_str(), whole.layout.as_str()), ("dp=2,zero=3", "dp=2"));
    assert_ne!(divided.arithmetic(), whole.arithmetic());
}
