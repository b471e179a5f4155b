#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use super::*;
use crate::engine::CpuEngine;
use crate::engine::fault_tests::{create, drain, engine, optim, pass, start};
use crate::engine::run::LeftAdapter;
use crate::kernels::gemm::Factor;

/// An engine with a run of each name, and the bytes of a packed adapter.
fn with_runs(names: &[&str]) -> (CpuEngine, usize) {
    let mut engine = engine();
    (0..).zip(names).for_each(|(seed, run)| create(&mut engine, run, seed));
    let bytes = engine.runs[&RunId::new(names[0])].adapter_bytes(true);
    (engine, bytes)
}

/// Bytes of packed adapters and of what was left.
fn bytes(engine: &CpuEngine) -> (usize, usize) {
    let left = engine.trainer.packed.left.as_ref().map_or(0, LeftAdapter::bytes);
    (engine.runs.values().map(Run::packed_bytes).sum(), left)
}

fn pack(engine: &mut CpuEngine, members: &[&str], waiting: &[&str]) {
    let ids = |names: &[&str]| -> Vec<RunId> { names.iter().map(|name| RunId::new(*name)).collect() };
    let (members, waiting) = (ids(members), ids(waiting));
    let [members, waiting] = [&members, &waiting].map(|ids| ids.iter().collect::<Vec<_>>());
    let CpuEngine { cpu, runs, trainer, .. } = engine;
    trainer.packed.pack(cpu, runs, &members, &waiting);
    // As the backward pass does.
    for adapter in members.iter().filter_map(|member| runs[*member].packed()) {
        for pair in adapter.layers.iter().flatten().flatten().chain(&adapter.unembed) {
            let _ = (pair.a_t(cpu), pair.b_t(cpu));
        }
    }
}

fn packed(engine: &CpuEngine) -> Vec<&str> {
    let packed = engine.runs.iter().filter(|(_, run)| run.packed_bytes() > 0);
    packed.map(|(id, _)| id.as_str()).collect()
}

#[test]
fn what_an_adapter_takes_is_known_before_it_is_packed() {
    let (mut engine, predicted) = with_runs(&["a"]);
    start(&mut engine, "a", pass("a", 1));
    drain(&mut engine);
    assert_eq!(bytes(&engine), (predicted, 0));
}

#[test]
fn runs_outside_a_pass_make_room_for_those_in_it() {
    let (mut engine, one) = with_runs(&["a", "b", "c"]);
    engine.trainer.packed.limit = one * 3 / 2;
    pack(&mut engine, &["a"], &["a"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["a"], (one, 0)));
    // In the memory of the first.
    pack(&mut engine, &["b"], &["a", "b"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["b"], (one, 0)));
    // A pass has what it needs.
    pack(&mut engine, &["a", "b"], &["a", "b"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["a", "b"], (2 * one, 0)));
    // Those without requests go first.
    engine.trainer.packed.limit = one * 5 / 2;
    pack(&mut engine, &["c"], &["a", "c"]);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["a", "c"], (2 * one, 0)));
}

#[test]
fn samplers_share_an_adapter_and_hold_no_transposes() {
    let (mut engine, whole) = with_runs(&["a"]);
    start(&mut engine, "a", pass("a", 2));
    drain(&mut engine);
    let CpuEngine { cpu, runs, .. } = &mut engine;
    let run = runs.get_mut(&RunId::new("a")).unwrap();
    let forward = run.adapter_bytes(false);
    let transposes = Factor::needs_packed_transpose(cpu, cpu.input_type(run.weights().dtype));
    assert!(if transposes { forward < whole * 2 / 3 } else { forward == whole });
    let [first, second] = [run.sampler_weights(cpu), run.sampler_weights(cpu)].map(|weights| weights.adapter.unwrap());
    assert!(Arc::ptr_eq(&first, &second), "the same weights are one adapter");
    let values = first.params_of();
    start(&mut engine, "a", optim("a"));
    start(&mut engine, "a2", pass("a", 2));
    drain(&mut engine);
    let CpuEngine { cpu, runs, .. } = &mut engine;
    let run = runs.get_mut(&RunId::new("a")).unwrap();
    assert_eq!((first.bytes(), run.packed_bytes()), (forward, whole));
    assert!(values == first.params_of());
    let third = run.sampler_weights(cpu).adapter.unwrap();
    assert!(!Arc::ptr_eq(&first, &third) && values != third.params_of());
    assert_eq!(third.bytes(), forward);
}

#[test]
fn after_its_request_a_run_keeps_what_the_limit_allows() {
    let (mut engine, one) = with_runs(&["a", "b"]);
    engine.trainer.packed.limit = one * 3 / 2;
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
    // What is left counts as well.
    pack(&mut engine, &["a", "b"], &[]);
    engine.trainer.packed.left = engine.runs.get_mut(&RunId::new("a")).and_then(Run::unpack);
    engine.trainer.packed.settle(&RunId::new("b"), &mut engine.runs);
    assert_eq!((packed(&engine), bytes(&engine)), (vec!["b"], (one, 0)));
}
