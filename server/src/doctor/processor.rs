//! The processor, and the kernels that are chosen for it.

use std::thread;

use trainyard_gpu_runtime::backend::cpu::Isa;

use super::Check;
use crate::config::Config;

const GROUP: &str = "processor";

pub(super) fn check(config: &Config) -> Vec<Check> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    vec![kernels(Isa::detect()), threads(config.threads, processors)]
}

fn kernels(isa: Isa) -> Check {
    match isa {
        Isa::Portable => Check::warning(
            GROUP,
            "kernels",
            "portable: neither AVX2 with FMA nor AVX-512 with BF16",
            "training and sampling take many times as long: use a processor with AVX2, or let the virtual machine show it",
        ),
        isa => Check::ok(GROUP, "kernels", isa.name()),
    }
}

fn threads(threads: usize, processors: usize) -> Check {
    let value = format!("{threads} on {processors} processors");
    if threads > processors {
        let advice = "more threads than processors slow each other down: give --threads at most that number";
        return Check::warning(GROUP, "threads", value, advice);
    }
    Check::ok(GROUP, "threads", value)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn slow_kernels_and_too_many_threads_are_reported() {
        assert_eq!(kernels(Isa::Avx2), Check::ok(GROUP, "kernels", "avx2"));
        assert_eq!(kernels(Isa::Portable).status, Status::Warning);
        assert_eq!(threads(2, 2).status, Status::Ok);
        assert_eq!(threads(3, 2).status, Status::Warning);
    }
}
