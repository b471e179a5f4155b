//! Callers get an error, never a panic, when something is missing or fails.

use super::simulated::{on_device, with_setting, without_symbol};
use super::support::{rows, values};
use crate::backend::cuda::device::error::CudaError;
use crate::backend::cuda::kernels::Argument;
use crate::backend::cuda::ops::embedding::embed;
use crate::backend::cuda::ops::matmul::Matmul;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::squares::squared_norms;

#[test]
fn a_machine_without_a_device_says_so() {
    with_setting(("CUDASIM_DEVICES", "0"), |device| {
        let error = device.err().unwrap();
        assert!(
            matches!(&error, CudaError::Driver { call, code, .. } if call == "cuInit" && code == "CUDA_ERROR_NO_DEVICE")
        );
    });
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    on_device(|device| {
        assert_eq!((device.ordinal(), device.name().unwrap().as_str()), (0, "Simulated CUDA device"));
        for ordinal in [1, -1] {
            assert!(crate::backend::cuda::device::open::CudaDevice::open(ordinal, 0).is_err());
        }
    });
}

#[test]
fn a_driver_that_is_too_old_is_named() {
    without_symbol("libcuda.so", "cuMemAllocAsync", |device| {
        let error = device.err().unwrap();
        assert_eq!(error.to_string(), "libcuda lacks the function cuMemAllocAsync: it is too old");
    });
}

#[test]
fn a_library_that_is_too_old_is_named() {
    without_symbol("libcublasLt.so", "cublasLtMatmulAlgoGetHeuristic", |device| {
        let error = Matmul::new(&device.unwrap()).err().unwrap();
        let reason = "libcublasLt lacks the function cublasLtMatmulAlgoGetHeuristic: it is too old";
        assert!(matches!(error, CudaError::NoUsableLibrary { library: "libcublasLt", .. }), "{error}");
        assert_eq!(error.to_string().matches(reason).count(), 2, "{error}");
    });
}

#[test]
fn a_full_device_can_be_used_further() {
    with_setting(("CUDASIM_MEMORY", "1000000"), |device| {
        let device = device.unwrap();
        let held = device.zeros::<f32>(100_000).unwrap();
        let error = device.uninitialised::<f32>(200_000).err().unwrap();
        assert!(matches!(error, CudaError::OutOfMemory { bytes: 800_000, used: 400_000 }), "{error}");
        drop(held);
        device.zeros::<f32>(200_000).unwrap();
        assert!(matches!(device.uninitialised::<f32>(usize::MAX / 2), Err(CudaError::OutOfMemory { .. })));
    });
}

#[test]
fn free_memory_of_another_size_is_released_when_it_is_needed() {
    with_setting(("CUDASIM_MEMORY", "1000000"), |device| {
        let device = device.unwrap();
        device.arena().limit_unused(1 << 20).unwrap();
        drop(device.uninitialised::<f32>(150_000).unwrap());
        assert!(device.arena().bytes().unused >= 600_000);
        device.zeros::<f32>(200_000).unwrap();
        assert_eq!(device.arena().bytes().used, 0);
    });
}

#[test]
fn slices_reuse_memory_in_the_order_of_the_stream() {
    on_device(|device| {
        device.arena().limit_unused(1 << 20).unwrap();
        let table = rows::<f32>(device, &values(4 * 50, 1), 50);
        let first = embed(device, &table, &[0, 1], 1.0).unwrap();
        let expected = first.to_host().unwrap();
        drop(first);
        let before = device.arena().bytes();
        let others: Vec<_> = (0..5).map(|_| embed(device, &table, &[0, 1], 1.0).unwrap().to_host().unwrap()).collect();
        assert!(others.iter().all(|found| *found == expected));
        let after = device.arena().bytes();
        assert_eq!((after.used, after.unused), (before.used, before.unused), "memory was asked for again");
        device.arena().trim().unwrap();
        assert_eq!(device.arena().bytes().unused, 0);
        device.arena().reset_peak();
        assert_eq!(device.arena().bytes().peak, device.arena().bytes().used);
    });
}

#[test]
fn a_failed_launch_is_an_error_of_that_kernel() {
    with_setting(("CUDASIM_FAIL_LAUNCH", "1"), |device| {
        let device = device.unwrap();
        let table = DeviceRows::<f32>::zeros(&device, 2, 4).unwrap();
        let found = embed(&device, &table, &[1], 1.0).and_then(|rows| rows.to_host());
        let error = found.err().unwrap();
        assert!(matches!(&error, CudaError::Driver { code, .. } if code == "CUDA_ERROR_LAUNCH_FAILED"), "{error}");
        assert!(squared_norms(&device, &[], None).is_err() || device.synchronize().is_err(), "the device is lost");
    });
}

#[test]
fn parameters_of_a_launch_are_those_of_the_kernel() {
    on_device(|device| {
        let (mut to, from) = (device.zeros::<f32>(4).unwrap(), device.zeros::<f32>(4).unwrap());
        let wrong: [Argument<'_>; 3] = [(&mut to).into(), (&from).into(), 4u32.into()];
        let error = device.launch("add", [1, 1, 1], 32, &wrong).unwrap_err();
        assert_eq!(error.to_string(), "kernel add: its parameters are [Wide, Wide, Wide], not [Wide, Wide, Word]");
        assert!(device.launch("add", [1, 1, 1], 32, &wrong[..2]).is_err());
        let right: [Argument<'_>; 3] = [(&mut to).into(), (&from).into(), Argument::wide(4)];
        assert!(device.launch("ad", [1, 1, 1], 32, &right).is_err());
        assert!(device.launch("add", [1, 70_000, 1], 32, &right).is_err());
        device.launch("add", [1, 1, 1], 32, &right).unwrap();
        device.launch("add", [0, 1, 1], 32, &right).unwrap();
    });
}

#[test]
fn parts_of_slices_end_with_them() {
    on_device(|device| {
        let mut slice = device.upload(&[1u32, 2, 3, 4]).unwrap();
        slice.write(1, &[7, 8]).unwrap();
        assert!(slice.write(3, &[7, 8]).is_err() && slice.copy(2..5).is_err());
        assert_eq!(slice.copy(1..3).unwrap().to_host().unwrap(), [7, 8]);
        slice.clear().unwrap();
        assert_eq!(slice.to_host().unwrap(), [0; 4]);
        assert!(DeviceRows::<f32>::upload(device, &[0.0; 5], 2).is_err());
        assert!(device.zeros::<f64>(0).unwrap().to_host().unwrap().is_empty());
    });
}

#[test]
fn the_simulator_sees_what_kernels_must_not_do() {
    // The same call with a length beyond the slices is stopped: what is not reported above was checked.
    with_setting(("CUDASIM_SEED", "1"), |device| {
        let device = device.unwrap();
        let (mut to, from) = (device.zeros::<f32>(4).unwrap(), device.zeros::<f32>(4).unwrap());
        device.launch("add", [1, 1, 1], 32, &[(&mut to).into(), (&from).into(), Argument::wide(5)]).unwrap();
        let error = device.synchronize().unwrap_err().to_string();
        assert!(error.starts_with("cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
    });
}

#[test]
fn the_simulator_sees_what_was_never_written() {
    with_setting(("CUDASIM_SEED", "1"), |device| {
        let device = device.unwrap();
        let values = [device.uninitialised::<f32>(4).unwrap()];
        let error = squared_norms(&device, &values, None).unwrap_err().to_string();
        assert!(error.contains("CUDA_ERROR_LAUNCH_FAILED"), "{error}");
    });
}
