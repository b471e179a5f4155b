//! Gradients too large for their type: what would make weights NaN is refused and changes nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use trainyard_protocol::Category;

use super::fault_tests::{create, drain, engine, optim, pass, start};
use super::run::Pending;
use super::*;
use crate::model::Gradients;

/// Runs `a`, `b` and `c` with a gradient each.
fn trained() -> CpuEngine {
    let mut engine = engine();
    for (seed, run) in (0..).zip(["a", "b", "c"]) {
        create(&mut engine, run, seed);
        start(&mut engine, run, pass(run, 4));
    }
    assert!(drain(&mut engine).values().all(|done| done.result.is_ok()));
    engine
}

fn sum(run: &Run) -> Gradients {
    run.pending.as_ref().unwrap().sum.to_vec()
}

/// Everything of a run that a step changes.
fn state(engine: &CpuEngine, run: &str) -> String {
    let run = &engine.runs[&RunId::new(run)];
    let frozen = run.freeze();
    format!("{:?} {:?} {:?} {:?} {}", frozen.masters, frozen.moments, frozen.grads, run.packed_values(), run.step)
}

#[test]
fn a_step_with_a_gradient_that_is_not_finite_is_refused() {
    let steps = |value: Option<f32>| {
        let mut engine = trained();
        if let Some(value) = value {
            let CpuEngine { cpu, runs, .. } = &mut engine;
            let run = runs.get_mut(&RunId::new("b")).unwrap();
            let mut grads = sum(run);
            grads[1][0] = value;
            run.pending = Some(Pending::new(cpu, grads));
        }
        let before = state(&engine, "b");
        for run in ["a", "b", "c"] {
            start(&mut engine, run, optim(run));
        }
        let mut done = drain(&mut engine);
        assert!(["a", "c"].iter().all(|run| done[*run].result.is_ok()));
        (["a", "c"].map(|run| state(&engine, run)), done.remove("b").unwrap(), before, state(&engine, "b"))
    };
    let (neighbours, done, before, after) = steps(None);
    assert!(done.result.is_ok() && before != after);
    for value in [f32::INFINITY, f32::NAN] {
        let (beside, done, before, after) = steps(Some(value));
        let error = done.result.unwrap_err();
        assert_eq!((error.category, done.lost_run), (Category::User, None));
        assert!(error.message.contains("gradient is not finite"), "{error}");
        assert!(before == after, "the refused step changed its run");
        assert!(neighbours == beside, "the refused step changed its neighbours");
    }
}

#[test]
fn a_gradient_whose_sum_overflows_is_refused() {
    let mut engine = trained();
    let CpuEngine { cpu, runs, .. } = &mut engine;
    let run = runs.get_mut(&RunId::new("b")).unwrap();
    let large: Gradients = sum(run).iter().map(|values| vec![3e38; values.len()]).collect();
    run.accumulate(cpu, large.clone()).unwrap();
    let before = sum(run);
    let error = run.accumulate(cpu, large).unwrap_err();
    assert_eq!(error.category, Category::User);
    assert!(error.message.contains("sum of the gradients") && error.message.contains("not finite"), "{error}");
    assert!(before == sum(run));
    // The run goes on with what it had.
    start(&mut engine, "b", optim("b"));
    let Ok(OpResult::OptimStep { metrics }) = &drain(&mut engine)["b"].result else { panic!("the step failed") };
    assert!(metrics["grad_norm"] > 3e38 && metrics["grad_norm"].is_finite());
    let masters = engine.runs[&RunId::new("b")].freeze().masters;
    assert!(masters.iter().flatten().all(|x| x.is_finite()));
}

#[test]
fn the_norm_is_that_of_the_sum() {
    let mut engine = trained();
    start(&mut engine, "b", pass("b", 3));
    drain(&mut engine);
    let run = &engine.runs[&RunId::new("b")];
    let again = Pending::new(&engine.cpu, sum(run));
    assert_eq!(run.pending.as_ref().unwrap().norm.to_bits(), again.norm.to_bits());
}
