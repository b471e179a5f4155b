//! Checks of a GPU: its properties, its speed, and the results of its ops.

use std::path::Path;

use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::backend::Backend as _;
use trainyard_gpu_runtime::backend::check::{OpCheck, Scale, check as check_ops, check_shapes, host_backend};
use trainyard_gpu_runtime::backend::cuda::{
    Cuda, CudaError, DeviceRates, ExchangeRates, Nccl, measure_exchanges, measure_rates, open_libraries,
};

use super::Check;
use super::shapes;
use crate::config::Shapes;

const GROUP: &str = "device";
const OPS: &str = "ops";
/// Advice where a device that was opened does not work.
const WRONG: &str =
    "results on this device are wrong: report it with the output of doctor --json, and pass --device cpu";

/// Checks the library for communication between ranks, and exchanges between these GPUs.
pub(super) fn nccl(numbers: &[u16]) -> Result<Vec<Check>, CudaError> {
    let version = Nccl::open()?.version()?;
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    let version = Check::ok(GROUP, "nccl", format!("NCCL {major}.{minor}.{patch}"));
    let ordinals: Vec<i32> = numbers.iter().copied().map(i32::from).collect();
    let ExchangeRates { bytes, sum, gather } = measure_exchanges(&ordinals)?;
    let [sum_ms, gather_ms] = [sum, gather].map(|seconds| seconds * 1e3);
    let value = format!("right; {sum_ms:.3} ms for a sum of {} KiB, {gather_ms:.3} ms for an all-gather", bytes >> 10);
    let numbers = [("bytes", bytes as f64), ("sum_seconds", sum), ("gather_seconds", gather)];
    Ok(vec![version, Check::ok(GROUP, "exchanges", value).with_numbers(numbers)])
}

/// Checks the device, its driver and libraries, its speed and its ops, also with the shapes of real models.
pub(super) fn examine(
    number: u16,
    dtype: Dtype,
    cublaslt: Option<&Path>,
    shapes: Shapes,
) -> Result<Vec<Check>, CudaError> {
    let cuda = Cuda::open_with(i32::from(number), dtype, cublaslt)?;
    let device = cuda.gpu();
    let ((major, minor), [newest, of]) = (device.capability(), device.driver_version()?);
    let memory = device.memory()?;
    let found = format!("{}, {} MiB, as cuda:{number}", device.name()?, memory.total >> 20);
    let [free, budget] = [memory.free, memory.budget()].map(|bytes| bytes >> 20);
    let said = format!("{free} MiB are free, of which the engine would use {budget} MiB without --memory-mib");
    let mut checks = vec![
        Check::ok(GROUP, "compute", found).with_numbers([("number", f64::from(number))]),
        Check::ok(GROUP, "free memory", said).with_numbers([
            ("total_bytes", memory.total as f64),
            ("free_bytes", memory.free as f64),
            ("budget_bytes", memory.budget() as f64),
        ]),
        Check::ok(GROUP, "capability", format!("{major}.{minor}; the driver supports CUDA up to {newest}.{of}"))
            .with_numbers([
                ("major", f64::from(major)),
                ("minor", f64::from(minor)),
                ("cuda_major", f64::from(newest)),
                ("cuda_minor", f64::from(of)),
            ]),
        Check::ok(GROUP, "kernels", device.kernel_code().to_string()),
        Check::ok(GROUP, "libraries", open_libraries().join(", ")),
        Check::ok(GROUP, "cublaslt", cuda.matmul_library().to_string()),
    ];
    // What was found so far stays in the report when something fails.
    let rates = match measure_rates(device) {
        Ok(rates) => rates,
        Err(error) => {
            checks.push(Check::failure(GROUP, "matmul", error.to_string(), WRONG));
            return Ok(checks);
        }
    };
    let DeviceRates { extent, matmul_flops, copied, host_to_device, device: on_device, device_to_host } = rates;
    let matmul = format!("{:.3} TFLOP/s, bf16, extents of {extent}", matmul_flops / 1e12);
    let copies = [host_to_device, on_device, device_to_host].map(|rate| rate / 1e9);
    let [inward, within, outward] = copies;
    let said =
        format!("GB/s: {inward:.2} to the device, {within:.2} on it, {outward:.2} from it, {} KiB", copied >> 10);
    checks.extend([
        Check::ok(GROUP, "matmul", matmul).with_numbers([("extent", extent as f64), ("flop_per_second", matmul_flops)]),
        Check::ok(GROUP, "copies", said).with_numbers([
            ("bytes", copied as f64),
            ("to_device_bytes_per_second", host_to_device),
            ("on_device_bytes_per_second", on_device),
            ("from_device_bytes_per_second", device_to_host),
        ]),
    ]);
    checks.extend(ops(&cuda, cublaslt, shapes::sizes(shapes, matmul_flops)));
    Ok(checks)
}

/// Runs the op suite for both types of weights, then the checks with real shapes of these sizes.
fn ops(cuda: &Cuda, cublaslt: Option<&Path>, scale: Option<Scale>) -> Vec<Check> {
    let (number, own) = (cuda.gpu().ordinal(), cuda.dtype());
    let other = if own == Dtype::F32 { Dtype::Bf16 } else { Dtype::F32 };
    let results = |found: Vec<OpCheck>| found.iter().map(result).collect::<Vec<_>>();
    let mut checks = results(check_ops(cuda, &host_backend(own)));
    let second = match Cuda::open_with(number, other, cublaslt) {
        Ok(second) => second,
        Err(error) => {
            checks.push(Check::failure(OPS, other.name(), error.to_string(), WRONG));
            return checks;
        }
    };
    checks.extend(results(check_ops(&second, &host_backend(other))));
    if let Some(scale) = scale {
        let (rounded, exact) = if own == Dtype::Bf16 { (cuda, &second) } else { (&second, cuda) };
        let found = check_shapes(rounded, exact, &host_backend(Dtype::F32), &scale);
        checks.extend(found.into_iter().map(shapes::result));
    }
    checks
}

fn result(op: &OpCheck) -> Check {
    let check = if op.holds() {
        Check::ok(OPS, op.name(), op.value())
    } else {
        Check::failure(OPS, op.name(), op.value(), WRONG)
    };
    check.took(op.seconds).compared(Some(f64::from(op.error)), Some(f64::from(op.tolerance)))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn an_op_that_is_off_is_a_failure() {
        let op = OpCheck {
            ops: "norms",
            dtype: Dtype::F32,
            result: "dx",
            error: 1e-6,
            tolerance: 2e-5,
            failure: None,
            seconds: 0.5,
        };
        let found = result(&op);
        assert_eq!((found.seconds, found.tolerance), (Some(0.5), Some(f64::from(2e-5f32))));
        let said = (found.name.as_str(), found.value.as_str(), found.status);
        assert_eq!(said, ("norms, f32", "error 1.0e-6 (dx), at most 2e-5", Status::Ok));
        assert_eq!(result(&OpCheck { error: 3e-5, ..op.clone() }).status, Status::Failure);
        let lost = result(&OpCheck { failure: Some("lost".to_owned()), ..op });
        assert_eq!((lost.status, lost.value.as_str()), (Status::Failure, "lost"));
    }
}
