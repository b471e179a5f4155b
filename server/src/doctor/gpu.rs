//! Checks of a GPU: its properties, its speed, and the results of its ops.

use std::path::Path;

use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::backend::Backend as _;
use trainyard_gpu_runtime::backend::check::{OpCheck, check as check_ops, host_backend};
use trainyard_gpu_runtime::backend::cuda::{
    Cuda, CudaError, DeviceRates, ExchangeRates, Nccl, measure_exchanges, measure_rates, open_libraries,
};

use super::Check;

const GROUP: &str = "device";
const OPS: &str = "ops";

/// Checks the library for communication between ranks, and exchanges between these GPUs.
pub(super) fn nccl(numbers: &[u16]) -> Result<Vec<Check>, CudaError> {
    let version = Nccl::open()?.version()?;
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    let version = Check::ok(GROUP, "nccl", format!("NCCL {major}.{minor}.{patch}"));
    let ordinals: Vec<i32> = numbers.iter().copied().map(i32::from).collect();
    let ExchangeRates { bytes, sum, gather } = measure_exchanges(&ordinals)?;
    let [sum, gather] = [sum, gather].map(|seconds| seconds * 1e3);
    let value = format!("right; {sum:.3} ms for a sum of {} KiB, {gather:.3} ms for an all-gather", bytes >> 10);
    Ok(vec![version, Check::ok(GROUP, "exchanges", value)])
}

/// Checks the device, its driver and libraries, its ops and its speed.
pub(super) fn examine(number: u16, dtype: Dtype, cublaslt: Option<&Path>) -> Result<Vec<Check>, CudaError> {
    let cuda = Cuda::open_with(i32::from(number), dtype, cublaslt)?;
    let device = cuda.gpu();
    let ((major, minor), [newest, of]) = (device.capability(), device.driver_version()?);
    let memory = device.memory()?;
    let found = format!("{}, {} MiB, as cuda:{number}", device.name()?, memory.total >> 20);
    let [free, budget] = [memory.free, memory.budget()].map(|bytes| bytes >> 20);
    let memory = format!("{free} MiB are free, of which the engine would use {budget} MiB without --memory-mib");
    let mut checks = vec![
        Check::ok(GROUP, "compute", found),
        Check::ok(GROUP, "free memory", memory),
        Check::ok(GROUP, "capability", format!("{major}.{minor}; the driver supports CUDA up to {newest}.{of}")),
        Check::ok(GROUP, "kernels", device.kernel_code().to_string()),
        Check::ok(GROUP, "libraries", open_libraries().join(", ")),
        Check::ok(GROUP, "cublaslt", cuda.matmul_library().to_string()),
    ];
    let rates = measure_rates(device)?;
    let DeviceRates { extent, matmul_flops, copied, host_to_device, device: on_device, device_to_host } = rates;
    let matmul = format!("{:.3} TFLOP/s, bf16, extents of {extent}", matmul_flops / 1e12);
    let copies = [host_to_device, on_device, device_to_host].map(|rate| rate / 1e9);
    let [inward, within, outward] = copies;
    let copies =
        format!("GB/s: {inward:.2} to the device, {within:.2} on it, {outward:.2} from it, {} KiB", copied >> 10);
    checks.extend([Check::ok(GROUP, "matmul", matmul), Check::ok(GROUP, "copies", copies)]);
    checks.extend(ops(cuda, cublaslt)?);
    Ok(checks)
}

/// Runs the op suite for both types of weights.
fn ops(cuda: Cuda, cublaslt: Option<&Path>) -> Result<Vec<Check>, CudaError> {
    let (number, own) = (cuda.gpu().ordinal(), cuda.dtype());
    let other = if own == Dtype::F32 { Dtype::Bf16 } else { Dtype::F32 };
    let mut found = check_ops(&cuda, &host_backend(own));
    drop(cuda);
    found.extend(check_ops(&Cuda::open_with(number, other, cublaslt)?, &host_backend(other)));
    Ok(found.into_iter().map(|op| result(&op)).collect())
}

fn result(op: &OpCheck) -> Check {
    let advice = "results on this device are wrong: report it with the output of doctor --json, and pass --device cpu";
    if op.holds() {
        return Check::ok(OPS, op.name(), op.value());
    }
    Check::failure(OPS, op.name(), op.value(), advice)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

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
}
