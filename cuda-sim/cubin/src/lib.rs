//! Reads cubins, the ELF files of machine code that NVIDIA's assembler writes: for which architecture one is, its kernels, their
//! parameters and stacks. The machine code itself is not read.
//!
//! The numbers are those of the files that `ptxas` 12.9 writes; there are two versions of them, which differ in the header's flags.

mod elf;
mod kernels;

use std::fmt;

use thiserror::Error;

pub use elf::{HEADER_BYTES, IDENTITY_BYTES, check_identity, file_length};

/// Why a file is no cubin.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CubinError {
    /// It is not an ELF file of 64 bits for a GPU.
    #[error("no ELF file for a GPU: {0}")]
    Header(&'static str),
    /// Something lies outside the file, or has no end.
    #[error("{0} is beyond the file")]
    Truncated(&'static str),
    /// The file's ABI is not known.
    #[error("version {0} of the ABI is not known")]
    Abi(u8),
    /// Something that a kernel must have is missing.
    #[error("kernel {kernel} has no {what}")]
    Missing {
        /// The kernel.
        kernel: String,
        /// What is missing.
        what: &'static str,
    },
}

/// What a cubin says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// The devices that it is for.
    pub architecture: Architecture,
    /// In the order of their names.
    pub kernels: Vec<Kernel>,
}

/// What machine code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Architecture {
    /// The number behind `sm_`.
    pub number: u32,
    /// Whether it has instructions of this architecture alone: `sm_90a`.
    pub specific: bool,
}

/// A kernel of a cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// As the file names it.
    pub name: String,
    /// Bytes of each parameter, in their order.
    pub parameters: Vec<u32>,
    /// Bytes of a thread's stack in local memory, where registers are spilled.
    pub stack: u32,
}

impl Cubin {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Where it is no cubin, or a broken one.
    pub fn parse(bytes: &[u8]) -> Result<Self, CubinError> {
        let file = elf::File::parse(bytes)?;
        Ok(Self { architecture: file.architecture()?, kernels: kernels::read(&file)? })
    }
}

impl Architecture {
    /// Whether a device of this compute capability runs it: one of the same major version and of a minor one that is not lower, or
    /// exactly this one.
    #[must_use]
    pub fn runs_on(self, (major, minor): (u32, u32)) -> bool {
        let (own_major, own_minor) = (self.number / 10, self.number % 10);
        own_major == major && if self.specific { own_minor == minor } else { own_minor <= minor }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.number, if self.specific { "a" } else { "" })
    }
}
