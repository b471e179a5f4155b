#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use trainyard_protocol::{Engine as _, LoadState, LoraSpec, ModelHead, Optimizer, SaveState, SaveTarget};

use super::*;
use crate::backend::Params as _;
use crate::collective::Rendezvous;
use crate::config::TensorSource;
use crate::engine::CpuEngine;
use crate::engine::fault_tests::{id, optim, pass};
use crate::engine::train::loss_thread_tests::custom_with;
use crate::load::load;
use crate::load::tests::{fp8, in_gguf, mxfp4};

fn engine() -> ParallelEngine<HostBackend> {
    engine_of("tp=2")
}

fn engine_of(layout: &str) -> ParallelEngine<HostBackend> {
    engine_with(layout, Some(LoraSpec::on_all(4, 1)))
}

fn engine_with(layout: &str, lora: Option<LoraSpec>) -> ParallelEngine<HostBackend> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let parallel: Parallel = layout.parse().unwrap();
    let options = EngineOptions { parallel, threads: 2, ..EngineOptions::default() };
    let models = (0..parallel.world()).map(|_| vec![("m".to_owned(), load(&path).unwrap())]).collect();
    let mut engine = ParallelEngine::new(models, options).unwrap();
    let spec = RunSpec { base_model: "m".into(), lora, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding };
    start(&mut engine, "create", Operation::CreateRun { run: RunId::new("a"), spec });
    assert_eq!(drain(&mut engine), 1);
    engine
}

fn start(engine: &mut ParallelEngine<HostBackend>, name: &str, operation: Operation) {
    engine.start(id(name), TenantShare::new("t"), operation);
}

/// Steps until nothing is left to do, or the engine fails; how many operations were completed.
fn drain(engine: &mut ParallelEngine<HostBackend>) -> usize {
    let mut completed = 0;
    while !engine.is_idle() && engine.failure().is_none() {
        completed += engine.step().len();
    }
    completed
}

fn failure(engine: &mut ParallelEngine<HostBackend>, operation: Operation) -> String {
    start(engine, "last", operation);
    assert_eq!(drain(engine), 0, "nothing is completed by ranks that differ");
    assert!(engine.step().is_empty());
    engine.failure().unwrap().message
}

#[test]
fn a_rank_that_goes_another_way_ends_the_engine() {
    let mut engine = engine();
    // Only the follower unloads the run.
    engine.send(&Command::UnloadRun(RunId::new("a")));
    let message = failure(&mut engine, pass("a", 3));
    assert!(
        message.starts_with("rank 1 entered barrier of [") && message.contains("while rank 0 entered"),
        "{message}"
    );
    // It stays so.
    start(&mut engine, "step", optim("a"));
    assert!(engine.step().is_empty());
    assert_eq!(engine.failure().unwrap().message, message);
}

#[test]
fn a_panic_on_one_rank_ends_the_engine() {
    let mut engine = engine();
    let mut poisoned = pass("a", 3);
    if let Operation::ForwardBackward(request) = &mut poisoned {
        request.batch.data[1].tokens[3] = u32::MAX;
    }
    engine.send(&Command::Start(id("pass"), TenantShare::new("t"), Box::new(poisoned)));
    engine.leader.start(id("pass"), TenantShare::new("t"), pass("a", 3));
    assert_eq!(drain(&mut engine), 0);
    let message = engine.failure().unwrap().message;
    // The rank that panicked makes up for the decisions that its pass has left out.
    let found = message.starts_with("rank 1 entered broadcast from rank 0")
        && message.contains("rank 0 entered all-reduce of [");
    assert!(found, "{message}");
}

#[test]
fn a_panic_on_all_ranks_fails_its_request_alone() {
    let mut engine = engine();
    let mut poisoned = pass("a", 3);
    if let Operation::ForwardBackward(request) = &mut poisoned {
        request.batch.data[1].tokens[3] = u32::MAX;
    }
    start(&mut engine, "pass", poisoned);
    assert_eq!(drain(&mut engine), 1);
    assert_eq!(engine.failure(), None);
}

#[test]
fn a_rank_that_is_lost_ends_the_engine() {
    let mut engine = engine();
    engine.followers[0].as_thread().unwrap().end();
    let message = failure(&mut engine, pass("a", 3));
    assert!(message.starts_with("rank 1 was lost during ") && message.ends_with("its thread ended"), "{message}");
}

