//! Runs tests on a GPU.

use std::path::Path;

use crate::Result;
use crate::process::{cargo, command, root, run, step, target};
use crate::programs::programs;
use crate::python;

/// Environment variable with which tests of CUDA use the machine's GPU and the installed libraries.
const ON_GPU: &str = "TRAINYARD_TEST_ON_GPU";

/// Device files of the driver: on Linux, and on Linux under Windows.
const DEVICES: &[&str] = &["/dev/nvidia0", "/dev/dxg"];

/// Tests of the runtime that open a device. Those in `FAULTS` and `ENGINE_FAULTS` are left out: they inject faults or
/// choose a device, which a real GPU does not support.
const TESTS: &[&str] = &["backend::cuda::", "backend::tests::cuda"];
const FAULTS: &[&str] = &[
    "--skip",
    "backend::cuda::tests::faults",
    "--skip",
    "backend::cuda::tests::ranks",
    "--skip",
    "backend::cuda::tests::cubin_loading",
    "--skip",
    "backend::cuda::ops::exchange_rates",
    "--skip",
    "backend::cuda::tests::libraries",
    "--skip",
    "backend::cuda::tests::pool",
    "--skip",
    "backend::cuda::tests::shape_faults",
    "--skip",
    "backend::cuda::tests::transfer_faults",
];
const ENGINE_FAULTS: &[&str] = &[
    "--skip",
    "a_lost_device_ends_the_engine",
    "--skip",
    "a_request_beyond_the_devices_memory",
    "--skip",
    "memory_that_runs_out_anywhere",
];

/// Device file that exists with four GPUs, as many as tests of ranks need. The list names tests of ranks that inject
/// faults.
const FOURTH: &str = "/dev/nvidia3";
const RANK_FAULTS: &[&str] = &["--skip", "ends_all", "--skip", "are_refused"];

/// A model for `trainyard doctor` to examine.
const MODEL: &str = "m=tests/golden/llama";

/// Runs the op suite and the tests of the runtime and the server on this machine's GPU.
pub(crate) fn test() -> Result {
    find(DEVICES)?;
    programs()?;
    step("op suite", || {
        let mut doctor = command(target().join("debug").join("trainyard"), &["doctor", "--device", "cuda"]);
        doctor.args(["--model", MODEL, "--data-dir"]).arg(target().join("test-gpu"));
        run(doctor)
    })?;
    step("tests of the runtime", || {
        run(cargo_tests(&["--lib"], &[TESTS, FAULTS].concat()))?;
        run(cargo_tests(&["--test", "engine"], &[&["cuda::", "cuda_saves::saves_beside"], ENGINE_FAULTS].concat()))?;
        if !Path::new(FOURTH).exists() {
            return Ok(());
        }
        run(cargo_tests(&["--test", "engine"], &[&["cuda_ranks::", "cuda_processes::"], RANK_FAULTS].concat()))
    })?;
    step("tests of the server", || {
        let mut tests = command(python::venv()?, &["-m", "pytest", "tests/sdk/test_cuda.py"]);
        tests.args(std::env::args().skip(2)).env(ON_GPU, "1");
        tests.env("TRAINYARD_BIN", target().join("debug").join("trainyard"));
        run(tests)
    })
}

/// Returns a command that runs some tests of the workspace one after the other, because they share a device.
fn cargo_tests(target: &[&str], chosen: &[&str]) -> std::process::Command {
    let mut tests = cargo(&["test", "--workspace", "--locked"]);
    tests.args(target).arg("--").args(chosen).args(["--test-threads", "1"]).env(ON_GPU, "1");
    tests
}

/// Checks that the machine has a GPU.
fn find(devices: &[&str]) -> Result {
    if devices.iter().any(|device| root().join(Path::new(device)).exists()) {
        return Ok(());
    }
    Err(format!("no NVIDIA GPU found: none of {} exists", devices.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_machine_without_a_device_says_so_in_one_line() {
        assert_eq!(find(&["/dev/null"]), Ok(()));
        let said = "no NVIDIA GPU found: none of /dev/no-1, /dev/no-2 exists";
        assert_eq!(find(&["/dev/no-1", "/dev/no-2"]), Err(said.to_owned()));
    }
}
