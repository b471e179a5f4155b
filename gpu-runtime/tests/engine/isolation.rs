//! Results of a run do not depend on other requests in the batch, nor on how its requests are divided into microbatches.

use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_protocol::{Datum, Engine, ForwardBackwardResult, Operation, SamplerSource, Tensor};

use crate::support::{Driver, datum, golden, lora, loss_op, loss_result, optim, params, sample, tokens};

pub(crate) fn batch(seed: usize, count: usize) -> Vec<Datum> {
    (0..count).map(|i| datum(&tokens(2 + (i * 13 + seed * 7) % 70, 512, seed * 100 + i))).collect()
}

/// Trains run `x` for three steps, batched with `others` busy runs.
pub(crate) fn train<E: Engine>(
    d: &mut Driver<E>,
    others: usize,
    full: bool,
) -> (Vec<ForwardBackwardResult>, ForwardBackwardResult) {
    d.create("x", if full { None } else { Some(lora(6, 9)) });
    for o in 0..others {
        d.create(&format!("o{o}"), if o == 2 { None } else { Some(lora(3 + o as u32 * 8, o as u64)) });
    }
    let mut results = Vec::new();
    for step in 0..3 {
        let mut ids = Vec::new();
        for o in 0..others {
            ids.push(d.start(loss_op(&format!("o{o}"), batch(step * 10 + o, 9), o == 1)));
            let source = SamplerSource::Base { model: "m".into() };
            ids.push(d.start(Operation::Sample(Box::new(sample(source, tokens(20, 512, o), 2, params(9, 1.0, 3))))));
        }
        let own = d.start(loss_op("x", batch(step, 12), false));
        results.push(loss_result(d.take(&own)));
        for id in ids {
            d.take(&id).unwrap();
        }
        for o in 0..others {
            d.start(optim(&format!("o{o}"), 1e-2));
        }
        d.step("x", 1e-2);
    }
    let last = d.forward("x", batch(77, 5));
    (results, last)
}

#[test]
fn a_run_is_bit_equal_alone_and_batched_with_others() {
    for full in [false, true] {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            for family in ["qwen3", "gpt_oss", "deepseek_v3", "qwen3_5_moe", "nemotron_h_latent", "lfm2"] {
                let alone = train(&mut Driver::open(&golden(family), dtype), 0, full);
                let batched = train(&mut Driver::open(&golden(family), dtype), 3, full);
                assert_eq!(alone, batched, "{family}, full {full}, {dtype:?}");
            }
        }
    }
}

#[test]
fn microbatches_do_not_change_bits() {
    // With all parameters trained, tied embeddings have a gradient as inputs and one as the unembedding.
    for (family, full) in [
        ("llama", false),
        ("qwen2", true),
        ("llama_tied", true),
        ("qwen3", true),
        ("qwen3_moe", false),
        ("gpt_oss", true),
        ("deepseek_v3", false),
        ("deepseek_v3", true),
        ("indexed/glm_moe_dsa", false),
        ("indexed/deepseek_v32", true),
        ("qwen3_5", false),
        ("qwen3_5", true),
        ("qwen3_5_moe", false),
        ("nemotron_h", true),
        ("lfm2", true),
        ("granitemoehybrid", false),
    ] {
        let train_with = |microbatch_tokens| {
            let dtype = if full { Dtype::F32 } else { Dtype::Bf16 };
            let options = EngineOptions {
                dtype,
                threads: 2,
                microbatch_tokens: Some(microbatch_tokens),
                ..EngineOptions::default()
            };
            train(&mut Driver::with_options(&golden(family), options), 0, full)
        };
        let whole = train_with(1 << 20);
        for tokens in [100, 1] {
            assert!(whole == train_with(tokens), "{family}, {tokens} tokens");
        }
    }
}

#[test]
fn recomputed_activations_have_the_same_bits() {
    for (family, full) in [
        ("llama", false),
        ("qwen3", false),
        ("qwen2", true),
        ("qwen3_moe", false),
        ("gpt_oss", true),
        ("deepseek_v3", false),
        ("deepseek_v3", true),
        ("indexed/glm_moe_dsa", false),
        ("indexed/deepseek_v32", true),
        ("qwen3_5", false),
        ("qwen3_5", true),
        ("qwen3_5_moe", false),
        ("nemotron_h", true),
        ("lfm2", true),
        ("granitemoehybrid", false),
    ] {
        let train_with = |activation_bytes| {
            let options =
                EngineOptions { dtype: Dtype::Bf16, threads: 2, activation_bytes, ..EngineOptions::default() };
            train(&mut Driver::with_options(&golden(family), options), 2, full)
        };
        let all = train_with(usize::MAX);
        // No block, or some blocks of some microbatches, save their activations.
        for budget in [0, 100_000, 400_000] {
            assert_eq!(all, train_with(budget), "{family} within {budget} bytes");
        }
    }
}

#[test]
fn a_failed_request_leaves_the_run_unchanged() {
    let mut with_failure = Driver::open(&golden("llama"), Dtype::F32);
    let mut without = Driver::open(&golden("llama"), Dtype::F32);
    for d in [&mut with_failure, &mut without] {
        d.create("x", Some(lora(4, 1)));
        d.forward_backward("x", batch(1, 4));
    }
    let mut bad = batch(2, 4);
    // A term that does not fit in f32.
    let length = bad[3].tokens.len();
    bad[3].loss_fn_inputs.insert("weights".into(), Tensor::f32(vec![f32::MAX; length]));
    let error = with_failure.run(loss_op("x", bad, false)).unwrap_err();
    assert!(error.message.contains("data[3]"), "{error}");
    for d in [&mut with_failure, &mut without] {
        d.step("x", 1e-2);
    }
    assert_eq!(with_failure.forward("x", batch(3, 3)), without.forward("x", batch(3, 3)));
}

#[test]
fn a_step_without_gradient_is_accepted() {
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    d.create("x", Some(lora(4, 1)));
    let before = d.forward("x", batch(1, 2));
    d.step("x", 1e-2);
    assert_eq!(before.outputs.len(), d.forward("x", batch(1, 2)).outputs.len());
}

#[test]
fn a_fresh_adapter_is_an_exact_no_op() {
    let mut d = Driver::open(&golden("llama"), Dtype::F32);
    d.create("a", Some(lora(4, 1)));
    d.create("b", Some(lora(32, 2)));
    assert_eq!(d.forward("a", batch(1, 3)), d.forward("b", batch(1, 3)));
}
