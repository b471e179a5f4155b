#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trainyard_protocol::custom_loss::CustomLoss;
use trainyard_protocol::{
    Completion, Datum, Engine as _, ForwardBackward, ModelExtents, Operation, RawBatch, RequestId, RunId, Tensor,
    TensorValues,
};

use super::Allowance;
use crate::engine::CpuEngine;
use crate::engine::fair_share::FairShare;
use crate::engine::fault_tests::{create, drain, engine, id, optim, pass, start};
use crate::loss::prepare_batch;

/// A request of a custom loss whose datums have two tokens with so many targets each. The loss costs about four elements
/// for each target, and for each of these exponentials.
pub(in crate::engine) fn custom_with(run: &str, datums: usize, targets: usize, exponentials: usize) -> Operation {
    custom_ending(run, datums, targets, exponentials, &[node("total", "sum", &[])])
}

/// A node that calls a method of the one before it.
fn node(name: &str, target: &str, arguments: &[i64]) -> Value {
    json!({"op": "call_method", "name": name, "target": target, "args": arguments})
}

fn custom_ending(run: &str, datums: usize, targets: usize, exponentials: usize, ending: &[Value]) -> Operation {
    // Logarithms keep values finite.
    let pair = |at| [node(&format!("e{at}"), "exp", &[]), node(&format!("l{at}"), "log", &[])];
    let calls = (0..exponentials).flat_map(pair).chain(ending.iter().cloned());
    let mut nodes = vec![json!({"op": "placeholder", "name": "logprobs", "target": "logprobs"})];
    for mut call in calls {
        let last = nodes.last().unwrap()["name"].clone();
        call["args"].as_array_mut().unwrap().insert(0, json!({"ref": last}));
        nodes.push(call);
    }
    let last = nodes.last().unwrap()["name"].clone();
    nodes.push(json!({"op": "output", "name": "output", "target": "output", "args": [[{"ref": last}, {"dict": {}}]]}));
    let definition = json!({
        "name": "f",
        "inputs": [{"name": "logprobs", "rank": 2}],
        "graph": {"format": 1, "nodes": nodes},
    });
    let datum = |at: usize| {
        let ids = (0..2 * targets).map(|id| ((id + at) % 512) as i64).collect();
        let targets = Tensor { shape: vec![2, targets], values: TensorValues::I64(ids) };
        let loss_fn_inputs = BTreeMap::from([("target_tokens".to_owned(), targets)]);
        Datum { tokens: vec![1, 2 + at as i64], loss_fn_inputs, images: Vec::new() }
    };
    let batch = RawBatch {
        data: (0..datums).map(datum).collect(),
        loss_fn: "custom".into(),
        loss_fn_config: BTreeMap::new(),
        custom_loss: Some(Ok(Arc::new(CustomLoss::read(&definition).unwrap()))),
        decoded: Default::default(),
    };
    let batch = prepare_batch(&batch, ModelExtents { vocab_size: 512, context: 512 }).unwrap();
    Operation::ForwardBackward(ForwardBackward { run: RunId::new(run), batch, forward_only: false })
}

/// A request of losses that are postponed.
fn dear(run: &str, datums: usize) -> Operation {
    custom_with(run, datums, 512, 100)
}

fn awaits_losses(engine: &CpuEngine, run: &str) -> bool {
    engine.trainer.tasks.iter().any(|task| task.id == id(run) && !task.is_ready())
}

/// A gate in the evaluation of the losses of a request.
struct Gate {
    is_open: Arc<AtomicBool>,
    is_abandoned: Arc<AtomicBool>,
}

