//! The PTX of the CUDA kernels, and what it needs of devices.

use crate::process::{command, run, step};
use crate::{Result, python};

/// The program that calls NVIDIA's compiler: a library without headers for Rust.
const COMPILE: &str = include_str!("compile_kernels.py");

/// The program that calls NVIDIA's assembler and disassembler and reads what they say.
const ASSEMBLE: &str = include_str!("assemble_kernels.py");

/// Where the kernels are, and where their PTX goes: it is committed, so that a build needs no compiler of NVIDIA's.
const SOURCES: &str = "gpu-runtime/src/backend/cuda/kernels";
const PTX: &str = "gpu-runtime/src/backend/cuda/ptx";

/// Registers, shared memory, spills and instructions for tensor cores of each kernel.
const RESOURCES: &str = "gpu-runtime/src/backend/cuda/resources.txt";

/// Compiles all kernels, and assembles them for the table of what they need.
pub(crate) fn kernels() -> Result {
    let libraries = python::nvrtc()?;
    step("kernels", || {
        let mut compile = command(python::nvrtc_venv()?, &["-c", COMPILE]);
        compile.arg(&libraries).args([SOURCES, PTX]);
        run(compile)
    })?;
    assemble("registers and shared memory of kernels", &[])
}

/// Assembles the PTX and compares what kernels need with the table.
pub(crate) fn check_resources() -> Result {
    assemble("table of what kernels need", &["check"])
}

fn assemble(name: &str, arguments: &[&str]) -> Result {
    let (python, tools) = python::ptxas()?;
    step(name, || {
        let mut assemble = command(python, &["-c", ASSEMBLE]);
        assemble.args(&tools).args([PTX, RESOURCES]).args(arguments);
        run(assemble)
    })
}
