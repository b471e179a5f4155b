//! Memory traffic and operations of kernels, counted by the simulator, against `counts.tsv`: if a kernel changes, its
//! line shows the costs or savings. `bench/gpu_roofline.py` predicts times from these counts.
//!
//! After an intended change, record anew: `TRAINYARD_RECORD_COUNTS=1 cargo test --workspace --lib cuda::tests::counts`.

mod attention;
mod dense;
mod family;
mod lora;
mod mixers;
mod sampling;
mod vision;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cuda_sim_client::Client;

use super::simulated::on_device;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::device::sources::SOURCES;
use crate::backend::cuda::kernels::entries;

const RECORD: &str = "TRAINYARD_RECORD_COUNTS";

/// Counters of the simulator, in the order of the table's columns.
const COUNTERS: [&str; 13] = [
    "instructions",
    "global_load_bytes",
    "global_store_bytes",
    "global_requests",
    "global_sectors",
    "shared_load_bytes",
    "shared_store_bytes",
    "shared_requests",
    "bank_conflicts",
    "tensor_instructions",
    "tensor_flop",
    "barriers",
    "atomics",
];

/// Name of a kernel that a case launches once, the unit of its work, and the number of these units.
type Work<'a> = (&'a str, &'a str, usize);

/// Kernel and shape to the rest of the line: unit, units, counters.
type Lines = BTreeMap<(String, String), String>;

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda/counts.tsv")
}

fn header() -> String {
    format!("kernel\tshape\tunit\tunits\t{}", COUNTERS.join("\t"))
}

fn kernels() -> BTreeSet<&'static str> {
    SOURCES.iter().flat_map(|source| entries(source.ptx).unwrap()).map(|(name, _)| name).collect()
}

struct Counts<'a> {
    device: &'a CudaDevice,
    client: Client,
    kernels: BTreeSet<&'static str>,
    lines: Lines,
}

impl<'a> Counts<'a> {
    fn new(device: &'a CudaDevice) -> Self {
        Self { device, client: Client::open().unwrap(), kernels: kernels(), lines: Lines::new() }
    }

    fn counter(&self, kernel: &str, name: &str) -> u64 {
        self.client.counter(kernel, name).unwrap()
    }

    /// Counts what `body` launches: each kernel of `work` once, and no other one. Returns what `body` does.
    fn count<T>(&mut self, shape: &str, work: &[Work<'_>], body: impl FnOnce(&CudaDevice) -> T) -> T {
        self.device.synchronize().unwrap();
        let names = || self.kernels.iter().copied();
        let launches =
            || -> BTreeMap<&str, u64> { names().map(|name| (name, self.counter(name, "launches"))).collect() };
        let all = |(name, ..): &Work<'_>| COUNTERS.map(|counter| self.counter(name, counter));
        let (launches_before, before): (_, Vec<_>) = (launches(), work.iter().map(all).collect());
        let result = body(self.device);
        self.device.synchronize().unwrap();
        let (launches_after, after): (_, Vec<_>) = (launches(), work.iter().map(all).collect());
        for (name, count) in launches_after {
            let expected = work.iter().filter(|(of_work, ..)| *of_work == name).count() as u64;
            assert_eq!(count - launches_before[name], expected, "launches of {name}, {shape}");
        }
        for (((name, unit, units), before), after) in work.iter().zip(before).zip(after) {
            let counts: Vec<String> =
                after.iter().zip(before).map(|(after, before)| (after - before).to_string()).collect();
            let line = format!("{unit}\t{units}\t{}", counts.join("\t"));
            let other = self.lines.insert(((*name).to_owned(), shape.to_owned()), line);
            assert!(other.is_none(), "{name}, {shape} is counted twice");
        }
        result
    }
}

fn recorded() -> Lines {
    let text = std::fs::read_to_string(table()).unwrap();
    assert_eq!(text.lines().next().unwrap(), header());
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        ((next(), next()), next())
    };
    text.lines().skip(1).map(line).collect()
}

#[test]
fn kernels_move_what_the_table_says() {
    on_device(|device| {
        let mut counts = Counts::new(device);
        dense::count(&mut counts);
        lora::count(&mut counts);
        attention::count(&mut counts);
        family::count(&mut counts);
        mixers::count(&mut counts);
        sampling::count(&mut counts);
        vision::count(&mut counts);
        let found = counts.lines;
        if std::env::var_os(RECORD).is_some() {
            let lines = found.iter().map(|((kernel, shape), line)| format!("{kernel}\t{shape}\t{line}\n"));
            return std::fs::write(table(), format!("{}\n{}", header(), lines.collect::<String>())).unwrap();
        }
        let expected = recorded();
        let keys: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
        let changed = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
        let changed: Vec<String> = changed
            .map(|key| format!("{key:?}\n  expected {:?}\n  found    {:?}", expected.get(key), found.get(key)))
            .collect();
        assert!(changed.is_empty(), "{}\n{}\nif that is meant, set {RECORD}=1", header(), changed.join("\n"));
    });
}

#[test]
fn every_kernel_is_in_the_table() {
    let counted: BTreeSet<String> = recorded().into_keys().map(|(kernel, _)| kernel).collect();
    assert_eq!(counted, kernels().into_iter().map(str::to_owned).collect());
}
