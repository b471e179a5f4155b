//! Ranks that are processes, each on a simulated GPU of its own, with the simulated NCCL between them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use trainyard_gpu_runtime::backend::cuda::Cuda;
use trainyard_gpu_runtime::collective::Rendezvous;
use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::{Dtype, EngineOptions, FetchDone, FolderCopies, ParallelEngine, ProcessRank};
use trainyard_protocol::Engine;

use crate::cuda::simulated_with;
use crate::cuda_ranks::{examples, gpu, open, outcome};
use crate::support::*;

/// Environment variables of the process that is rank 1: the address of rank 0, and the layout.
const ADDRESS: &str = "TRAINYARD_TEST_RENDEZVOUS";
const LAYOUT: &str = "TRAINYARD_TEST_LAYOUT";

const LIMIT: Duration = Duration::from_secs(60);

fn options(layout: &str) -> EngineOptions {
    EngineOptions { parallel: layout.parse().unwrap(), threads: 1, dtype: Dtype::F32, ..EngineOptions::default() }
}

fn join(address: &str, rank: usize) -> ProcessRank {
    let (address, job) = (address.to_owned(), "tests".to_owned());
    ProcessRank::join(&Rendezvous { address, rank, world: 2, job, patience: LIMIT, limit: LIMIT }).unwrap()
}

/// Folders are the same for both ranks.
struct NoCopies;

impl FolderCopies for NoCopies {
    fn fetch(&self, _dir: &Path, _location: &Path, done: FetchDone) {
        done(Ok(()));
    }

    fn copy_of(&self, _dir: &Path) -> Option<PathBuf> {
        None
    }

    fn remove(&self, _dir: &Path) {}
}

#[test]
#[ignore = "the process of rank 1, which other tests start"]
#[allow(clippy::print_stdout, reason = "the test that starts it reads it")]
fn rank_1() {
    let [address, layout] = [ADDRESS, LAYOUT].map(|name| std::env::var(name).unwrap());
    let models = vec![("m".into(), load(&golden("llama")).unwrap())];
    let followed = join(&address, 1).follow_on_gpu(gpu(1, Dtype::F32), models, &options(&layout), &NoCopies, || ());
    if let Err(error) = followed {
        println!("rank 1 ends: {error}");
        std::process::exit(3);
    }
}

/// Calls `lead` with the engine of rank 0; rank 1 is another process. Returns how that process ended, and its output.
fn with_process<T>(layout: &str, lead: impl FnOnce(Driver<ParallelEngine<Cuda>>) -> T) -> (T, ExitStatus, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["cuda_processes::rank_1", "--exact", "--ignored", "--nocapture", "--test-threads", "1"]);
    other.env(ADDRESS, &address).env(LAYOUT, layout).stdout(Stdio::piped());
    let other = Ended(other.spawn().unwrap());
    let models = vec![("m".into(), load(&golden("llama")).unwrap())];
    let engine = join(&address, 0).lead_on_gpu(gpu(0, Dtype::F32), models, &options(layout)).unwrap();
    let found = lead(Driver::over(engine));
    let (status, said) = other.wait();
    (found, status, said)
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Ended {
    fn wait(mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < LIMIT, "rank 1 goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        (self.0.wait().unwrap(), said)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
    }
}

fn with_devices(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    let devices = [("CUDASIM_DEVICES", "2"), ("CUDASIM_SEED", "6")];
    simulated_with(&format!("cuda_processes::{test}"), &[&devices, settings].concat(), None, body);
}

#[test]
fn processes_compute_what_threads_do() {
    with_devices("processes_compute_what_threads_do", &[], || {
        for (layout, full) in [("tp=2", false), ("dp=2,zero=3", true)] {
            let expected = outcome(&mut open("llama", layout), full);
            let (found, status, said) = with_process(layout, |mut d| outcome(&mut d, full));
            assert_eq!(found, expected, "{layout}");
            assert!(status.success(), "{said}");
        }
    });
}

/// Why rank 0 ends with this fault of rank 1, and how rank 1 does.
fn ends(fault: &str) -> (String, ExitStatus, String) {
    // Of rank 1 alone: rank 0 has the same variables.
    assert!(std::env::var(fault).unwrap().starts_with("1:"));
    let began = Instant::now();
    let ended = with_process("tp=2", |mut d| {
        d.create("x", Some(lora(4, 1)));
        d.start(loss_op("x", examples(1), false));
        while d.engine.failure().is_none() {
            assert!(began.elapsed() < LIMIT && !d.engine.is_idle(), "rank 0 goes on");
            d.engine.step();
        }
        assert!(d.engine.step().is_empty(), "nothing is left to compute");
        d.engine.failure().unwrap().message
    });
    assert!(began.elapsed() < LIMIT);
    ended
}

#[test]
fn a_process_that_is_killed_ends_all() {
    with_devices("a_process_that_is_killed_ends_all", &[("CUDASIM_NCCL_KILL", "1:4")], || {
        let (failure, status, said) = ends("CUDASIM_NCCL_KILL");
        assert!(failure.contains("rank 1 ") && failure.contains("connection was closed"), "{failure}");
        assert_eq!(status.code(), None, "it was killed: {said}");
    });
}

#[test]
fn a_process_whose_collectives_fail_ends_all() {
    with_devices("a_process_whose_collectives_fail_ends_all", &[("CUDASIM_NCCL_DIE", "1:4")], || {
        let (failure, status, said) = ends("CUDASIM_NCCL_DIE");
        // Of the two, the one that noticed it first.
        let named = failure.contains("rank 0 of 2: ") || failure.contains("rank 1");
        assert!(named, "{failure}");
        assert!(status.code() == Some(3) && said.contains("rank 1 ends: "), "{status:?}: {said}");
    });
}
