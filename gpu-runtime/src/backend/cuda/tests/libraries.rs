//! Which libraries are used where a machine has several, or has them where the dynamic linker does not look.

use std::path::PathBuf;

use cuda_sim_harness::Simulator;

use super::simulated::{with_libraries, with_setting, with_settings};
use crate::backend::Dtype;
use crate::backend::cuda::backend::Cuda;
use crate::backend::cuda::device::error::CudaError;
use crate::backend::cuda::device::nccl::Nccl;

/// The cuBLASLt in use: name of its file and version, or the reason why none is.
fn library() -> Result<(String, [usize; 3]), String> {
    let cuda = Cuda::open(0, Dtype::Bf16).map_err(|error| error.to_string())?;
    let found = cuda.matmul_library();
    Ok((found.path.rsplit('/').next().unwrap_or_default().to_owned(), found.version))
}

/// The simulated libraries of this process.
fn folder() -> PathBuf {
    std::env::var_os("LD_LIBRARY_PATH").unwrap().into()
}

/// Sets the names of the files of cuBLASLt: one whose handles can't be created, and one that is old.
fn names(refused: &str, old: &str) -> Vec<(&'static str, String)> {
    vec![("CUDASIM_LT_REFUSE", refused.to_owned()), ("CUDASIM_LT_OLD", old.to_owned())]
}

/// The driver is of CUDA 12, and both versions are installed.
#[test]
fn a_library_whose_handles_fail_is_passed_over() {
    let change = |simulator: &Simulator| {
        simulator.copy("libcublasLt.so", "libcublasLt.so.12").unwrap();
        names("libcublasLt.so.13", "")
    };
    with_libraries(change, || {
        assert_eq!(library(), Ok(("libcublasLt.so.12".to_owned(), [13, 0, 0])));
    });
}

#[test]
fn an_old_library_is_passed_over() {
    let change = |simulator: &Simulator| {
        simulator.copy("libcublasLt.so", "libcublasLt.so.12").unwrap();
        names("", "libcublasLt.so.13")
    };
    with_libraries(change, || assert_eq!(library().unwrap().0, "libcublasLt.so.12"));
}

#[test]
fn every_refused_library_has_its_reason() {
    let change = |simulator: &Simulator| {
        simulator.copy("libcublasLt.so", "libcublasLt.so.12").unwrap();
        simulator.remove("libcublasLt.so").unwrap();
        names("libcublasLt.so.12", "libcublasLt.so.13")
    };
    with_libraries(change, || {
        let expected = "no usable libcublasLt: libcublasLt.so.13: libcublasLt 11 is too old: 12 or newer is needed; \
                        libcublasLt.so.12: cublasLtCreate failed: CUBLAS_STATUS_NOT_INITIALIZED";
        assert_eq!(library(), Err(expected.to_owned()));
    });
}

#[test]
fn a_library_is_used_by_its_path() {
    let change = |simulator: &Simulator| {
        simulator.copy("libcublasLt.so", "elsewhere/libcublasLt.so.12").unwrap();
        Vec::new()
    };
    with_libraries(change, || {
        let path = folder().join("elsewhere/libcublasLt.so.12");
        let cuda = Cuda::open_with(0, Dtype::F32, Some(&path)).unwrap();
        assert_eq!(cuda.matmul_library().to_string(), format!("cuBLASLt 13.0.0, {}", path.display()));
        let error = Cuda::open_with(0, Dtype::F32, Some(&folder().join("none.so"))).err().unwrap();
        assert!(matches!(&error, CudaError::NotOpened { path } if path.ends_with("none.so")), "{error}");
    });
}

#[test]
fn libraries_of_pythons_packages_are_found() {
    let change = |simulator: &Simulator| {
        let packages = "venv/lib/python3.12/site-packages/nvidia";
        simulator.copy("libcublasLt.so", &format!("{packages}/cublas/lib/libcublasLt.so.12")).unwrap();
        simulator.copy("libnccl.so", &format!("{packages}/nccl/lib/libnccl.so.2")).unwrap();
        for library in ["libcublasLt.so", "libcublasLt.so.13", "libnccl.so", "libnccl.so.2"] {
            simulator.remove(library).unwrap();
        }
        vec![("VIRTUAL_ENV", simulator.folder().join("venv").to_str().unwrap().to_owned())]
    };
    with_libraries(change, || {
        let cuda = Cuda::open(0, Dtype::Bf16).unwrap();
        let expected = folder().join("venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12");
        assert_eq!(cuda.matmul_library().path, expected.to_str().unwrap());
        assert!(Nccl::open().unwrap().version().is_ok());
    });
}

#[test]
fn a_stub_is_not_the_driver() {
    with_setting(("CUDASIM_STUB", "1"), |device| {
        let error = device.err().unwrap().to_string();
        assert!(error.contains("libcuda.so is a stub for linking") && error.contains("LD_LIBRARY_PATH"), "{error}");
    });
}

#[test]
fn the_drivers_compiler_says_what_it_refuses() {
    with_setting(("CUDASIM_SEED", "1"), |device| {
        let device = device.unwrap();
        let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f() { frobnicate; ret; }";
        let Err(error) = device.queue().load("broken", text) else { unreachable!() };
        let error = error.to_string();
        let has_call = error.starts_with("cuModuleLoadDataEx of broken failed: CUDA_ERROR_INVALID_PTX");
        assert!(has_call && error.contains("frobnicate"), "{error}");
    });
}

#[test]
fn products_in_f32_are_not_computed_in_tf32() {
    with_settings(&[("NVIDIA_TF32_OVERRIDE", "1")], || {
        let error = Cuda::open(0, Dtype::F32).err().unwrap();
        assert!(matches!(error, CudaError::Tf32Override), "{error}");
        assert!(Cuda::open(0, Dtype::Bf16).is_ok());
    });
}
