//! The GPU, if the configuration asks for one.

use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::backend::Backend as _;
use trainyard_gpu_runtime::backend::check::{OpCheck, check as check_ops, host_backend};
use trainyard_gpu_runtime::backend::cuda::{Cuda, CudaError, DeviceRates, Nccl, measure_rates, open_libraries};

use super::Check;
use crate::config::{Config, Device, Gpus};
use crate::device::dtype;
use crate::device::local_ranks;

const GROUP: &str = "device";
const OPS: &str = "ops";

pub(super) fn check(config: &Config) -> Vec<Check> {
    let ranks = local_ranks(config);
    let gpus = match &config.device {
        Device::Cpu => return vec![Check::ok(GROUP, "compute", "the processor, as configured")],
        Device::Auto => &Gpus::From(0),
        Device::Cuda(gpus) => gpus,
    };
    let Some(numbers) = gpus.of(ranks) else {
        let advice = "name a GPU for each rank of the process";
        return vec![Check::failure(GROUP, "compute", format!("{gpus} are not {ranks} GPUs"), advice)];
    };
    let found = numbers.into_iter().map(|number| examine(number, dtype(config))).collect::<Result<Vec<_>, _>>();
    let found = found.and_then(|found| Ok((found, if ranks > 1 { Some(nccl()?) } else { None })));
    match found {
        Ok((found, nccl)) => found.into_iter().flatten().chain(nccl).collect(),
        Err(reason) if config.device == Device::Auto => {
            vec![Check::ok(GROUP, "compute", format!("the processor: {reason}"))]
        }
        Err(reason) => {
            let advice =
                "install the NVIDIA driver, cuBLAS 12 or 13, and NCCL for several ranks, or give --device auto or cpu";
            vec![Check::failure(GROUP, "compute", reason.to_string(), advice)]
        }
    }
}

/// Checks the library for communication between ranks.
fn nccl() -> Result<Check, CudaError> {
    let version = Nccl::open()?.version()?;
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    Ok(Check::ok(GROUP, "nccl", format!("NCCL {major}.{minor}.{patch}")))
}

/// Checks the device, its driver and libraries, its ops and its speed.
fn examine(number: u16, dtype: Dtype) -> Result<Vec<Check>, CudaError> {
    let cuda = Cuda::open(i32::from(number), dtype)?;
    let device = cuda.gpu();
    let ((major, minor), [newest, of]) = (device.capability(), device.driver_version()?);
    let found = format!("{}, {} MiB, as cuda:{number}", device.name()?, device.memory()? >> 20);
    let mut checks = vec![
        Check::ok(GROUP, "compute", found),
        Check::ok(GROUP, "capability", format!("{major}.{minor}; the driver supports CUDA up to {newest}.{of}")),
        Check::ok(GROUP, "kernels", device.kernel_code().to_string()),
        Check::ok(GROUP, "libraries", open_libraries().join(", ")),
    ];
    let rates = measure_rates(device)?;
    let DeviceRates { extent, matmul_flops, copied, host_to_device, device: on_device, device_to_host } = rates;
    let matmul = format!("{:.3} TFLOP/s, bf16, extents of {extent}", matmul_flops / 1e12);
    let copies = [host_to_device, on_device, device_to_host].map(|rate| rate / 1e9);
    let [inward, within, outward] = copies;
    let copies =
        format!("GB/s: {inward:.2} to the device, {within:.2} on it, {outward:.2} from it, {} KiB", copied >> 10);
    checks.extend([Check::ok(GROUP, "matmul", matmul), Check::ok(GROUP, "copies", copies)]);
    checks.extend(ops(cuda)?);
    Ok(checks)
}

/// Runs the op suite for both types of weights.
fn ops(cuda: Cuda) -> Result<Vec<Check>, CudaError> {
    let (number, own) = (cuda.gpu().ordinal(), cuda.dtype());
    let other = if own == Dtype::F32 { Dtype::Bf16 } else { Dtype::F32 };
    let mut found = check_ops(&cuda, &host_backend(own));
    drop(cuda);
    found.extend(check_ops(&Cuda::open(number, other)?, &host_backend(other)));
    Ok(found.into_iter().map(|op| result(&op)).collect())
}

fn result(op: &OpCheck) -> Check {
    let advice = "results on this device are wrong: report it with the output of doctor --json, and give --device cpu";
    if op.holds() {
        return Check::ok(OPS, op.name(), op.value());
    }
    Check::failure(OPS, op.name(), op.value(), advice)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::Status;
    use super::*;
    use crate::config::{NamedPath, ServeFlags};

    #[test]
    fn an_op_that_is_off_is_a_failure() {
        let op = OpCheck { ops: "norms", dtype: Dtype::F32, result: "dx", error: 1e-6, tolerance: 2e-5, failure: None };
        let found = result(&op);
        let said = (found.name.as_str(), found.value.as_str(), found.status);
        assert_eq!(said, ("norms, f32", "error 1.0e-6 (dx), at most 2e-5", Status::Ok));
        assert_eq!(result(&OpCheck { error: 3e-5, ..op.clone() }).status, Status::Failure);
        let lost = result(&OpCheck { failure: Some("lost".to_owned()), ..op });
        assert_eq!((lost.status, lost.value.as_str()), (Status::Failure, "lost"));
    }

    #[test]
    fn a_device_that_is_not_there_is_a_failure_where_it_was_asked_for() {
        let of = |device| {
            let mut flags = ServeFlags::default();
            flags.shared.models = vec![NamedPath { name: "m".to_owned(), path: "/m".into() }];
            let config = Config { device, ..Config::resolve(flags).unwrap() };
            check(&config).remove(0)
        };
        assert_eq!(of(Device::Cpu), Check::ok(GROUP, "compute", "the processor, as configured"));
        assert_eq!(of(Device::Auto).status, Status::Ok);
        // No machine has as many.
        assert_eq!(of(Device::Cuda(Gpus::From(9999))).status, Status::Failure);
    }
}
