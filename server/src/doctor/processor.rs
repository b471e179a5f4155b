//! The processor and the chosen kernels.

use std::thread;

use trainyard_gpu_runtime::Parallel;
use trainyard_gpu_runtime::backend::cpu::{Blocking, Isa};

use super::Check;
use crate::config::Config;
use crate::device::dtype;

const GROUP: &str = "processor";

pub(super) fn check(config: &Config) -> Vec<Check> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let best = Isa::detect();
    let isa = config.kernels.unwrap_or(best);
    let blocks = Check::ok(GROUP, "blocks", Blocking::detect(isa).describe(dtype(config)));
    vec![kernels(isa, best), blocks, threads(config.threads, processors), ranks(config.parallel, config.threads)]
}

/// Checks the used kernels `isa` against `best`, the best ones that the processor has.
fn kernels(isa: Isa, best: Isa) -> Check {
    match isa {
        isa if isa < best => {
            let value = format!("{}, as configured; the processor has {}", isa.name(), best.name());
            Check::ok(GROUP, "kernels", value)
        }
        Isa::Portable => Check::warning(
            GROUP,
            "kernels",
            "portable: neither AVX2 with FMA nor AVX-512 with BF16",
            "training and sampling take many times as long: use a processor with AVX2, or expose it to the virtual machine",
        ),
        isa => Check::ok(GROUP, "kernels", isa.name()),
    }
}

fn threads(threads: usize, processors: usize) -> Check {
    let value = format!("{threads} on {processors} processors");
    if threads > processors {
        let advice = "more threads than processors slow each other down: pass --threads with at most that number";
        return Check::warning(GROUP, "threads", value, advice);
    }
    Check::ok(GROUP, "threads", value)
}

/// Checks the threads of ranks: each has a part of them, at least one.
fn ranks(layout: Parallel, threads: usize) -> Check {
    let ranks = layout.world();
    let value = match ranks {
        1 => "tp=1: one rank has all threads".to_owned(),
        _ => format!("{layout}: {ranks} ranks, {} threads each", (threads / ranks).max(1)),
    };
    if ranks > threads {
        let advice =
            format!("each rank needs a thread: pass --threads with at least {ranks}, or --parallel with fewer ranks");
        return Check::warning(GROUP, "layout", value, advice);
    }
    if !threads.is_multiple_of(ranks) {
        let advice =
            format!("ranks wait for the one with the fewest threads: pass --threads with a multiple of {ranks}");
        return Check::warning(GROUP, "layout", value, advice);
    }
    Check::ok(GROUP, "layout", value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::Status;
    use super::*;

    #[test]
    fn slow_kernels_and_too_many_threads_are_reported() {
        assert_eq!(kernels(Isa::Avx2, Isa::Avx2), Check::ok(GROUP, "kernels", "avx2"));
        assert_eq!(kernels(Isa::Portable, Isa::Portable).status, Status::Warning);
        let older = kernels(Isa::Avx2, Isa::AmxBf16);
        assert_eq!(older, Check::ok(GROUP, "kernels", "avx2, as configured; the processor has amx-bf16"));
        assert_eq!(threads(2, 2).status, Status::Ok);
        assert_eq!(threads(3, 2).status, Status::Warning);
    }

    #[test]
    fn ranks_without_threads_are_reported() {
        let of = |layout: &str, threads| ranks(layout.parse::<Parallel>().unwrap(), threads);
        assert_eq!(of("tp=1", 8).status, Status::Ok);
        assert_eq!(of("tp=2", 8), Check::ok(GROUP, "layout", "tp=2: 2 ranks, 4 threads each"));
        assert_eq!(of("tp=2,ep=2", 8), Check::ok(GROUP, "layout", "tp=2,ep=2: 4 ranks, 2 threads each"));
        assert_eq!((of("tp=2", 1).status, of("ep=2", 3).status), (Status::Warning, Status::Warning));
    }
}
