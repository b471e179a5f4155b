#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::engine::CpuEngine;
use crate::engine::fault_tests::{create, drain, engine, pass, start};
use crate::engine::run::LeftAdapter;

/// An engine with a run of each name, and the bytes of a packed adapter.
fn with_runs(names: &[&str]) -> (CpuEngine, usize) {
    let mut engine = engine();
    (0..).zip(names).for_each(|(seed, run)| create(&mut engine, run, seed));
    let bytes = engine.runs[&RunId::new(names[0])].adapter_bytes(&engine.cpu);
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
fn an_adapter_that_a_sampler_holds_stays() {
    let (mut engine, one) = with_runs(&["a", "b"]);
    engine.trainer.packed.limit = one;
    pack(&mut engine, &["a"], &[]);
    let held = engine.runs[&RunId::new("a")].packed();
    pack(&mut engine, &["b"], &[]);
    assert_eq!(packed(&engine), ["a", "b"]);
    drop(held);
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
