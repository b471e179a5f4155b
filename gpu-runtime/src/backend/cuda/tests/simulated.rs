//! Runs tests in processes that find the simulated CUDA libraries, which are looked for when a process starts.

use std::sync::LazyLock;

use cuda_sim_harness::Simulator;

use crate::backend::cuda::{CudaDevice, Result};

/// Set in these processes.
const MARK: &str = "TRAINYARD_TEST_ON_SIMULATED_DEVICE";

/// Orders of blocks, warps and streams.
const SEEDS: [(&str, &str); 2] = [("CUDASIM_SEED", "1"), ("CUDASIM_SEED", "2")];

static SIMULATOR: LazyLock<Simulator> = LazyLock::new(|| Simulator::new("gpu-runtime").unwrap());

/// Calls `body`, a closure of a test, with the simulated device, in processes of their own. Every slice has memory of exactly its
/// size, so that the simulator stops at what is read or written beyond it, and at what is read before it is written.
pub(super) fn on_device<F: FnOnce(&CudaDevice)>(body: F) {
    if is_there() {
        let device = CudaDevice::open(0, 0).unwrap();
        body(&device);
        return device.synchronize().unwrap();
    }
    SEEDS.into_iter().for_each(|seed| run::<F>(&SIMULATOR, seed));
}

/// Calls `body` with what opening the simulated device returned, for one setting of the simulator.
pub(super) fn with_setting<F: FnOnce(Result<CudaDevice>)>(setting: (&str, &str), body: F) {
    if is_there() {
        return body(CudaDevice::open(0, 0));
    }
    run::<F>(&SIMULATOR, setting);
}

/// The same with a library of which a function is missing.
pub(super) fn without_symbol<F: FnOnce(Result<CudaDevice>)>(library: &str, symbol: &str, body: F) {
    if is_there() {
        return body(CudaDevice::open(0, 0));
    }
    let simulator = Simulator::new(&format!("gpu-runtime-{symbol}")).unwrap();
    simulator.remove_symbol(library, symbol).unwrap();
    run::<F>(&simulator, SEEDS[0]);
}

fn is_there() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs the test that `F` is a closure of in another process.
fn run<F>(simulator: &Simulator, (name, value): (&str, &str)) {
    let closure = std::any::type_name::<F>();
    let test = closure.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    let mut program = simulator.command(std::env::current_exe().unwrap());
    program.args([test, "--exact", "--nocapture", "--test-threads", "1"]).env(MARK, "1").env(name, value);
    let output = program.output().unwrap();
    let [text, report] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("1 passed"), "{name}={value}\n{text}\n{report}");
}
