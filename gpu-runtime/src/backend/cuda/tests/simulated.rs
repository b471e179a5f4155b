//! Runs tests in processes that find the simulated CUDA libraries, which are searched when a process starts. If a
//! variable is set, tests run in this process on a GPU.

use std::process::Command;

use cuda_sim_harness::Simulator;
use trainyard_test_support::full::{chosen, is_full};

use super::mutants::MUTANT;
use crate::backend::Dtype;
use crate::backend::cuda::backend::Cuda;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::open::CudaDevice;

/// Set in these processes.
const MARK: &str = "TRAINYARD_TEST_ON_SIMULATED_DEVICE";

/// Set where tests run on a GPU with the libraries that are installed: see `make test-gpu`.
const ON_GPU: &str = "TRAINYARD_TEST_ON_GPU";

/// Orders of blocks, warps and streams.
const SEEDS: [(&str, &str); 2] = [("CUDASIM_SEED", "1"), ("CUDASIM_SEED", "2")];

/// The orders in which a test runs: one, or all with `make test-full`.
fn seeds() -> impl Iterator<Item = (&'static str, &'static str)> {
    chosen(&SEEDS[..1], &SEEDS[1..])
}

/// Calls `body`, a closure of a test, with the simulated device, in processes of its own. Every slice has memory of exactly its
/// size, so that the simulator stops at what is read or written beyond it, and at what is read before it is written.
pub(super) fn on_device<F: FnOnce(&CudaDevice)>(body: F) {
    if is_there() {
        let device = CudaDevice::open(0, 0).unwrap();
        body(&device);
        return device.synchronize().unwrap();
    }
    let simulator = Simulator::new().unwrap();
    seeds().for_each(|seed| run::<F>(&simulator, &[seed]));
}

/// Like [`on_device`], but with a backend of the given type.
pub(crate) fn on_backend<F: FnOnce(Cuda)>(dtype: Dtype, body: F) {
    if is_there() {
        return body(Cuda::open(0, dtype).unwrap());
    }
    let simulator = Simulator::new().unwrap();
    seeds().for_each(|seed| run::<F>(&simulator, &[seed]));
}

/// Like [`on_backend`], but with one setting of the simulator.
pub(crate) fn on_backend_with<F: FnOnce(Cuda)>(setting: (&str, &str), dtype: Dtype, body: F) {
    if is_there() {
        return body(Cuda::open(0, dtype).unwrap());
    }
    run::<F>(&Simulator::new().unwrap(), &[setting]);
}

/// Calls `body` with what opening the simulated device returned, for one setting of the simulator. A GPU has no such settings.
pub(super) fn with_setting<F: FnOnce(Result<CudaDevice>)>(setting: (&str, &str), body: F) {
    assert!(!on_gpu(), "a fault is injected: only the simulated device has them");
    if is_there() {
        return body(CudaDevice::open(0, 0));
    }
    run::<F>(&Simulator::new().unwrap(), &[setting]);
}

/// Calls `body` for some settings of the simulator.
pub(crate) fn with_settings<F: FnOnce()>(settings: &[(&str, &str)], body: F) {
    if is_there() {
        return body();
    }
    run::<F>(&Simulator::new().unwrap(), settings);
}

/// Like [`with_settings`], but only in `make test-full`.
pub(super) fn with_settings_in_full<F: FnOnce()>(settings: &[(&str, &str)], body: F) {
    if is_full() {
        with_settings(settings, body);
    }
}

/// Calls `body` in a process whose libraries were changed, with the settings that follow from them.
pub(super) fn with_libraries<F: FnOnce()>(change: impl FnOnce(&Simulator) -> Vec<(&'static str, String)>, body: F) {
    assert!(!on_gpu(), "libraries are changed: only the simulated ones are");
    if is_there() {
        return body();
    }
    let simulator = Simulator::new().unwrap();
    let settings = change(&simulator);
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run::<F>(&simulator, &settings);
}

/// Runs a test with a library that lacks a function.
pub(super) fn without_symbol<F: FnOnce(Result<CudaDevice>)>(library: &str, symbol: &str, body: F) {
    assert!(!on_gpu(), "a function is removed: only the simulated libraries are changed");
    if is_there() {
        return body(CudaDevice::open(0, 0));
    }
    let simulator = Simulator::new().unwrap();
    simulator.remove_symbol(library, symbol).unwrap();
    run::<F>(&simulator, &SEEDS[..1]);
}

fn is_there() -> bool {
    on_gpu() || std::env::var_os(MARK).is_some()
}

fn on_gpu() -> bool {
    std::env::var_os(ON_GPU).is_some()
}

/// Whether a test fails in a process whose kernels have this mutant, with one of the seeds.
pub(super) fn fails_with_mutant(test: &str, mutant: usize) -> bool {
    let (module, _) = module_path!().rsplit_once("::").unwrap();
    let test = format!("{}::{test}", module.split_once("::").unwrap().1);
    let simulator = Simulator::new().unwrap();
    SEEDS.into_iter().any(|seed| {
        let output = command(&simulator, &test, &[seed]).env(MUTANT, mutant.to_string()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("running 1 test"), "no test is named {test}");
        !output.status.success()
    })
}

fn command(simulator: &Simulator, test: &str, settings: &[(&str, &str)]) -> Command {
    let mut program = simulator.command(std::env::current_exe().unwrap());
    program.args([test, "--exact", "--nocapture", "--test-threads", "1"]).env(MARK, "1").envs(settings.iter().copied());
    program
}

/// Runs the test that `F` is a closure of in another process.
fn run<F>(simulator: &Simulator, settings: &[(&str, &str)]) {
    let closure = std::any::type_name::<F>();
    let test = closure.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    let output = command(simulator, test, settings).output().unwrap();
    let [text, report] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("1 passed"), "{settings:?}\n{text}\n{report}");
}