/// Losses that are evaluated beside the engine, on all ranks: datums of replicas differ.
#[test]
fn ranks_evaluate_losses_beside_the_engine_together() {
    let outcome = |layout: &str| {
        let mut engine = engine_of(layout);
        start(&mut engine, "a", custom_with("a", 5, 512, 100));
        start(&mut engine, "b", custom_with("a", 1, 512, 100));
        let mut done = Vec::new();
        while !engine.is_idle() && engine.failure().is_none() {
            done.extend(engine.step());
        }
        done.sort_by_key(|completion| completion.id.clone());
        assert!(engine.failure().is_none() && done.len() == 2, "{layout}: {:?}", engine.failure());
        format!("{done:?}")
    };
    let alone = outcome("tp=1");
    assert!(alone.contains("loss:sum"), "{alone}");
    for layout in ["dp=2", "dp=3"] {
        assert_eq!(outcome(layout), alone, "{layout}");
    }
    assert!(outcome("tp=2").contains("loss:sum"));
}

#[test]
fn a_replica_that_is_lost_or_goes_another_way_ends_the_engine() {
    let layouts = [("dp=2", false), ("tp=2,dp=2", false), ("dp=2,zero=3", true), ("tp=2,dp=2,zero=3", true)];
    for (layout, full) in layouts {
        let engine_of = |layout| if full { engine_with(layout, None) } else { engine_of(layout) };
        let mut engine = engine_of(layout);
        let last = engine.followers.len() - 1;
        engine.followers[last].as_thread().unwrap().end();
        let message = failure(&mut engine, pass("a", 3));
        assert!(message.ends_with("its thread ended"), "{layout}: {message}");
        // Only the last follower unloads the run.
        let mut engine = engine_of(layout);
        engine.followers[last].send(&Command::UnloadRun(RunId::new("a"))).unwrap();
        let message = failure(&mut engine, pass("a", 3));
        assert!(message.contains(" entered ") && message.contains(" while rank "), "{layout}: {message}");
    }
}

#[test]
fn a_panic_on_one_replica_fails_its_request_alone() {
    let lora = LoraSpec::on_all(4, 1);
    for (layout, lora) in
        [("dp=2", Some(lora.clone())), ("tp=2,dp=2", Some(lora)), ("dp=2,zero=3", None), ("tp=2,dp=2,zero=3", None)]
    {
        let mut engine = engine_with(layout, lora);
        let mut poisoned = pass("a", 3);
        if let Operation::ForwardBackward(request) = &mut poisoned {
            // One replica computes this example.
            request.batch.data[1].tokens[3] = u32::MAX;
        }
        start(&mut engine, "pass", poisoned);
        assert_eq!(drain(&mut engine), 1);
        assert_eq!(engine.failure(), None, "{layout}");
        // The run is gone on all of them.
        start(&mut engine, "again", pass("a", 3));
        assert_eq!(drain(&mut engine), 1);
        assert_eq!(engine.failure(), None, "{layout}");
    }
}

#[test]
fn replicas_have_a_part_of_the_moments_each() {
    let moment_bytes = |layout| {
        let mut engine = engine_of(layout);
        for (name, operation) in [("pass", pass("a", 3)), ("step", optim("a"))] {
            start(&mut engine, name, operation);
            assert_eq!(drain(&mut engine), 1);
        }
        let run = &engine.leader.runs[&RunId::new("a")];
        let [m, v] = run.moments.as_ref().unwrap();
        (m.bytes() + v.bytes(), run.masters.bytes(), m.lens().len())
    };
    let (whole, masters, arrays) = moment_bytes("tp=1");
    assert_eq!(whole, 2 * masters);
    for (layout, replicas) in [("dp=2", 2), ("dp=4", 4)] {
        let (part, own, _) = moment_bytes(layout);
        assert_eq!(own, masters);
        assert!(
            part * replicas >= whole && part <= whole / replicas + 2 * size_of::<f32>() * arrays,
            "{layout}: {part}"
        );
    }
}

fn adapter() -> RunSpec {
    let lora = LoraSpec::on_all(4, 1);
    RunSpec { base_model: "m".into(), lora: Some(lora), optimizer: Optimizer::AdamW, head: ModelHead::default() }
}

/// Everything that an engine returns for these operations.
fn outcome(engine: &mut impl trainyard_protocol::Engine, full: bool) -> Vec<Completion> {
    let spec = adapter();
    let spec = if full { RunSpec { lora: None, ..spec } } else { spec };
    let create = Operation::CreateRun { run: RunId::new("a"), spec };
    let mut done = Vec::new();
    for (name, operation) in
        [("create", create), ("first", pass("a", 3)), ("step", optim("a")), ("second", pass("a", 2))]
    {
        engine.start(id(name), TenantShare::new("t"), operation);
        while !engine.is_idle() {
            done.extend(engine.step());
            assert_eq!(engine.failure(), None);
        }
    }
    done
}

