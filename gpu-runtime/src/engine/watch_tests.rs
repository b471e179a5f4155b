#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use trainyard_protocol::{
    Engine as _, Operation, RunId, Sample, SampleOperation, SamplerSource, SamplingParams, SaveSampler, SessionId, Stop,
};

use super::*;
use crate::engine::fault_tests::{create, drain, id, pass, start};
use crate::engine::{CpuEngine, EngineOptions};
use crate::load::load;

/// An engine that verifies `share` of a million samples of two models: one is `m`, the other has the same tensors and another
/// epsilon in its norms.
fn engine(share: u32) -> CpuEngine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let options = EngineOptions { threads: 2, verified_per_million: share, ..EngineOptions::default() };
    let mut wrong = load(&path).unwrap();
    wrong.config.rms_norm_eps *= 10.0;
    CpuEngine::new(vec![("m".into(), load(&path).unwrap()), ("wrong".into(), wrong)], options).unwrap()
}

fn sample(source: SamplerSource, seed: u64, temperature: f32) -> Operation {
    let params = SamplingParams {
        max_tokens: Some(1 + seed as u32 % 40),
        seed,
        stop: Stop::Nothing,
        temperature,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
    };
    let sample = Sample {
        prompt: (0..1 + seed as i64 % 50).map(|at| (at * 7 + seed as i64 * 31) % 512).collect(),
        num_samples: 1 + seed as u32 % 3,
        params,
        prompt_logprobs: false,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    };
    let session = SessionId::new("s");
    Operation::Sample(Box::new(SampleOperation { session, source, sample, images: Default::default() }))
}

fn base() -> SamplerSource {
    SamplerSource::Base { model: "m".into() }
}

#[test]
fn samples_are_computed_again_with_the_same_bits() {
    let mut engine = engine(MILLION);
    create(&mut engine, "run", 1);
    for step in 0..2 {
        start(&mut engine, &format!("pass {step}"), pass("run", 2));
        drain(&mut engine);
    }
    let save = SaveSampler { run: RunId::new("run"), snapshot: Some("trained".into()), target: None };
    start(&mut engine, "save", Operation::SaveSampler(save));
    drain(&mut engine);
    for seed in 0..12 {
        let source = if seed % 2 == 0 { base() } else { SamplerSource::Snapshot { key: "trained".into() } };
        start(&mut engine, &format!("sample {seed}"), sample(source, seed, if seed % 3 == 0 { 0.0 } else { 1.0 }));
        drain(&mut engine);
    }
    assert_eq!(engine.watch.stats(), WatchStats { verified: 12, differing: 0, skipped: 0 });
    // Beside each other some are skipped, and all are counted.
    for seed in 0..20 {
        start(&mut engine, &format!("together {seed}"), sample(base(), 40 * seed, 1.0));
    }
    drain(&mut engine);
    let WatchStats { verified, differing, skipped } = engine.watch.stats();
    assert_eq!((verified + skipped, differing), (32, 0));
    assert!(verified > 12 && engine.watch.open.is_empty());
}

/// Norms with another epsilon on one side stand for a wrong kernel.
#[test]
fn a_planted_fault_is_found_within_a_thousand_samples() {
    let mut engine = engine(MILLION / 100);
    let wrong = SamplerWeights::of_base(engine.base("wrong").unwrap());
    for seed in 0..1_000 {
        start(&mut engine, &format!("sample {seed}"), sample(base(), seed % 7, 1.0));
        engine.watch.open.values_mut().for_each(|watched| watched.weights = wrong.clone());
        drain(&mut engine);
    }
    let WatchStats { verified, differing, skipped } = engine.watch.stats();
    assert!((3..30).contains(&verified) && differing == verified && skipped == 0, "{verified}, {differing}, {skipped}");
}

#[test]
fn scaled_failed_and_cancelled_samples_are_not_verified() {
    let mut engine = engine(MILLION);
    start(&mut engine, "scaled", sample(base(), 3, 0.7));
    start(&mut engine, "refused", sample(SamplerSource::Snapshot { key: "gone".into() }, 3, 1.0));
    start(&mut engine, "cancelled", sample(base(), 39, 1.0));
    engine.step();
    engine.cancel(&BTreeSet::from([id("cancelled")]));
    drain(&mut engine);
    assert_eq!(engine.watch.stats(), WatchStats::default());
    assert!(engine.watch.open.is_empty());
}

#[test]
fn what_does_not_fit_a_pass_is_skipped() {
    let mut engine = engine(MILLION);
    engine.watch.pass_bytes = 1;
    start(&mut engine, "large", sample(base(), 1, 1.0));
    drain(&mut engine);
    assert_eq!(engine.watch.stats(), WatchStats { verified: 0, differing: 0, skipped: 1 });
}

#[test]
fn checks_wait_for_others_so_many_turns() {
    let mut engine = engine(MILLION);
    start(&mut engine, "sample", sample(base(), 1, 1.0));
    while engine.watch.is_idle() {
        engine.step();
    }
    let turns: Vec<bool> = (0..2 * PATIENCE + 2).map(|_| engine.watch.takes_turn(true)).collect();
    let due: Vec<usize> = turns.iter().enumerate().filter(|(_, due)| **due).map(|(at, _)| at).collect();
    assert_eq!(due, [PATIENCE, 2 * PATIENCE + 1]);
    assert!(engine.watch.takes_turn(false));
}

#[test]
fn the_first_difference_is_reported() {
    assert_eq!(difference(&[-1.0, -0.0], &[-1.0, -0.0]), None);
    let of_sign = Difference { token: 1, sampled: 0.0, computed: -0.0 };
    assert_eq!(difference(&[-1.0, 0.0, 2.0], &[-1.0, -0.0, 3.0]), Some(of_sign));
    assert_eq!(difference(&[-1.0], &[]).unwrap().token, 0);
}
