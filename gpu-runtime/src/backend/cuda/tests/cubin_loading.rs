//! Cubins that the simulated driver takes, because it knows their PTX, and those that it refuses, so that PTX is loaded.

use std::path::Path;

use super::cubins::computes;
use super::simulated::{with_setting, with_settings};
use crate::backend::cuda::device::cubins::{ARCHITECTURES, Cubins, KernelCode, architecture};
use crate::backend::cuda::device::driver::Driver;
use crate::backend::cuda::device::modules::CubinError;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::device::sources::SOURCES;

/// A folder that the simulator finds the PTX of all cubins in.
fn known_ptx(ptx: impl Fn(&'static str) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for source in SOURCES {
        let cubins = Cubins::unpack(source.name, source.cubins).unwrap();
        for architecture in &ARCHITECTURES {
            let checksum = crc32fast::hash(cubins.of(architecture.name).unwrap());
            std::fs::write(folder.path().join(format!("{checksum:08x}.ptx")), ptx(source.ptx)).unwrap();
        }
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn cubins_are_loaded_where_the_driver_takes_them() {
    let folder = known_ptx(str::to_owned);
    for (capability, expected) in [("8.6", "sm_80"), ("9.0", "sm_90"), ("10.3", "sm_100"), ("12.0", "sm_120")] {
        with_settings(&[("CUDASIM_CAPABILITY", capability), ("CUDASIM_CUBIN_PTX", text(folder.path()))], || {
            let device = CudaDevice::open(0, 0).unwrap();
            let (major, _) = device.capability();
            let expected = architecture(major).unwrap().name;
            assert_eq!(device.kernel_code(), &KernelCode::Cubin(expected));
            assert_eq!(device.kernel_code().to_string(), format!("cubins for {expected}"));
            computes(&device);
            // The simulator knows the PTX of the others too, which are not for this device.
            let cubins = Cubins::unpack(SOURCES[0].name, SOURCES[0].cubins).unwrap();
            for other in ARCHITECTURES.iter().filter(|other| other.name != expected) {
                let loaded = device.queue().load_cubin("f", cubins.of(other.name).unwrap());
                let Err(CubinError::Refused(error)) = loaded else { unreachable!("{}", other.name) };
                assert!(error.to_string().contains("CUDA_ERROR_NO_BINARY_FOR_GPU"), "{error}");
            }
        });
        assert_eq!(architecture(capability.split('.').next().unwrap().parse().unwrap()).unwrap().name, expected);
    }
}

#[test]
fn ptx_is_loaded_where_the_driver_refuses_cubins() {
    for capability in ["8.0", "8.6", "9.0", "10.0", "12.0"] {
        with_setting(("CUDASIM_CAPABILITY", capability), |device| {
            let device = device.unwrap();
            let found = device.kernel_code().to_string();
            assert!(
                found.starts_with(
                    "PTX, compiled by the driver: cuModuleLoadData of the cubin of activation failed: \
                     CUDA_ERROR_NO_BINARY_FOR_GPU: "
                ),
                "{found}"
            );
            assert_eq!(device.queue().lost(), None);
            computes(&device);
        });
    }
}

#[test]
fn ptx_is_loaded_where_no_cubin_is_for_the_device() {
    let folder = known_ptx(str::to_owned);
    for capability in ["11.0", "13.0"] {
        with_settings(&[("CUDASIM_CAPABILITY", capability), ("CUDASIM_CUBIN_PTX", text(folder.path()))], || {
            let device = CudaDevice::open(0, 0).unwrap();
            let (major, minor) = device.capability();
            let expected = format!("no cubin is for compute capability {major}.{minor}");
            assert_eq!(device.kernel_code(), &KernelCode::Ptx(expected));
            computes(&device);
        });
    }
}

#[test]
fn one_refused_cubin_is_enough_for_ptx() {
    // The simulator runs all but the last source's.
    let folder = known_ptx(str::to_owned);
    let last = SOURCES.last().unwrap();
    let cubins = Cubins::unpack(last.name, last.cubins).unwrap();
    let checksum = crc32fast::hash(cubins.of("sm_80").unwrap());
    std::fs::remove_file(folder.path().join(format!("{checksum:08x}.ptx"))).unwrap();
    with_settings(&[("CUDASIM_CUBIN_PTX", text(folder.path()))], || {
        let device = CudaDevice::open(0, 0).unwrap();
        let found = device.kernel_code().to_string();
        assert!(found.contains("of the cubin of vocabulary failed: CUDA_ERROR_NO_BINARY_FOR_GPU"), "{found}");
        computes(&device);
    });
}

#[test]
fn the_simulator_takes_no_ptx_of_other_kernels_for_a_cubin() {
    let folder = known_ptx(|_| SOURCES[0].ptx.replace("activate_f32", "activate_f16"));
    with_settings(&[("CUDASIM_CUBIN_PTX", text(folder.path()))], || {
        let device = CudaDevice::open(0, 0).unwrap();
        let found = device.kernel_code().to_string();
        assert!(found.contains("of the cubin of activation failed: CUDA_ERROR_INVALID_IMAGE"), "{found}");
        computes(&device);
    });
}

#[test]
fn other_errors_of_cubins_are_final() {
    let folder = known_ptx(|_| "no PTX".to_owned());
    with_settings(&[("CUDASIM_CUBIN_PTX", text(folder.path()))], || {
        let error = CudaDevice::open(0, 0).err().unwrap().to_string();
        assert!(
            error.starts_with("cuModuleLoadData of the cubin of activation failed: CUDA_ERROR_INVALID_PTX"),
            "{error}"
        );
        let driver = Driver::open(0).unwrap();
        let cubins = Cubins::unpack(SOURCES[0].name, SOURCES[0].cubins).unwrap();
        let found = driver.load_cubin("activation", cubins.of("sm_80").unwrap());
        assert!(matches!(found, Err(CubinError::Failed(_))) && driver.lost().is_some());
    });
}

#[test]
fn broken_cubins_are_refused() {
    with_setting(("CUDASIM_SEED", "1"), |device| {
        let device = device.unwrap();
        let cubins = Cubins::unpack(SOURCES[0].name, SOURCES[0].cubins).unwrap();
        let whole = cubins.of("sm_80").unwrap();
        // Another machine, and an ABI that is not known.
        for (at, value) in [(18, 62), (8, 200)] {
            let mut broken = whole.to_vec();
            broken[at] = value;
            let Err(CubinError::Refused(error)) = device.queue().load_cubin("f", &broken) else { unreachable!() };
            let expected = "cuModuleLoadData of the cubin of f failed: CUDA_ERROR_INVALID_IMAGE";
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        assert_eq!(device.queue().lost(), None);
        computes(&device);
    });
}