#[test]
fn processes_compute_what_threads_do() {
    for layout in ["tp=2", "dp=2", "dp=2,zero=3"] {
        processes_and_threads(layout.parse().unwrap());
    }
}

fn golden_model() -> Models {
    vec![("m".to_owned(), load(&golden("llama")).unwrap())]
}

/// The result of `lead` on rank 0, while rank 1 runs as another process with these options and copies.
fn with_follower<T>(
    options: &EngineOptions,
    of_follower: &EngineOptions,
    copies: &(dyn FolderCopies + Sync),
    lead: impl FnOnce(&mut ParallelEngine<HostBackend>) -> T,
) -> T {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let limit = Duration::from_secs(60);
    let join = |rank| {
        let (address, job) = (address.clone(), "tests".to_owned());
        ProcessRank::join(&Rendezvous { address, rank, world: 2, job, patience: limit, limit }).unwrap()
    };
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| join(1).follow(golden_model(), of_follower, copies, || ()));
        let mut engine = join(0).lead(golden_model(), options).unwrap();
        let found = lead(&mut engine);
        drop(engine);
        follower.join().unwrap().unwrap();
        found
    })
}

fn processes_and_threads(parallel: Parallel) {
    let options = EngineOptions { parallel, threads: 1, ..EngineOptions::default() };
    // Its budget is the smaller one, with which both plan.
    let smaller = EngineOptions { kv_bytes: options.kv_bytes / 2, ..options.clone() };
    let found = with_follower(&options, &smaller, &FileCopies::default(), |engine| {
        assert_eq!(engine.stats().kv_limit, options.kv_bytes as u64);
        outcome(engine, parallel.divides_parameters())
    });
    let both = EngineOptions { threads: 2, ..options };
    let mut threads = ParallelEngine::new(vec![golden_model(), golden_model()], both).unwrap();
    assert_eq!(found, outcome(&mut threads, parallel.divides_parameters()));
}

/// Copies of folders in this file system, behind their name and `copy`.
#[derive(Default)]
struct FileCopies(Mutex<BTreeMap<PathBuf, PathBuf>>);

impl FolderCopies for FileCopies {
    fn fetch(&self, dir: &Path, location: &Path, done: FetchDone) {
        let copy = location.with_extension("copy");
        fs::create_dir(&copy).unwrap();
        for file in fs::read_dir(location).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        self.0.lock().unwrap().insert(dir.to_owned(), copy);
        done(Ok(()));
    }

    fn copy_of(&self, dir: &Path) -> Option<PathBuf> {
        self.0.lock().unwrap().get(dir).cloned()
    }

    fn remove(&self, dir: &Path) {
        if let Some(copy) = self.0.lock().unwrap().remove(dir) {
            fs::remove_dir_all(copy).unwrap();
        }
    }
}

/// The folder that rank 0 reads is where rank 1 has none.
#[test]
fn a_process_reads_its_own_copy_of_a_folder() {
    let data = tempfile::tempdir().unwrap();
    let [stored, dir] = ["stored", "of-rank-0"].map(|name| data.path().join(name));
    let copy = stored.with_extension("copy");
    let options = EngineOptions { parallel: Parallel::with_tp(2).unwrap(), threads: 1, ..EngineOptions::default() };
    let copies = FileCopies::default();
    let operation = |engine: &mut ParallelEngine<HostBackend>, operation| {
        start(engine, "operation", operation);
        let mut done = Vec::new();
        while done.is_empty() {
            done.extend(engine.step());
            assert_eq!(engine.failure(), None);
        }
        done.remove(0).result
    };
    with_follower(&options, &options, &copies, |engine| {
        let before = outcome(engine, false);
        let target = SaveTarget { dir: stored.clone(), overwrite: false };
        operation(engine, Operation::SaveState(SaveState { run: RunId::new("a"), target })).unwrap();
        let (done, fetched) = std::sync::mpsc::channel();
        engine.folders().unwrap().fetch(&dir, &stored, Box::new(move |result| done.send(result).unwrap()));
        assert_eq!(fetched.recv(), Ok(Ok(())));
        fs::rename(&stored, &dir).unwrap();
        let load = LoadState {
            run: RunId::new("b"),
            dir: dir.clone(),
            with_optimizer: true,
            create: Some(adapter()),
            checkpoint_base: None,
            uploaded: None,
        };
        operation(engine, Operation::LoadState(load.clone())).unwrap();
        let expected = operation(engine, pass("a", 2)).unwrap();
        assert_eq!(operation(engine, pass("b", 2)).unwrap(), expected);
        // Rank 0 has all files, and fails with the rank that has not.
        let tensors = fs::read_dir(&copy).unwrap().map(|file| file.unwrap().path());
        let tensors: Vec<PathBuf> = tensors.filter(|file| file.extension().unwrap() == "safetensors").collect();
        tensors.iter().for_each(|file| fs::write(file, "").unwrap());
        assert!(!tensors.is_empty() && operation(engine, Operation::LoadState(load)).is_err());
        // The ranks go on together.
        assert_eq!(operation(engine, pass("a", 2)).unwrap(), expected);
        assert_eq!(before.len(), 4);
        engine.folders().unwrap().remove(&dir);
    });
    assert!(!copy.exists() && dir.exists());
}

