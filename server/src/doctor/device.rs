//! The GPU, if the configuration asks for one.

use super::Check;
use super::gpu::{examine, nccl};
use super::shapes::of_processor;
use crate::config::{Config, Device, Gpus, Shapes};
use crate::device::dtype;
use crate::device::local_ranks;

const GROUP: &str = "device";

pub(super) fn check(config: &Config, shapes: Shapes) -> Vec<Check> {
    let ranks = local_ranks(config);
    let gpus = match &config.device {
        Device::Cpu => {
            let checks = of_processor(config, shapes).into_iter();
            return [Check::ok(GROUP, "compute", "the processor, as configured")].into_iter().chain(checks).collect();
        }
        Device::Auto => &Gpus::From(0),
        Device::Cuda(gpus) => gpus,
    };
    let Some(numbers) = gpus.of(ranks) else {
        let advice = "name a GPU for each rank of the process";
        return vec![Check::failure(GROUP, "compute", format!("{gpus} does not name {ranks} GPUs"), advice)];
    };
    let examined = |&number: &u16| examine(number, dtype(config), config.cublaslt.as_deref(), shapes);
    let found = numbers.iter().map(examined).collect::<Result<Vec<_>, _>>();
    let found = found.and_then(|found| Ok((found, if ranks > 1 { nccl(&numbers)? } else { Vec::new() })));
    match found {
        Ok((found, nccl)) => found.into_iter().flatten().chain(nccl).collect(),
        Err(reason) if config.device == Device::Auto => {
            vec![Check::ok(GROUP, "compute", format!("the processor: {reason}"))]
        }
        Err(reason) => {
            let advice =
                "install the NVIDIA driver, cuBLAS 12 or 13, and NCCL for several ranks, or pass --device auto or cpu";
            vec![Check::failure(GROUP, "compute", reason.to_string(), advice)]
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::Status;
    use super::*;
    use crate::config::{NamedPath, ServeFlags};

    #[test]
    fn a_device_that_is_not_there_is_a_failure_where_it_was_asked_for() {
        let of = |device| {
            let mut flags = ServeFlags::default();
            flags.shared.models = vec![NamedPath { name: "m".to_owned(), path: "/m".into() }];
            let config = Config { device, ..Config::resolve(flags).unwrap() };
            check(&config, Shapes::None).remove(0)
        };
        assert_eq!(of(Device::Cpu), Check::ok(GROUP, "compute", "the processor, as configured"));
        assert_eq!(of(Device::Auto).status, Status::Ok);
        // No machine has as many.
        assert_eq!(of(Device::Cuda(Gpus::From(9999))).status, Status::Failure);
    }
}
