//! PTX and machine code of the CUDA kernels, and what they need of devices.

use crate::process::{command, run, step};
use crate::{Result, python};

/// The program that calls NVIDIA's compiler: a library without headers for Rust.
const COMPILE: &str = include_str!("compile_kernels.py");

/// The program that calls NVIDIA's assembler and disassembler and reads what they say.
const ASSEMBLE: &str = include_str!("assemble_kernels.py");

/// Where the kernels are, and where their PTX and cubins go: these are committed, so that a build needs no compiler of NVIDIA's.
const SOURCES: &str = "gpu-runtime/src/backend/cuda/kernels";
const PTX: &str = "gpu-runtime/src/backend/cuda/ptx";
const CUBINS: &str = "gpu-runtime/src/backend/cuda/cubin";

/// Registers, shared memory, spills and instructions for tensor cores of each kernel.
const RESOURCES: &str = "gpu-runtime/src/backend/cuda/resources.txt";

/// Compiles the kernels whose sources have changed, and assembles all: their cubins, and the table of what they need.
pub(crate) fn kernels() -> Result {
    let libraries = python::nvrtc()?;
    step("kernels", || {
        let mut compile = command(python::nvrtc_venv()?, &["-c", COMPILE]);
        compile.arg(&libraries).args([SOURCES, PTX]);
        run(compile)
    })?;
    assemble("machine code of kernels, registers and shared memory", &[])
}

/// Assembles the PTX, and compares the machine code with the cubins, and what kernels need with the table.
pub(crate) fn check_resources() -> Result {
    assemble("cubins, and table of what kernels need", &["check"])
}

fn assemble(name: &str, arguments: &[&str]) -> Result {
    let (python, tools) = python::ptxas()?;
    step(name, || {
        let mut assemble = command(python, &["-c", ASSEMBLE]);
        assemble.args(&tools).args([PTX, RESOURCES, CUBINS]).args(arguments);
        run(assemble)
    })
}
