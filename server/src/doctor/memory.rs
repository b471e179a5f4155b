//! The machine's memory, and the engine's budget.

use trainyard_gpu_runtime::CpuEngine;
use trainyard_gpu_runtime::config::{LoadError, ModelSource};
use trainyard_protocol::MemoryPlan;

use super::Check;
use crate::config::{Config, Device, Role, size};
use crate::engine::{describe_memory, engine_options};
use crate::machine;

const GROUP: &str = "memory";

pub(super) fn check(config: &Config, models: &[ModelSource]) -> Vec<Check> {
    let machine = machine::memory_bytes();
    let mut checks = vec![match machine {
        Some(bytes) => Check::ok(GROUP, "machine", format!("{}, or the limit of the cgroup", size::budget(bytes))),
        None => {
            let advice = "without --memory-mib, the engine's memory is unlimited: set a limit";
            Check::warning(GROUP, "machine", "the system does not report its memory", advice)
        }
    }];
    // GPUs have their own, which a server divides when it has opened them.
    let on_gpus = matches!(config.device, Device::Cuda(_));
    if config.role != Role::Api && !on_gpus {
        let options = engine_options(config);
        checks.push(budget(machine, options.memory_bytes.map(|bytes| bytes as u64)));
        if models.len() == config.models.len() {
            checks.push(division(CpuEngine::memory_plan(models, &options), config.parallel.world() as u64));
        }
    }
    checks
}

fn budget(machine: Option<u64>, budget: Option<u64>) -> Check {
    let Some(budget) = budget else { return Check::ok(GROUP, "budget", "no limit") };
    let value = size::budget(budget);
    match machine {
        Some(machine) if budget > machine => {
            let advice =
                format!("the process would be killed: pass --memory-mib with at most {}", (machine / 5 * 4) >> 20);
            Check::failure(GROUP, "budget", value, advice)
        }
        Some(machine) if budget > machine / 10 * 9 => {
            let advice = "requests, the store and the system need memory too: pass a smaller --memory-mib";
            Check::warning(GROUP, "budget", value, advice)
        }
        _ => Check::ok(GROUP, "budget", value),
    }
}

/// Checks how the memory of all ranks is divided, and the part of the models on each rank.
fn division(plan: Result<MemoryPlan, LoadError>, ranks: u64) -> Check {
    match plan {
        Ok(plan) if ranks > 1 => {
            let each = (plan.weights / ranks) >> 20;
            Check::ok(GROUP, "division", format!("{}; models {each} MiB on each rank", describe_memory(&plan)))
        }
        Ok(plan) => Check::ok(GROUP, "division", describe_memory(&plan)),
        Err(error @ LoadError::Layout(_)) => {
            let advice = "pass --parallel tp=N where N divides the model's dimensions";
            Check::failure(GROUP, "division", error.to_string(), advice)
        }
        Err(error) => {
            let advice = "pass a larger --memory-mib, smaller parts (--activation-memory-mib, --kv-memory-mib, \
                          --checkpoint-memory-mib), or serve fewer models";
            Check::failure(GROUP, "division", error.to_string(), advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_budget_beyond_the_machine_is_a_failure() {
        let status = |machine, bytes| budget(machine, bytes).status;
        assert_eq!(status(Some(1000 << 20), Some(800 << 20)), Status::Ok);
        assert_eq!(status(Some(1000 << 20), Some(950 << 20)), Status::Warning);
        assert_eq!(status(Some(1000 << 20), Some(1001 << 20)), Status::Failure);
        assert_eq!((status(None, Some(1)), status(None, None)), (Status::Ok, Status::Ok));
    }

    #[test]
    fn a_budget_that_is_too_small_is_a_failure() {
        let plan = MemoryPlan { weights: 10 << 20, ..MemoryPlan::default() };
        assert_eq!(division(Ok(plan), 1).value, "no limit; models 10 MiB");
        assert_eq!(division(Ok(plan), 4).value, "no limit; models 10 MiB; models 2 MiB on each rank");
        let failed = division(Err(LoadError::Memory { budget: 1, plan }), 1);
        assert_eq!(failed.status, Status::Failure);
        assert!(failed.value.contains("too small"), "{failed:?}");
    }
}