impl Gate {
    /// A gate that is closed for evaluations on other threads than this one.
    fn before(request: &'static str, engine: &mut CpuEngine) -> Self {
        let gate = Self { is_open: Arc::default(), is_abandoned: Arc::default() };
        let (is_open, is_abandoned) = (Arc::clone(&gate.is_open), Arc::clone(&gate.is_abandoned));
        let own = std::thread::current().id();
        engine.ask_when_abandoned(Arc::new(move |asked: &RequestId| {
            while *asked == id(request) && std::thread::current().id() != own && !is_open.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            *asked == id(request) && is_abandoned.load(Ordering::Acquire)
        }));
        gate
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}

fn step_until(engine: &mut CpuEngine, is_reached: impl Fn(&CpuEngine) -> bool) -> Vec<Completion> {
    let mut done = Vec::new();
    for _ in 0..10_000 {
        if is_reached(engine) {
            break;
        }
        done.extend(engine.step());
    }
    assert!(is_reached(engine), "it is never reached");
    done
}

#[test]
fn losses_have_the_same_bits_in_a_pass_and_beside_the_engine() {
    let results = |base: usize, run: &str| {
        let mut engine = engine();
        create(&mut engine, run, 1);
        engine.trainer.allowance = Allowance { base, per_token: 0 };
        // A pass has all of these datums.
        engine.trainer.fair_share = FairShare::new(1 << 20);
        start(&mut engine, run, custom_with(run, 6, 128, 100));
        let mut losses = 0;
        let mut done = Vec::new();
        for _ in 0..10_000 {
            done.extend(engine.step());
            losses += usize::from(awaits_losses(&engine, run));
            if engine.is_idle() {
                break;
            }
        }
        start(&mut engine, run, optim(run));
        let step = drain(&mut engine).remove(run).unwrap().result;
        start(&mut engine, run, pass(run, 2));
        let after = drain(&mut engine).remove(run).unwrap().result;
        (losses > 0, format!("{:?} {step:?} {after:?}", done.pop().unwrap().result))
    };
    let inside = results(usize::MAX, "r");
    assert!(!inside.0 && inside.1.contains("loss:sum"), "{}", inside.1);
    // All losses, those behind the first two of a pass, and those of the default.
    for base in [0, 250_000, Allowance::default().base] {
        let (postponed, result) = results(base, "r");
        assert!(postponed);
        assert_eq!(result, inside.1, "{base}");
    }
}

#[test]
fn others_go_on_while_losses_are_evaluated() {
    let mut engine = engine();
    ["a", "b"].iter().for_each(|run| create(&mut engine, run, 1));
    let gate = Gate::before("a", &mut engine);
    start(&mut engine, "a", dear("a", 3));
    step_until(&mut engine, |engine| awaits_losses(engine, "a"));
    for operation in [pass("b", 4), optim("b"), custom_with("b", 2, 4, 0)] {
        start(&mut engine, "b", operation);
        let mut done = Vec::new();
        for _ in 0..1000 {
            done.extend(engine.step());
        }
        assert!(done.len() == 1 && done[0].id == id("b") && done[0].result.is_ok(), "{}", done.len());
        assert!(!engine.is_idle() && awaits_losses(&engine, "a"));
    }
    gate.open();
    assert!(drain(&mut engine)["a"].result.is_ok());
}

#[test]
fn tenants_take_turns_in_the_evaluation_of_losses() {
    let mut engine = engine();
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let (asked, own) = (Arc::clone(&order), std::thread::current().id());
    engine.ask_when_abandoned(Arc::new(move |request: &RequestId| {
        let mut order = asked.lock().unwrap();
        if std::thread::current().id() != own && order.last().is_none_or(|last| last != request.as_str()) {
            order.push(request.to_string());
        }
        false
    }));
    ["a", "b"].iter().for_each(|run| create(&mut engine, run, 1));
    // A pass has one of these datums.
    ["a", "b"].iter().for_each(|run| start(&mut engine, run, dear(run, 4)));
    assert!(drain(&mut engine).values().all(|completion| completion.result.is_ok()));
    let order = order.lock().unwrap();
    assert!(order.len() == 8 && order.iter().step_by(2).all(|request| *request == order[0]), "{order:?}");
}

#[test]
fn a_request_that_nobody_waits_for_ends_within_its_losses() {
    let mut engine = engine();
    create(&mut engine, "a", 1);
    let gate = Gate::before("a", &mut engine);
    start(&mut engine, "a", dear("a", 3));
    step_until(&mut engine, |engine| awaits_losses(engine, "a"));
    gate.is_abandoned.store(true, Ordering::Release);
    gate.open();
    let error = drain(&mut engine)["a"].result.clone().unwrap_err();
    assert!(error.message.contains("its session ended"), "{error}");
}

#[test]
fn an_engine_ends_without_waiting_for_losses() {
    let questions = |ends_early: bool| {
        let mut engine = engine();
        create(&mut engine, "a", 1);
        let (asked, own) = (Arc::new(AtomicUsize::new(0)), std::thread::current().id());
        let count = Arc::clone(&asked);
        engine.ask_when_abandoned(Arc::new(move |_: &RequestId| {
            let elsewhere = std::thread::current().id() != own;
            count.fetch_add(usize::from(elsewhere), Ordering::Relaxed);
            false
        }));
        start(&mut engine, "a", custom_with("a", 1, 512, 400));
        step_until(&mut engine, |engine| awaits_losses(engine, "a"));
        while ends_early && asked.load(Ordering::Relaxed) == 0 {
            engine.step();
        }
        if !ends_early {
            drain(&mut engine);
        }
        drop(engine);
        asked.load(Ordering::Relaxed)
    };
    let (all, before_the_end) = (questions(false), questions(true));
    assert!(before_the_end < all, "{before_the_end} of {all}");
}

#[test]
fn a_request_cancelled_within_its_losses_leaves_its_run_as_it_was() {
    let results = |cancelled: bool| {
        let mut engine = engine();
        create(&mut engine, "a", 1);
        if cancelled {
            let gate = Gate::before("a", &mut engine);
            start(&mut engine, "a", dear("a", 3));
            step_until(&mut engine, |engine| awaits_losses(engine, "a"));
            engine.cancel(&[id("a")].into());
            assert!(engine.is_idle());
            gate.open();
        }
        start(&mut engine, "a", dear("a", 2));
        let first = drain(&mut engine).remove("a").unwrap().result;
        assert!(first.is_ok());
        start(&mut engine, "a", optim("a"));
        let step = drain(&mut engine).remove("a").unwrap().result;
        format!("{first:?} {step:?}")
    };
    assert_eq!(results(true), results(false));
}

#[test]
fn a_datum_whose_loss_fails_beside_the_engine_is_named() {
    let mut engine = engine();
    create(&mut engine, "a", 1);
    start(
        &mut engine,
        "a",
        custom_ending("a", 3, 512, 100, &[node("wrong", "reshape", &[7]), node("total", "sum", &[])]),
    );
    step_until(&mut engine, |engine| awaits_losses(engine, "a"));
    let error = drain(&mut engine)["a"].result.clone().unwrap_err();
    assert!(error.message.starts_with("data[0]: custom loss \"f\": node \"wrong\""), "{error}");
    start(&mut engine, "a", pass("a", 1));
    assert!(drain(&mut engine)["a"].result.is_ok());
}
