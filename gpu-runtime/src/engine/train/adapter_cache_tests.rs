#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use super::*;
use crate::backend::{Backend, Held, LinearCall, MatrixRole};
use crate::engine::CpuEngine;
use crate::engine::fault_tests::{create, drain, engine, optim, pass, start};

/// An engine with a run of each name, and the bytes of a packed adapter.
fn with_runs(names: &[&str]) -> (CpuEngine, usize) {
    let mut engine = engine();
    (0..).zip(names).for_each(|(seed, run)| create(&mut engine, run, seed));
    let bytes = engine.runs[&RunId::new(names[0])].adapter_bytes(true);
    (engine, bytes)
}

/// Bytes of packed adapters and of the recycled one.
fn bytes(engine: &CpuEngine) -> (usize, usize) {
    let backend = engine.backend();
    let recycled = engine.trainer.adapters.recycled.as_ref().map_or(0, |recycled| recycled.bytes(backend));
    (engine.runs.values().map(|run| run.packed_bytes(backend)).sum(), recycled)
}

fn pack(engine: &mut CpuEngine, members: &[&str], waiting: &[&str]) {
    let ids = |names: &[&str]| -> Vec<RunId> { names.iter().map(|name| RunId::new(*name)).collect() };
    let (members, waiting) = (ids(members), ids(waiting));
    let [members, waiting] = [&members, &waiting].map(|ids| ids.iter().collect::<Vec<_>>());
    let CpuEngine { backend, runs, trainer, .. } = engine;
    trainer.adapters.pack(backend, runs, &members, &waiting);
    // As the backward pass does.
    for adapter in members.iter().filter_map(|member| runs[*member].packed()) {
        for pair in adapter.pairs() {
            let (outputs, inputs) = pair.extents;
            let (a, b, _) = pair.of_expert(None, adapter.rank);
            for (weight, n, k) in [(a, adapter.rank, inputs), (b, outputs, adapter.rank)] {
                let dy = backend.output_gradient(Held::Owned(backend.zeros(1, n)), std::slice::from_ref(&(0..1)));
                let mut dx = backend.alloc(1, k);
                backend.linear_backward(&LinearCall { weight, bias: None, lora: &[] }, &dy, &mut dx);
            }
        }
    }
}

fn packed(engine: &CpuEngine) -> Vec<&str> {
    let packed = engine.runs.iter().filter(|(_, run)| run.packed_bytes(engine.backend()) > 0);
    packed.map(|(id, _)| id.as_str()).collect()
}

#[test]
fn the_size_of_an_adapter_is_known_before_it_is_packed() {
    let (mut engine, predicted) = with_runs(&["a"]);
    start(&mut engine, "a", pass("a", 1));
    drain(&mut engine);
    assert_eq!(bytes(&engine), (predicted, 0));
}

#[test]
fn adapters_of_runs_outside_a_pass_are_evicted_for_those_in_it() {
    let (mut engine, one) = with_runs(&["a", "b", "c"]);
    engine.trainer.adapters.limit = one * 3 / 2;
    pack(&mut engine, &["a"], &["a"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["a"], (one, 0)));
    // Packed into the memory of the first.
    pack(&mut engine, &["b"], &["a", "b"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["b"], (one, 0)));
    // The runs of a pass may exceed the limit.
    pack(&mut engine, &["a", "b"], &["a", "b"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["a", "b"], (2 * one, 0)));
    // Those without requests are evicted first.
    engine.trainer.adapters.limit = one * 5 / 2;
    pack(&mut engine, &["c"], &["a", "c"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["a", "c"], (2 * one, 0)));
}

#[test]
fn samplers_share_an_adapter_and_hold_no_transposes() {
    let (mut engine, whole) = with_runs(&["a"]);
    start(&mut engine, "a", pass("a", 2));
    drain(&mut engine);
    let CpuEngine { backend, runs, .. } = &mut engine;
    let run = runs.get_mut(&RunId::new("a")).unwrap();
    let forward = run.adapter_bytes(false);
    let planned = |trains| backend.planned_matrix_bytes(64, 64, MatrixRole::Adapter, trains);
    assert!(if planned(false) < planned(true) { forward < whole * 2 / 3 } else { forward == whole });
    let [first, second] =
        [run.sampler_weights(backend), run.sampler_weights(backend)].map(|weights| weights.unwrap().adapter.unwrap());
    assert!(Arc::ptr_eq(&first, &second), "the same weights are one adapter");
    let values = first.to_host(backend, &());
    start(&mut engine, "a", optim("a"));
    start(&mut engine, "a2", pass("a", 2));
    drain(&mut engine);
    let CpuEngine { backend, runs, .. } = &mut engine;
    let run = runs.get_mut(&RunId::new("a")).unwrap();
    assert_eq!((first.bytes(backend), run.packed_bytes(backend)), (forward, whole));
    assert!(values == first.to_host(backend, &()));
    let third = run.sampler_weights(backend).unwrap().adapter.unwrap();
    assert!(!Arc::ptr_eq(&first, &third) && values != third.to_host(backend, &()));
    assert_eq!(third.bytes(backend), forward);
}

#[test]
fn adapters_stay_packed_within_the_limit_after_a_request() {
    let (mut engine, one) = with_runs(&["a", "b"]);
    engine.trainer.adapters.limit = one * 3 / 2;
    for run in ["a", "b", "a"] {
        start(&mut engine, run, pass(run, 2));
        drain(&mut engine);
        assert_eq!((packed(&engine), bytes(&engine)), (vec![run], (one, 0)));
    }
    for run in ["a", "b"] {
        start(&mut engine, run, pass(run, 2));
    }
    drain(&mut engine);
    assert_eq!(bytes(&engine), (one, 0));
    // The recycled adapter counts toward the limit.
    pack(&mut engine, &["a", "b"], &[]);
    engine.trainer.adapters.recycled = engine.runs.get_mut(&RunId::new("a")).and_then(TrainingRun::unpack);
    engine.trainer.adapters.enforce_limit(&*engine.backend, &RunId::new("b"), &mut engine.runs);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["b"], (one, 0)));
}
