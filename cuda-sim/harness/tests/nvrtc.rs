//! PTX from NVIDIA's compiler. `make test-cuda-sim` installs the compiler and passes its path; without a compiler these
//! tests do nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

use cuda_sim_harness::Simulator;

/// Runs a program with the compiler's folder, if there is one.
fn run(program: &str, seed: u64) -> Option<(String, String)> {
    let Some(compiler) = std::env::var_os("CUDASIM_NVRTC") else {
        eprintln!("skipped: CUDASIM_NVRTC does not name the folder of libnvrtc.so.12");
        return None;
    };
    let simulator = Simulator::new().unwrap();
    let mut command = simulator.command(env!("CARGO_BIN_EXE_cuda-sim-host"));
    let paths = [simulator.folder().as_os_str(), &compiler];
    command.env("LD_LIBRARY_PATH", std::env::join_paths(paths).unwrap());
    let output = command.arg(program).env("CUDASIM_SEED", seed.to_string()).output().unwrap();
    Some((String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap()))
}

#[test]
fn compiled_kernels_give_what_they_should() {
    for seed in 0..3 {
        let Some((out, report)) = run("compiled", seed) else { return };
        for line in ["rms_norm different=0", "gemm close=true", "functions close=true", "integers right=true"] {
            assert!(out.contains(line), "{line}: {out}{report}");
        }
    }
}

#[test]
fn a_barrier_removed_from_compiled_kernels_is_found() {
    for seed in 0..3 {
        for program in ["racing-norm", "racing-gemm"] {
            let Some((out, report)) = run(program, seed) else { return };
            let found = report.contains("race: shared address") || report.contains("uninitialised read: shared byte");
            assert!(found && out.contains("CUDA_ERROR_LAUNCH_FAILED"), "{out}{report}");
        }
    }
}
