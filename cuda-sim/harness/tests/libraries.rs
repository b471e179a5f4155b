//! cuBLASLt and NCCL through unmodified `cudarc`, and the counters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use cuda_sim_harness::Simulator;

const HOST: &str = env!("CARGO_BIN_EXE_cuda-sim-host");

fn run(simulator: &Simulator, program: &str, settings: &[(&str, &str)]) -> (String, String) {
    let mut command = simulator.command(HOST);
    let Output { stdout, stderr, .. } = command.arg(program).envs(settings.iter().copied()).output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// Two processes of a program, and what each printed.
fn two_ranks(simulator: &Simulator, program: &str, settings: &[(&str, &str)]) -> [(String, String); 2] {
    let id = simulator.folder().join("id");
    let start = |rank: &str| -> Child {
        let mut command = simulator.command(HOST);
        command.args([program, rank]).arg(&id).envs(settings.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    [start("0"), start("1")].map(|child| {
        let Output { stdout, stderr, .. } = child.wait_with_output().unwrap();
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    })
}

/// Both ranks found what they should.
fn right(ranks: &[(String, String); 2]) {
    for (rank, (out, report)) in ranks.iter().enumerate() {
        assert_eq!(out.trim(), format!("rank {rank} right=true"), "{report}");
    }
}

#[test]
fn cublaslt_multiplies_bf16() {
    let (out, report) = run(&Simulator::new().unwrap(), "matmul", &[]);
    assert_eq!(out.trim(), "right=true", "{report}");
}

#[test]
fn two_processes_agree_in_all_collectives() {
    right(&two_ranks(&Simulator::new().unwrap(), "rank", &[]));
}

#[test]
fn two_threads_agree_in_all_collectives() {
    let simulator = Simulator::new().unwrap();
    for seed in ["1", "2", "3"] {
        let (out, report) = run(&simulator, "ranks", &[("CUDASIM_DEVICES", "2"), ("CUDASIM_SEED", seed)]);
        assert!(out.contains("rank 0 right=true") && out.contains("rank 1 right=true"), "{out}{report}");
    }
}

/// NCCL lets ranks of a process touch each other's buffers, and memory of pools belongs to one device until it is shared.
#[test]
fn ranks_of_a_process_need_access_to_each_others_pools() {
    let simulator = Simulator::new().unwrap();
    let ranks = |more: &[(&str, &str)]| {
        let settings = [&[("CUDASIM_DEVICES", "2"), ("CUDASIM_NCCL_TIMEOUT_MS", "20000")], more].concat();
        run(&simulator, "ranks", &settings)
    };
    let (out, report) = ranks(&[("KEEP_MEMORY", "1")]);
    assert!(!out.contains("right=true") && out.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{out}{report}");
    assert!(report.contains("in another device's memory pool"), "{report}");
    let both = |(out, report): (String, String)| {
        assert!(out.contains("rank 0 right=true") && out.contains("rank 1 right=true"), "{out}{report}");
    };
    both(ranks(&[("KEEP_MEMORY", "1"), ("NCCL_P2P_DIRECT_DISABLE", "1")]));
    both(ranks(&[("KEEP_MEMORY", "1"), ("CUDASIM_PEER_ACCESS", "none")]));
    let (out, _) = ranks(&[("CUDASIM_PEER_ACCESS", "no-pools")]);
    assert!(out.contains("share: ") && out.contains("CUDA_ERROR_NOT_SUPPORTED"), "{out}");
}

#[test]
fn a_dead_rank_is_an_error_and_no_hang() {
    let settings = [("CUDASIM_NCCL_DIE", "1:2"), ("CUDASIM_NCCL_TIMEOUT_MS", "60000")];
    let ranks = two_ranks(&Simulator::new().unwrap(), "rank", &settings);
    assert!(ranks[0].1.contains("rank 1 left the communicator"), "{}", ranks[0].1);
    assert!(ranks[1].1.contains("rank 1 of 2: injected fault: it dies"), "{}", ranks[1].1);
    for (out, _) in &ranks {
        assert!(!out.contains("right=true"), "{out}");
    }
}

/// Ranks of a server without requests are idle like this.
#[test]
fn ranks_may_be_idle_for_longer_than_they_wait_for_each_other() {
    let settings = [("CUDASIM_NCCL_TIMEOUT_MS", "5000"), ("PAUSE_MS", "7000")];
    right(&two_ranks(&Simulator::new().unwrap(), "rank", &settings));
}

/// A rank that polls its stream can give up; a rank that only waits gets an error in the end.
#[test]
fn a_silent_rank_keeps_nobody_from_ending() {
    let settings = [("CUDASIM_NCCL_HANG", "1:1"), ("POLL_MS", "500"), ("CUDASIM_NCCL_TIMEOUT_MS", "600000")];
    let began = Instant::now();
    let ranks = two_ranks(&Simulator::new().unwrap(), "rank", &settings);
    let has_failed = |error: &str| ranks.iter().any(|(out, _)| out.contains(&format!("failed: \"{error}\"")));
    assert!(has_failed("not done"), "{ranks:?}");
    // One that polls later may find that the other has left.
    let gave_up = |out: &str| out.contains("failed: \"not done\"") || out.contains("failed: \"NcclError\"");
    assert!(ranks.iter().all(|(out, _)| gave_up(out)), "{ranks:?}");
    assert!(began.elapsed() < Duration::from_secs(300), "less than ranks wait for each other");
    let settings = [("CUDASIM_NCCL_HANG", "1:1"), ("CUDASIM_NCCL_TIMEOUT_MS", "5000")];
    let [(first, report), _] = two_ranks(&Simulator::new().unwrap(), "rank", &settings);
    assert!(!first.contains("right=true") && report.contains("rank 1 never called"), "{first}{report}");
}

/// Waiting for one stream does not wait for the collectives of others.
#[test]
fn a_stream_does_not_wait_for_a_collective_of_another() {
    for seed in ["1", "2", "3", "4"] {
        let settings = [("CUDASIM_SCHEDULE", "late"), ("CUDASIM_SEED", seed), ("CUDASIM_NCCL_TIMEOUT_MS", "60000")];
        let simulator = Simulator::new().unwrap();
        right(&two_ranks(&simulator, "two-stream-rank", &settings));
    }
}

/// Only the library's own thread runs work in late mode.
#[test]
fn a_device_comes_to_its_collectives_while_its_host_does_nothing() {
    let settings = [("CUDASIM_SCHEDULE", "late"), ("CUDASIM_NCCL_TIMEOUT_MS", "60000")];
    right(&two_ranks(&Simulator::new().unwrap(), "sleeping-rank", &settings));
}

#[test]
fn a_communicator_is_destroyed_after_its_collectives() {
    for schedule in ["late", "eager"] {
        let simulator = Simulator::new().unwrap();
        right(&two_ranks(&simulator, "destroying-rank", &[("CUDASIM_SCHEDULE", schedule)]));
    }
}

#[test]
fn counters_are_those_of_the_kernel() {
    let (out, report) = run(&Simulator::new().unwrap(), "counters", &[]);
    // 1000 elements of 4 bytes: 32 warps of which the last has 8 lanes, three requests each.
    let expected = ["global_load_bytes=8000", "global_store_bytes=4000", "global_requests=96", "global_sectors=375"];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected, "{report}");
}
