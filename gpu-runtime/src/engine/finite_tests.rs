//! Gradients that are not finite are rejected before they make weights NaN, and change nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use trainyard_protocol::Category;

use super::fault_tests::{create, drain, engine, optim, pass, start};
use super::*;
use crate::backend::Params;

/// An engine with runs `a`, `b` and `c`, each with an accumulated gradient.
fn trained() -> CpuEngine {
    let mut engine = engine();
    for (seed, run) in (0..).zip(["a", "b", "c"]) {
        create(&mut engine, run, seed);
        start(&mut engine, run, pass(run, 4));
    }
    assert!(drain(&mut engine).values().all(|done| done.result.is_ok()));
    engine
}

fn sum(run: &TrainingRun<HostBackend>) -> Vec<Vec<f32>> {
    let sum = &run.gradient.as_ref().unwrap().sum;
    (0..sum.len()).map(|i| sum.host(i).into_owned()).collect()
}

/// The state of a run that a step changes, as text.
fn state(engine: &CpuEngine, run: &str) -> String {
    let backend = engine.backend();
    let run = &engine.runs[&RunId::new(run)];
    let gradient = run.gradient.as_ref().map(|gradient| &gradient.sum);
    format!("{:?} {:?} {gradient:?} {:?} {}", run.masters, run.moments, run.packed_values(backend), run.step)
}

#[test]
fn a_step_with_a_gradient_that_is_not_finite_is_refused() {
    let steps = |value: Option<f32>| {
        let mut engine = trained();
        if let Some(value) = value {
            let CpuEngine { backend, runs, .. } = &mut engine;
            let run = runs.get_mut(&RunId::new("b")).unwrap();
            let mut grads = sum(run);
            grads[1][0] = value;
            run.gradient = Some(run.accumulated(backend, backend.upload_params(grads)));
        }
        let before = state(&engine, "b");
        for run in ["a", "b", "c"] {
            start(&mut engine, run, optim(run));
        }
        let mut done = drain(&mut engine);
        assert!(["a", "c"].iter().all(|run| done[*run].result.is_ok()));
        (["a", "c"].map(|run| state(&engine, run)), done.remove("b").unwrap(), before, state(&engine, "b"))
    };
    let (undisturbed, done, before, after) = steps(None);
    assert!(done.result.is_ok() && before != after);
    for value in [f32::INFINITY, f32::NAN] {
        let (others, done, before, after) = steps(Some(value));
        let error = done.result.unwrap_err();
        assert_eq!((error.category, done.lost_run), (Category::User, None));
        assert!(error.message.contains("gradient is not finite"), "{error}");
        assert!(before == after, "the refused step changed its run");
        assert!(undisturbed == others, "the refused step changed other runs");
    }
}

#[test]
fn a_gradient_whose_sum_overflows_is_refused() {
    let mut engine = trained();
    let CpuEngine { backend, runs, .. } = &mut engine;
    let run = runs.get_mut(&RunId::new("b")).unwrap();
    let large = backend.upload_params(sum(run).iter().map(|values| vec![3e38; values.len()]).collect());
    run.accumulate(backend, large.clone()).unwrap();
    let before = sum(run);
    let error = run.accumulate(backend, large).unwrap_err();
    assert_eq!(error.category, Category::User);
    assert!(error.message.contains("sum of the gradients") && error.message.contains("not finite"), "{error}");
    assert!(before == sum(run));
    // The run continues with its previous sum.
    start(&mut engine, "b", optim("b"));
    let Ok(OpResult::OptimStep { metrics }) = &drain(&mut engine)["b"].result else { panic!("the step failed") };
    assert!(metrics["grad_norm"] > 3e38 && metrics["grad_norm"].is_finite());
    let masters = &engine.runs[&RunId::new("b")].masters;
    assert!((0..masters.len()).all(|i| masters.host(i).iter().all(|x| x.is_finite())));
}

#[test]
fn the_norm_is_that_of_the_sum() {
    let mut engine = trained();
    start(&mut engine, "b", pass("b", 3));
    drain(&mut engine);
    let run = &engine.runs[&RunId::new("b")];
    let recomputed = run.accumulated(engine.backend(), engine.backend().upload_params(sum(run)));
    assert_eq!(run.gradient.as_ref().unwrap().norm.to_bits(), recomputed.norm.to_bits());
}