/// Notes the tensors that are read.
struct Recorded {
    inner: Box<dyn TensorSource>,
    read: Arc<Mutex<BTreeSet<String>>>,
}

impl TensorSource for Recorded {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.inner.shape(name)
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        self.read.lock().unwrap().insert(name.to_owned());
        self.inner.read(name)
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        self.read.lock().unwrap().insert(name.to_owned());
        self.inner.read_part(name, elements)
    }

    fn names(&self) -> Vec<String> {
        self.inner.names()
    }
}

/// The expert that a tensor is of.
fn expert_of(name: &str) -> Option<usize> {
    let (_, rest) = name.split_once(".mlp.experts.")?;
    rest.split('.').next()?.parse().ok()
}

fn golden(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

/// (architecture in GGUF files, golden folder)
const EXPERTS_IN_GGUF: [(&str, &str); 3] =
    [("qwen3moe", "qwen3_moe"), ("gpt-oss", "gpt_oss"), ("deepseek2", "deepseek_v3")];

#[test]
fn ranks_compute_with_gguf_what_they_do_with_safetensors() {
    for (arch, family) in EXPERTS_IN_GGUF {
        let file = in_gguf(arch, &golden(family));
        for layout in ["tp=1", "tp=2", "ep=2", "tp=2,ep=2"] {
            let parallel: Parallel = layout.parse().unwrap();
            let options = EngineOptions { parallel, threads: 1, ..EngineOptions::default() };
            let engine = |path: &Path| {
                let models = || vec![("m".to_owned(), load(path).unwrap())];
                ParallelEngine::new((0..parallel.world()).map(|_| models()).collect(), options.clone()).unwrap()
            };
            let (mut found, mut expected) = (engine(file.path()), engine(&golden(family)));
            assert_eq!(found.numerics(), expected.numerics(), "{family}, {layout}");
            assert_eq!(outcome(&mut found, false), outcome(&mut expected, false), "{family}, {layout}");
        }
    }
}

#[test]
fn ranks_read_their_experts_alone() {
    let (mxfp4, fp8) = (mxfp4(), fp8());
    let ggufs = EXPERTS_IN_GGUF.map(|(arch, family)| in_gguf(arch, &golden(family)));
    let mut folders = vec![
        (golden("qwen3_moe"), 8),
        (golden("gpt_oss"), 4),
        (mxfp4.path().to_owned(), 4),
        (fp8.path().to_owned(), 8),
    ];
    folders.extend(ggufs.iter().map(|folder| folder.path().to_owned()).zip([8, 4, 8]));
    for ((folder, experts), layout) in folders.iter().flat_map(|folder| ["ep=2", "tp=2,ep=2"].map(|of| (folder, of))) {
        let parallel: Parallel = layout.parse().unwrap();
        let options = EngineOptions { parallel, threads: 1, ..EngineOptions::default() };
        let (mut models, mut read) = (Vec::new(), Vec::new());
        for _ in 0..parallel.world() {
            let (mut model, names) = (load(folder).unwrap(), Arc::default());
            model.tensors = Box::new(Recorded { inner: model.tensors, read: Arc::clone(&names) });
            models.push(vec![("m".to_owned(), model)]);
            read.push(names);
        }
        let ranks = ParallelEngine::new(models, options.clone()).unwrap();
        let each = experts / parallel.world();
        let mut count = 0;
        for (rank, read) in read.iter().enumerate() {
            for (name, expert) in read.lock().unwrap().iter().filter_map(|name| Some((name, expert_of(name)?))) {
                assert_eq!(expert / each, rank, "{name}, {layout}");
                count += 1;
            }
        }
        let model = load(folder).unwrap();
        assert_eq!(count, model.tensors.names().iter().filter(|name| expert_of(name).is_some()).count());
        let one = CpuEngine::new(vec![("m".to_owned(), model)], options).unwrap();
        // All of what was read is what one rank reads.
        assert_eq!(ranks.numerics()["m"].weights, one.numerics()["m"].weights);
    }
}
