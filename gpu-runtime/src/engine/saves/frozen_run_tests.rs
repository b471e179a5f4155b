//! Data that saves share with a run, and that ranks gather for them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::thread;
use std::time::Duration;

use trainyard_protocol::{Engine as _, LoraSpec, ModelHead, Operation, Optimizer, RunId, RunSpec, TenantShare};

use super::*;
use crate::backend::HostBackend;
use crate::checkpoint::Elements;
use crate::collective::{Ranks, local_ranks};
use crate::engine::fault_tests::{create, drain, engine, id, optim, pass, start};
use crate::engine::{CpuEngine, Engine, EngineOptions, host_backend};
use crate::load::load;

/// Addresses of masters, moments and gradient.
fn addresses(engine: &CpuEngine) -> Vec<*const crate::backend::host::HostParams> {
    let run = &engine.runs[&RunId::new("a")];
    let gradient = run.gradient.iter().map(|gradient| &gradient.sum);
    [&run.masters].into_iter().chain(run.moments.iter().flatten()).chain(gradient).map(Arc::as_ptr).collect()
}

fn trained() -> CpuEngine {
    let mut engine = engine();
    create(&mut engine, "a", 1);
    for operation in [pass("a", 3), optim("a"), pass("a", 3)] {
        start(&mut engine, "a", operation);
        assert!(drain(&mut engine)["a"].result.is_ok());
    }
    engine
}

#[test]
fn a_run_copies_what_the_save_in_progress_needs_and_nothing_else() {
    let cases = [(Contents::Weights, [true, false, false, false]), (Contents::State, [true, true, true, false])];
    for (contents, copied) in cases.into_iter().chain([(Contents::Run, [true; 4])]) {
        let mut engine = trained();
        let frozen = engine.runs[&RunId::new("a")].freeze(&engine.backend, contents).unwrap();
        let before = addresses(&engine);
        // The pass adds to the gradient, the step changes the rest.
        start(&mut engine, "a", pass("a", 3));
        assert!(drain(&mut engine)["a"].result.is_ok());
        let [.., gradient] = addresses(&engine)[..] else { unreachable!() };
        start(&mut engine, "a", optim("a"));
        assert!(drain(&mut engine)["a"].result.is_ok());
        let after = [&addresses(&engine)[..], &[gradient]].concat();
        let found: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
        assert_eq!(found, copied, "{contents:?}");
        assert_eq!((frozen.moments.is_some(), frozen.gradient.is_some()), (copied[1], copied[3]));
    }
}

#[test]
fn arrays_in_memory_of_the_host_are_not_copied_to_be_read() {
    let engine = trained();
    let frozen = engine.runs[&RunId::new("a")].freeze(&engine.backend, Contents::Run).unwrap();
    let gathered = Arrays::<HostBackend>::Gathered(vec![vec![1.0; 3]]);
    for arrays in [&frozen.masters, frozen.gradient.as_ref().unwrap(), &gathered] {
        let each = arrays.each();
        assert!(!each.is_empty() && each.iter().all(|array| matches!(array.whole(), Ok(Cow::Borrowed(_)))));
    }
}

/// Bytes that the last rank sends for saves of each contents.
fn sent_for_saves(layout: &str, lora: Option<LoraSpec>) -> [u64; 3] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let options = EngineOptions { parallel: layout.parse().unwrap(), threads: 1, ..EngineOptions::default() };
    let sent = |rank| {
        let models = vec![("m".to_owned(), load(&path).unwrap())];
        let ranks = Ranks::new(Arc::new(rank));
        let mut engine = Engine::on_ranks(host_backend(&options), models, options.of_rank(), ranks).unwrap();
        let (optimizer, head) = (Optimizer::AdamW, ModelHead::Unembedding);
        let spec = RunSpec { base_model: "m".into(), lora: lora.clone(), optimizer, head };
        let new = Operation::CreateRun { run: RunId::new("a"), spec };
        for operation in [new, pass("a", 3), optim("a"), pass("a", 3)] {
            engine.start(id("r"), TenantShare::new("t"), operation);
            while !engine.is_idle() {
                engine.step().into_iter().for_each(|done| drop(done.result.unwrap()));
                assert_eq!(engine.failure(), None);
            }
        }
        [Contents::Weights, Contents::State, Contents::Run].map(|contents| {
            let before = engine.ranks.used();
            let frozen = engine.runs[&RunId::new("a")].freeze(&engine.backend, contents);
            assert_eq!(frozen.is_some(), engine.ranks.rank() == 0);
            engine.ranks.used().since(&before).bytes_sent
        })
    };
    thread::scope(|scope| {
        let ranks = local_ranks(options.parallel.world(), Duration::from_secs(60)).into_iter();
        let running: Vec<_> = ranks.map(|rank| scope.spawn(|| sent(rank))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).last().unwrap()
    })
}

#[test]
fn ranks_gather_what_a_save_needs_and_nothing_else() {
    let lora = LoraSpec::on_all(4, 1);
    // The first replica has all masters.
    let [weights, state, run] = sent_for_saves("dp=2", Some(lora.clone()));
    assert!(weights == 0 && state > 0 && 2 * run == 3 * state, "{state} {run}");
    for (layout, lora) in [("tp=2", Some(lora)), ("dp=2,zero=3", None)] {
        let [weights, state, run] = sent_for_saves(layout, lora);
        assert!(weights > 0 && state == 3 * weights && run == 4 * weights, "{layout}: {weights} {state} {run}");
    }
}
