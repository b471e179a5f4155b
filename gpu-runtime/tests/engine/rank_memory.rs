//! Memory of ranks of SmolLM2, by the system's count, against the plan. Each count is of a process of its own: memory that
//! was freed and not returned would be to the credit of the next.
//!
//! ```sh
//! cargo test --workspace --test engine -- --ignored --nocapture rank_memory
//! ```

use std::env;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use trainyard_gpu_runtime::load::load;
use trainyard_gpu_runtime::plan::{Device, Host, LinkKind, Network, PlannedLayout, RankMemory, Workload, plan};
use trainyard_gpu_runtime::{Dtype, EngineOptions};
use trainyard_protocol::{Datum, Engine, LoraSpec};

use crate::smollm2::model;
use crate::support::{Driver, RankDriver, datum, layout_options, lora, tokens};

/// Tokens of an example.
const TOKENS: usize = 64;
/// Examples of a request. Replicas divide them.
const EXAMPLES: usize = 4;

/// A layout, a type and whether an adapter is trained: what a process counts. Unset in the first one.
const COUNT: &str = "TRAINYARD_COUNT_MEMORY";

/// Bytes of this process in memory that no file backs.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

/// The most that is resident while something is done.
fn most_resident(work: impl FnOnce()) -> usize {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(resident());
                thread::sleep(Duration::from_millis(2));
            }
            most
        });
        work();
        done.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    })
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// Planned memory of a rank of a layout.
fn planned(layout: &str, dtype: Dtype, lora: Option<LoraSpec>) -> RankMemory {
    let layout: PlannedLayout = layout.parse().unwrap();
    let work = Workload {
        dtype,
        blocks: std::collections::BTreeMap::new(),
        kernels: None,
        lora,
        microbatch_tokens: TOKENS * EXAMPLES / layout.dp,
        microbatches: 1,
        context: TOKENS,
        sequences: 1,
    };
    let device = Device::host(Host { memory_bytes: 1 << 40, flops: 1e11, bandwidth: 1e10 });
    let network = Network { per_node: 8, between: LinkKind::Nvlink };
    plan(&load(&model()).unwrap().config, layout, &device, &network, &work).unwrap().memory
}

fn requests(step: usize) -> Vec<Datum> {
    (0..EXAMPLES).map(|i| datum(&tokens(TOKENS + 1, 40_000, 10 * step + i))).collect()
}

/// Two steps of two requests each. Their buffers stay for the next ones.
fn train(d: &mut RankDriver, run: &str, adapter: Option<LoraSpec>) {
    d.create(run, adapter);
    for step in 0..2 {
        for _ in 0..2 {
            d.forward_backward(run, requests(step));
        }
        d.step(run, 1e-5);
    }
}

fn options(layout: &str, dtype: Dtype) -> EngineOptions {
    EngineOptions { microbatch_tokens: Some(TOKENS * EXAMPLES), threads: 1, ..layout_options(layout, dtype) }
}

/// Prints what a rank holds, what of it is not base weights, and what was planned.
fn count(layout: &str, dtype: Dtype, adapter: Option<LoraSpec>) {
    let before = resident();
    let mut d = Driver::on_layout(&model(), options(layout, dtype));
    let (ranks, loaded) = (usize::try_from(d.engine.stats().ranks).unwrap(), resident());
    let most = most_resident(|| train(&mut d, "x", adapter.clone()));
    let planned = planned(layout, dtype, adapter);
    let parts = planned.parts().map(|(part, bytes)| format!("{part} {:.0}", mib(bytes as f64))).join(", ");
    eprintln!("counted {} {} {} {parts}", (most - before) / ranks, (most - loaded) / ranks, planned.total());
}

/// Counts of another process: the bytes that a rank holds, and the part of them that is not base weights.
fn counted(layout: &str, dtype: Dtype, trained: &str, wrong: &mut Vec<String>) -> [f64; 2] {
    let which = format!("{layout} {} {trained}", dtype.name());
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", "rank_memory::rank_memory_of_smollm2_is_what_is_planned", "--ignored", "--nocapture"]);
    let output = String::from_utf8(process.env(COUNT, &which).output().unwrap().stderr).unwrap();
    let line = output.split("counted ").nth(1).unwrap().lines().next().unwrap();
    let [held, state, planned, parts] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().unwrap();
    let [held, state, planned] = [held, state, planned].map(|bytes| bytes.parse::<f64>().unwrap());
    let off = 100.0 * (held / planned - 1.0);
    let line = format!("{which}: {:.0} MiB, {:.0} planned ({parts}), {off:+.1} %", mib(held), mib(planned));
    eprintln!("{line}");
    wrong.extend((off.abs() > 10.0).then_some(line));
    [held, state]
}

#[test]
#[ignore = "trains SmolLM2 under several layouts"]
fn rank_memory_of_smollm2_is_what_is_planned() {
    if let Ok(which) = env::var(COUNT) {
        let [layout, dtype, trained] = which.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let dtype = if dtype == Dtype::F32.name() { Dtype::F32 } else { Dtype::Bf16 };
        return count(layout, dtype, (trained == "lora").then(|| lora(32, 1)));
    }
    let mut wrong = Vec::new();
    for dtype in [Dtype::Bf16, Dtype::F32] {
        for layout in ["dp=1", "tp=3", "dp=2", "tp=3,dp=2"] {
            for trained in ["lora", "full"] {
                counted(layout, dtype, trained, &mut wrong);
            }
        }
        let [_, alone] = counted("dp=1", dtype, "full", &mut wrong);
        for (ranks, most) in [(2, 0.65), (4, 0.4)] {
            let [_, divided] = counted(&format!("dp={ranks},zero=3"), dtype, "full", &mut wrong);
            eprintln!("    {:.1} % of one rank's", 100.0 * divided / alone);
            wrong.extend((divided > most * alone).then(|| format!("{ranks} ranks: {divided} of {alone}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
