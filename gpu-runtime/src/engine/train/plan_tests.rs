#![allow(clippy::unwrap_used, reason = "tests")]

use trainyard_protocol::{Engine as _, Operation, RequestId};

use super::super::loss_thread_tests::custom_with;
use super::*;
use crate::engine::CpuEngine;
use crate::engine::fair_share::FairShare;
use crate::engine::fault_tests::{create, drain, engine, optim, pass, start};

/// Requests of one example of `runs` runs, and the bytes that each holds in a pass.
fn waiting(runs: u64) -> (CpuEngine, usize) {
    let mut engine = engine();
    let names: Vec<String> = (0..runs).map(|run| format!("r{run}")).collect();
    (0..).zip(&names).for_each(|(seed, run)| create(&mut engine, run, seed));
    names.iter().for_each(|run| start(&mut engine, run, pass(run, 1)));
    let own = engine.runs[&RunId::new("r0")].pass_bytes(true);
    (engine, own)
}

fn members(engine: &mut CpuEngine) -> usize {
    let CpuEngine { runs, trainer, .. } = engine;
    trainer.plan(runs).parts.len()
}

#[test]
fn adapters_and_gradients_of_a_pass_stay_within_the_budget() {
    let (mut engine, own) = waiting(8);
    assert_eq!(members(&mut engine), 8);
    // The limit of rows would let more take part.
    for (budget, expected) in [(3 * own, 3), (3 * own - 1, 2)] {
        engine.trainer.activation_bytes = budget;
        assert_eq!(members(&mut engine), expected);
    }
}

#[test]
fn a_request_alone_is_computed_whatever_its_size() {
    let (mut engine, _) = waiting(3);
    engine.trainer.activation_bytes = 1;
    assert_eq!(members(&mut engine), 1);
}

#[test]
fn forward_passes_and_those_that_train_have_their_own_rows() {
    let mut engine = engine();
    create(&mut engine, "r", 1);
    engine.trainer.microbatch = MicrobatchRows { training: 80, forward: 40 };
    let mut planned = |forward_only| {
        // 8 examples of 20 tokens.
        let mut operation = pass("r", 8);
        if let Operation::ForwardBackward(request) = &mut operation {
            request.forward_only = forward_only;
        }
        start(&mut engine, "r", operation);
        let CpuEngine { runs, trainer, .. } = &mut engine;
        let plan = trainer.plan(runs);
        trainer.tasks.clear();
        (plan.rows, plan.capacity)
    };
    assert_eq!((planned(true), planned(false)), ((40, 40), (80, 80)));
}

/// A request of a cheap custom loss: see [`custom_with`].
fn custom(run: &str, datums: usize, targets: usize) -> Operation {
    custom_with(run, datums, targets, 0)
}

/// Datums of the tasks in the next pass.
fn datums(engine: &mut CpuEngine) -> usize {
    let CpuEngine { runs, trainer, .. } = engine;
    trainer.plan(runs).parts.iter().flat_map(|part| &part.counts).sum()
}

#[test]
fn a_pass_has_no_more_elements_of_custom_losses_than_its_budget() {
    for (targets, expected) in [(4, 16), (128, 6), (512, 1)] {
        let mut engine = engine();
        create(&mut engine, "r", 1);
        engine.trainer.microbatch = MicrobatchRows { training: 256, forward: 256 };
        // The share of a tenant that is alone would end the pass before.
        engine.trainer.fair_share = FairShare::new(1 << 20);
        start(&mut engine, "r", custom("r", 16, targets));
        assert_eq!(datums(&mut engine), expected, "{targets}");
    }
}

/// Others have their turn after each expensive datum, and the share is charged for more than rows.
#[test]
fn a_tenant_with_custom_losses_is_charged_for_their_targets() {
    let mut engine = engine();
    create(&mut engine, "a", 1);
    create(&mut engine, "b", 2);
    engine.trainer.microbatch = MicrobatchRows { training: 20, forward: 20 };
    start(&mut engine, "a", custom("a", 8, 512));
    start(&mut engine, "b", pass("b", 8));
    let is_waiting = |engine: &CpuEngine, run: &str| engine.trainer.tasks.iter().any(|task| task.run.as_str() == run);
    while is_waiting(&engine, "b") {
        engine.step();
    }
    let of_a = engine.trainer.tasks.iter().find(|task| task.run.as_str() == "a").map(|task| task.progress());
    assert!(of_a.is_some_and(|datums| datums <= 2), "{of_a:?} datums of a before the 8 of b");
    assert!(drain(&mut engine).values().all(|completion| completion.result.is_ok()));
}

/// Bits do not depend on how many datums share a pass.
#[test]
fn custom_losses_have_the_same_bits_in_passes_of_any_size() {
    let mut results = Vec::new();
    for rows in [2, 8, 256] {
        let mut engine = engine();
        create(&mut engine, "r", 1);
        engine.trainer.microbatch = MicrobatchRows { training: rows, forward: rows };
        start(&mut engine, "r", custom("r", 8, 512));
        let mut done = drain(&mut engine);
        results.push(format!("{:?}", done.remove("r").unwrap().result));
    }
    assert!(results[0].contains("loss:sum"), "{}", results[0]);
    assert!(results.iter().all(|result| *result == results[0]));
}

/// Only the request that nobody waits for ends early; the others of its pass have the results that they have by themselves.
#[test]
fn an_abandoned_request_fails_in_its_pass() {
    let results = |abandoned: bool| {
        let mut engine = engine();
        for run in ["a", "b"] {
            create(&mut engine, run, 1);
        }
        engine.ask_when_abandoned(Arc::new(move |request| abandoned && request.as_str() == "a"));
        for run in ["a", "b"] {
            start(&mut engine, run, custom(run, 3, 8));
        }
        assert_eq!(members(&mut engine), 2);
        let mut done = drain(&mut engine);
        let mut result = |run: &str| done.remove(run).unwrap().result;
        ["a", "b"].map(&mut result)
    };
    let ([all, expected], [ended, found]) = (results(false), results(true));
    assert!(all.is_ok());
    let error = ended.unwrap_err();
    assert!(error.message.contains("its session ended"), "{error}");
    assert_eq!(found, expected);
}

#[test]
fn a_cancelled_request_leaves_its_run_as_it_was() {
    let results = |cancelled: bool| {
        let mut engine = engine();
        create(&mut engine, "r", 1);
        if cancelled {
            engine.trainer.microbatch = MicrobatchRows { training: 40, forward: 40 };
            start(&mut engine, "r", pass("r", 8));
            assert!(engine.step().is_empty() && engine.trainer.tasks[0].progress() > 0);
            engine.cancel(&[RequestId::new("r")].into());
            assert!(engine.is_idle() && drain(&mut engine).is_empty());
            engine.trainer.microbatch = MicrobatchRows { training: 256, forward: 256 };
        }
        start(&mut engine, "r", pass("r", 5));
        let first = drain(&mut engine).remove("r").unwrap().result;
        start(&mut engine, "r", optim("r"));
        let step = drain(&mut engine).remove("r").unwrap().result;
        format!("{first:?} {step:?}")
    };
    assert_eq!(results(true), results(false));
}
