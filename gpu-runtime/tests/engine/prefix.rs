//! Shared prefixes of prompts are computed once; only the owner of the weights sees cache hits.

use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_protocol::{Operation, SampleResult, SamplerSource};

use crate::support::{Driver, datum, golden, lora, params, sample, sample_result, tokens};

fn driver(kv_bytes: usize) -> Driver {
    let options = EngineOptions { dtype: Dtype::Bf16, threads: 2, kv_bytes, ..EngineOptions::default() };
    let mut d = Driver::with_options(&golden("qwen3"), options);
    d.create("run", Some(lora(4, 3)));
    d.forward_backward("run", vec![datum(&tokens(40, 512, 1))]);
    d.step("run", 1e-2);
    d.snapshot("run", "first");
    d
}

fn snapshot(key: &str) -> SamplerSource {
    SamplerSource::Snapshot { key: key.into() }
}

fn ask(source: SamplerSource, prompt: &[i64]) -> Operation {
    let mut request = sample(source, prompt.to_vec(), 2, params(20, 1.0, 5));
    request.sample.prompt_logprobs = false;
    Operation::Sample(Box::new(request))
}

/// The result as text without the count of cache hits, and that count.
fn split(result: SampleResult) -> (String, u32) {
    let hits = result.prompt_cache_hit_tokens;
    (format!("{:?}", SampleResult { prompt_cache_hit_tokens: 0, ..result }), hits)
}

#[test]
fn hits_change_no_bits_and_are_reported_only_to_the_owner() {
    let prompt = tokens(100, 512, 8);
    let (mut cached, mut plain) = (driver(1 << 30), driver(0));
    let base = SamplerSource::Base { model: "m".into() };
    // The second snapshot is of the same weights as the first.
    cached.snapshot("run", "second");
    plain.snapshot("run", "second");
    let sources = [snapshot("first"), base.clone(), snapshot("second"), base];
    let mut hits = Vec::new();
    for source in sources {
        let (bits, found) = split(sample_result(cached.run(ask(source.clone(), &prompt))));
        let (expected, none) = split(sample_result(plain.run(ask(source, &prompt))));
        assert_eq!(bits, expected);
        assert_eq!(none, 0);
        hits.push(found);
    }
    // Three full blocks of the prompt.
    assert_eq!(hits, [0, 0, 96, 0]);
}

#[test]
fn an_optimizer_step_makes_a_new_weights_version() {
    let prompt = tokens(70, 512, 9);
    let (mut cached, mut fresh) = (driver(1 << 30), driver(1 << 30));
    cached.run(ask(snapshot("first"), &prompt)).unwrap();
    for d in [&mut cached, &mut fresh] {
        d.forward_backward("run", vec![datum(&tokens(40, 512, 2))]);
        d.step("run", 1e-2);
        d.snapshot("run", "first");
    }
    let after = sample_result(cached.run(ask(snapshot("first"), &prompt)));
    assert_eq!(split(after), split(sample_result(fresh.run(ask(snapshot("first"), &prompt)))));
}

#[test]
fn equal_requests_at_once_share_a_prompt() {
    let prompt = tokens(160, 512, 10);
    let mut d = driver(1 << 30);
    let ids: Vec<_> = (0..4).map(|_| d.start(ask(snapshot("first"), &prompt))).collect();
    let results: Vec<_> = ids.iter().map(|id| split(sample_result(d.take(id)))).collect();
    // The prompt ends with a block: all but its last row.
    assert_eq!(results.iter().map(|(_, hits)| *hits).collect::<Vec<_>>(), [0, 159, 159, 159]);
    assert!(results.iter().all(|(bits, _)| *bits == results[0].0));
}
