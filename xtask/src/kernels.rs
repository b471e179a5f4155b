//! The PTX of the CUDA kernels.

use crate::process::{command, run, step};
use crate::{Result, python};

/// The program that calls NVIDIA's compiler: a library without headers for Rust.
const COMPILE: &str = include_str!("compile_kernels.py");

/// Where the kernels are, and where their PTX goes: it is committed, so that a build needs no compiler of NVIDIA's.
const SOURCES: &str = "gpu-runtime/src/backend/cuda/kernels";
const PTX: &str = "gpu-runtime/src/backend/cuda/ptx";

/// Compiles all kernels.
pub(crate) fn kernels() -> Result {
    let libraries = python::nvrtc()?;
    step("kernels", || {
        let mut compile = command(python::nvrtc_venv()?, &["-c", COMPILE]);
        compile.arg(&libraries).args([SOURCES, PTX]);
        run(compile)
    })
}
