//! Unmodified `cudarc` on the simulated driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::process::Output;

use cuda_sim_harness::Simulator;

/// Runs a program of `cuda-sim-host`; returns its success, its output, and the simulator's messages.
fn run(program: &str, settings: &[(&str, &str)]) -> (bool, String, String) {
    let simulator = Simulator::new().unwrap();
    run_on(&simulator, program, settings)
}

fn run_on(simulator: &Simulator, program: &str, settings: &[(&str, &str)]) -> (bool, String, String) {
    let mut command = simulator.command(env!("CARGO_BIN_EXE_cuda-sim-host"));
    let Output { status, stdout, stderr } = command.arg(program).envs(settings.iter().copied()).output().unwrap();
    (status.success(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn seeds() -> impl Iterator<Item = String> {
    (0..8).map(|seed| seed.to_string())
}

#[test]
fn cudarc_adds_vectors() {
    let (success, out, report) = run("vec-add", &[]);
    assert!(success && out.contains("Simulated CUDA device right=true"), "{out}{report}");
}

#[test]
fn a_store_out_of_bounds_is_an_illegal_address() {
    let (_, out, report) = run("out-of-bounds", &[]);
    assert!(out.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{out}");
    assert!(report.contains("load of 4 bytes") && report.contains("vec_add block [15, 0, 0] thread 40"), "{report}");
    assert!(report.contains("offset 4000 of the allocation of 4000 bytes"), "{report}");
}

#[test]
fn a_read_of_fresh_memory_is_reported() {
    let (success, _, report) = run("uninitialised", &[]);
    assert!(!success && report.contains("uninitialised read"), "{report}");
}

#[test]
fn a_graph_runs_when_it_is_launched() {
    let (_, out, report) = run("graph", &[]);
    assert_eq!(out.trim(), "before=0 after=3", "{report}");
}

#[test]
fn copies_from_page_locked_memory_run_late() {
    let (_, out, report) = run("pinned", &[("CUDASIM_SCHEDULE", "late")]);
    assert_eq!(out.trim(), "copied=2", "{report}");
    let (_, out, report) = run("pinned", &[("CUDASIM_SCHEDULE", "eager"), ("CUDASIM_SEED", "1")]);
    assert_eq!(out.trim(), "copied=1", "{report}");
}

#[test]
fn streams_with_events_agree_in_every_order() {
    for seed in seeds() {
        let (_, out, report) = run("two-streams", &[("CUDASIM_SEED", &seed)]);
        assert_eq!(out.trim(), "sum=6", "{report}");
    }
}

#[test]
fn a_missing_event_wait_is_reported_for_every_seed() {
    for seed in seeds() {
        let (success, _, report) = run("missing-event", &[("CUDASIM_SEED", &seed)]);
        assert!(!success && report.contains("missing event wait: increment (stream"), "{report}");
    }
}

#[test]
fn copies_to_page_locked_memory_run_late_and_after_their_event() {
    let (success, out, report) = run("copy-out", &[("CUDASIM_SCHEDULE", "late")]);
    assert!(success && out.trim() == "before=0 after=1", "{out}{report}");
    for seed in seeds() {
        let (success, out, report) = run("copy-out", &[("CUDASIM_SEED", &seed)]);
        assert!(success && out.contains("after=1"), "{out}{report}");
        let (success, _, report) = run("early-copy-out", &[("CUDASIM_SEED", &seed)]);
        assert!(!success && report.contains("missing event wait"), "{report}");
    }
}

#[test]
fn memory_that_is_freed_while_another_stream_copies_it_is_reported() {
    for seed in seeds() {
        let (success, _, report) = run("freed-copy", &[("CUDASIM_SEED", &seed)]);
        assert!(!success && (report.contains("missing event wait") || report.contains("freed memory")), "{report}");
    }
}

#[test]
fn page_locked_memory_and_events_fail_where_they_are_told_to() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path();
    for (fault, error) in [("pinned 1 1", "OUT_OF_MEMORY"), ("event 1", "UNKNOWN")] {
        std::fs::write(path, fault).unwrap();
        let (success, out, _) = run("copy-out", &[("CUDASIM_FAULT_FILE", path.to_str().unwrap())]);
        assert!(!success && out.contains(error), "{fault}: {out}");
    }
}

#[test]
fn freed_memory_is_recognised() {
    let (success, _, report) = run("use-after-free", &[]);
    assert!(!success && report.contains("inside freed memory"), "{report}");
}

#[test]
fn memory_runs_out_where_it_is_told_to() {
    let (_, out, _) = run("allocations", &[("CUDASIM_FAIL_ALLOC", "4")]);
    assert!(out.contains("allocated=3") && out.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{out}");
    let (_, out, _) = run("allocations", &[("CUDASIM_MEMORY", "5500000"), ("CUDASIM_SEED", "1")]);
    assert!(out.contains("allocated=5") && out.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{out}");
}

#[test]
fn a_launch_fails_where_it_is_told_to() {
    let (_, out, _) = run("launches", &[("CUDASIM_FAIL_LAUNCH", "3")]);
    assert!(out.contains("launched=2") && out.contains("CUDA_ERROR_LAUNCH_FAILED"), "{out}");
}

#[test]
fn a_machine_without_a_device_says_so() {
    let (success, out, _) = run("vec-add", &[("CUDASIM_DEVICES", "0")]);
    assert!(!success && out.contains("CUDA_ERROR_NO_DEVICE"), "{out}");
}

#[test]
fn a_removed_symbol_is_missing() {
    let simulator = Simulator::new().unwrap();
    simulator.remove_symbol("libcuda.so", "cuModuleLoadData").unwrap();
    let (success, _, report) = run_on(&simulator, "vec-add", &[]);
    assert!(!success && report.contains("cuModuleLoadData"), "{report}");
}

#[test]
fn variables_of_a_module_have_addresses() {
    let (_, out, report) = run("variables", &[]);
    assert_eq!(out.trim(), "calls=[10, 0, 0, 0]", "{report}");
}
