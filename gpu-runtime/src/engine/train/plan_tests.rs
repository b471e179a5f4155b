use trainyard_protocol::Operation;

use super::*;
use crate::engine::CpuEngine;
use crate::engine::fault_tests::{create, engine, pass, start};

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
