//! Saves on a simulated GPU beside training: files, and what the device does meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use trainyard_gpu_runtime::backend::cuda::Cuda;
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{CudaEngine, Dtype, EngineOptions};
use trainyard_protocol::{
    Engine, LoraSpec, OpResult, Operation, RunId, SaveExternal, SaveRun, SaveSnapshot, SaveState, SaveTarget,
};

use crate::cuda::{inject, is_injected, simulated_with};
use crate::support::*;

/// Work runs when the host waits, in a random order of streams.
const LATE: [(&str, &str); 2] = [("CUDASIM_SCHEDULE", "late"), ("CUDASIM_SEED", "11")];

fn open(family: &str) -> Driver<CudaEngine> {
    let gpu = Cuda::open(0, Dtype::Bf16).unwrap();
    let options = EngineOptions { dtype: Dtype::Bf16, activation_bytes: 64 << 20, ..EngineOptions::default() };
    Driver::over(CudaEngine::on_gpu(gpu, vec![("m".into(), load(&golden(family)).unwrap())], options).unwrap())
}

/// A run after a step and with a gradient for the next one, and its weights for sampling.
fn trained(d: &mut Driver<CudaEngine>, lora: Option<LoraSpec>) {
    d.create("x", lora);
    d.forward_backward("x", vec![datum(&tokens(9, 512, 1))]);
    d.step("x", 1e-2);
    d.forward_backward("x", vec![datum(&tokens(7, 512, 2))]);
    d.snapshot("x", "snap");
}

/// A save of each kind, into a folder of its own.
fn saves(dir: &Path) -> [Operation; 4] {
    let target = |name: &str| SaveTarget { dir: dir.join(name), overwrite: false };
    let run = || RunId::new("x");
    [
        Operation::SaveRun(SaveRun { run: run(), target: target("run") }),
        Operation::SaveState(SaveState { run: run(), target: target("state") }),
        Operation::SaveExternal(SaveExternal { run: run(), target: target("weights") }),
        Operation::SaveSnapshot(SaveSnapshot { key: "snap".into(), target: target("snap") }),
    ]
}

/// All files below a folder.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            true => found.extend(files(&path).into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes))),
            false => drop(found.insert(name, std::fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn saves_beside_training_write_what_saves_at_rest_write() {
    simulated_with("cuda_saves::saves_beside_training_write_what_saves_at_rest_write", &LATE, None, || {
        let folder = tempfile::tempdir().unwrap();
        for (case, adapter) in [Some(lora(4, 1)), None].into_iter().enumerate() {
            let [rest, beside] = ["rest", "beside"].map(|name| folder.path().join(format!("{name}{case}")));
            let mut d = open("llama_tied");
            trained(&mut d, adapter);
            let waits = d.engine.backend().gpu().waits();
            for save in saves(&rest) {
                d.run(save).unwrap();
            }
            assert_eq!(d.engine.backend().gpu().waits(), waits, "a save waited for the device's work");
            let mut overlapped = 0;
            for (save, name) in saves(&beside).into_iter().zip(["run", "state", "weights", "snap"]) {
                // The state of each save is that before the steps that follow it.
                let mut d = open("llama_tied");
                trained(&mut d, [Some(lora(4, 1)), None][case].clone());
                let id = d.start(save);
                d.tick();
                // Where the folder is not in place yet, the run changes while the save reads what both share.
                overlapped += usize::from(!beside.join(name).exists());
                // Requests of a run come one after the other.
                d.run_beside(optim("x", 1e-2)).unwrap();
                d.run_beside(loss_op("x", vec![datum(&tokens(9, 512, 3))], false)).unwrap();
                d.run_beside(optim("x", 1e-2)).unwrap();
                assert!(matches!(d.take(&id), Ok(OpResult::Saved(Some(_)))));
            }
            assert!(overlapped > 0, "case {case}: every save was done before a step began");
            let [rest, beside] = [files(&rest), files(&beside)];
            assert!(rest.len() >= 12, "{:?}", rest.keys());
            assert!(rest == beside, "case {case}: files differ");
        }
    });
}

#[test]
fn a_save_without_page_locked_memory_writes_the_same() {
    let file = std::env::temp_dir().join(format!("trainyard-save-faults-{}", std::process::id()));
    let setting = ("CUDASIM_FAULT_FILE", file.to_str().unwrap());
    simulated_with("cuda_saves::a_save_without_page_locked_memory_writes_the_same", &[setting], None, || {
        let folder = tempfile::tempdir().unwrap();
        let written = ["pinned 0", "pinned 1 1000"].map(|fault| {
            let dir = folder.path().join(fault);
            let mut d = open("llama");
            trained(&mut d, Some(lora(4, 1)));
            // The buffers of saves are allocated by the first one.
            inject(fault);
            for save in saves(&dir) {
                d.run(save).unwrap();
            }
            assert!(is_injected());
            files(&dir)
        });
        assert!(written[0] == written[1]);
    });
}

#[test]
fn a_save_that_the_device_fails_is_an_error_and_leaves_nothing() {
    let file = std::env::temp_dir().join(format!("trainyard-save-events-{}", std::process::id()));
    let setting = ("CUDASIM_FAULT_FILE", file.to_str().unwrap());
    simulated_with("cuda_saves::a_save_that_the_device_fails_is_an_error_and_leaves_nothing", &[setting], None, || {
        let folder = tempfile::tempdir().unwrap();
        let mut d = open("llama");
        trained(&mut d, Some(lora(4, 1)));
        let [save, ..] = saves(folder.path());
        let id = d.start(save);
        // The first event is the fence, which is recorded with the save.
        inject("event 3");
        let (mut completed, began) = (Vec::new(), Instant::now());
        while d.engine.failure().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "the device goes on");
            completed.extend(d.engine.step());
        }
        assert!(is_injected());
        let failure = d.engine.failure().unwrap();
        assert!(failure.message.contains("cuEventRecord failed"), "{failure}");
        // Either its error was there before the device's, or the process ends without a word about it: it is never acknowledged.
        assert!(completed.iter().all(|completion| completion.id == id && completion.result.is_err()));
        drop(d);
        assert!(files(folder.path()).is_empty(), "nothing is left of it");
    });
}
