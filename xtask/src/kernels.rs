//! PTX and machine code of the CUDA kernels, and the resources that they need.

use crate::process::{command, run, step};
use crate::{Result, python};

/// Program that calls NVIDIA's compiler, a library whose headers Rust can't use.
const COMPILE: &str = include_str!("compile_kernels.py");

/// Program that calls NVIDIA's assembler and disassembler and reads their output.
const ASSEMBLE: &str = include_str!("assemble_kernels.py");

/// Folder of the kernels with their PTX and cubins, which are committed so that a build does not need NVIDIA's
/// compiler.
const SOURCES: &str = "gpu-runtime/src/backend/cuda/kernels";
const PTX: &str = "gpu-runtime/src/backend/cuda/ptx";
const CUBINS: &str = "gpu-runtime/src/backend/cuda/cubin";

/// Table of registers, shared memory, spills and tensor-core instructions of each kernel.
const RESOURCES: &str = "gpu-runtime/src/backend/cuda/resources.txt";

/// Compiles the kernels whose sources have changed and assembles all of them. Writes their cubins, and the table of
/// their resources.
pub(crate) fn kernels() -> Result {
    let libraries = python::nvrtc()?;
    step("kernels", || {
        let mut compile = command(python::nvrtc_venv()?, &["-c", COMPILE]);
        compile.arg(&libraries).args([SOURCES, PTX]);
        run(compile)
    })?;
    assemble("machine code of kernels, registers and shared memory", &[])
}

/// Assembles the PTX, and compares the machine code with the cubins, and the resources with the table.
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
