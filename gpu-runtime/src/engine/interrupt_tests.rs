//! Passes and loads on several ranks whose requests nobody waits for.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use trainyard_protocol::{Engine as _, LoadState, LoraSpec, ModelHead, OpResult, Optimizer, SaveState, SaveTarget};

use super::*;
use crate::engine::fault_tests::{id, optim, pass};
use crate::load::load;

fn engine(layout: &str, is_full: bool) -> ParallelEngine<HostBackend> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let parallel: Parallel = layout.parse().unwrap();
    let options = EngineOptions { parallel, threads: 2, ..EngineOptions::default() };
    let models = (0..parallel.world()).map(|_| vec![("m".to_owned(), load(&path).unwrap())]).collect();
    let mut engine = ParallelEngine::new(models, options).unwrap();
    let lora = LoraSpec::on_all(4, 1);
    let lora = (!is_full).then_some(lora);
    let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    complete(&mut engine, "create", Operation::CreateRun { run: RunId::new("a"), spec }).unwrap();
    engine
}

/// The result of an operation that the engine completes, without losing a rank.
fn complete(engine: &mut ParallelEngine<HostBackend>, name: &str, operation: Operation) -> Result<OpResult, OpError> {
    engine.start(id(name), TenantShare::new("t"), operation);
    let mut done = Vec::new();
    while !engine.is_idle() && engine.failure().is_none() {
        done.extend(engine.step());
    }
    assert_eq!(engine.failure(), None);
    assert_eq!(done.len(), 1);
    done.pop().unwrap().result
}

/// Has the request "gone" be abandoned from the question of rank 0 of this index on; how often that asks.
fn abandon_at(engine: &mut ParallelEngine<HostBackend>, index: usize) -> Arc<AtomicUsize> {
    let asked = Arc::<AtomicUsize>::default();
    let (count, first) = (Arc::clone(&asked), thread::current().id());
    engine.ask_when_abandoned(Arc::new(move |request| {
        let is_meant = request.as_str() == "gone" && thread::current().id() == first;
        is_meant && count.fetch_add(1, Ordering::Relaxed) >= index
    }));
    asked
}

#[test]
fn a_pass_that_nobody_waits_for_ends_on_all_ranks_at_the_same_point() {
    let cases = [("tp=2", false, 5), ("dp=2", false, 5), ("dp=2", true, 1), ("dp=2,zero=3", true, 5)];
    for (layout, is_full, datums) in cases.into_iter().chain([("dp=2,zero=3", true, 1), ("tp=2,dp=2,zero=3", true, 3)])
    {
        let results = |abandoned_at: Option<usize>| {
            let mut engine = engine(layout, is_full);
            let asked = abandon_at(&mut engine, abandoned_at.unwrap_or_default());
            let ended = abandoned_at.map(|_| complete(&mut engine, "gone", pass("a", datums)));
            let after = [pass("a", 3), optim("a"), pass("a", 3)].map(|op| complete(&mut engine, "later", op).unwrap());
            (ended, asked.load(Ordering::Relaxed), format!("{after:?}"))
        };
        let (_, _, expected) = results(None);
        let (whole, questions, _) = results(Some(usize::MAX));
        assert!(whole.unwrap().is_ok(), "{layout}");
        // One for each of two blocks there and back, and one after each half.
        assert_eq!(questions, 6, "{layout}");
        for at in 0..questions {
            let (ended, asked, after) = results(Some(at));
            let error = ended.unwrap().unwrap_err();
            assert!(error.message.contains("its session ended"), "{layout}: {error}");
            assert_eq!(asked, at + 1, "{layout}: it goes on");
            assert_eq!(after, expected, "{layout}: the run is as it was");
        }
    }
}

#[test]
fn a_load_that_nobody_waits_for_ends_on_ranks_that_are_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine("tp=2", false);
    let target = SaveTarget { dir: folder.path().join("saved"), overwrite: false };
    let save = SaveState { run: RunId::new("a"), target: target.clone() };
    complete(&mut engine, "save", Operation::SaveState(save)).unwrap();
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    engine.ask_when_abandoned(Arc::new(move |request| {
        request.as_str() == "gone" && count.fetch_add(1, Ordering::Relaxed) >= 6
    }));
    let load = |run: &str| {
        let (run, dir, create) = (RunId::new(run), target.dir.clone(), None);
        let load = LoadState { run, dir, with_optimizer: false, create, checkpoint_base: None, uploaded: None };
        Operation::LoadState(load)
    };
    let error = complete(&mut engine, "gone", load("a")).unwrap_err();
    assert!(error.message.contains("its session ended"), "{error}");
    // Each rank asks once more.
    assert!(asked.load(Ordering::Relaxed) <= 8);
    complete(&mut engine, "later", load("a")).unwrap();
    complete(&mut engine, "pass", pass("a", 3)).unwrap();
}
