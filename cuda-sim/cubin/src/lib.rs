//! Reads cubins, the ELF files of machine code that NVIDIA's assembler writes: for which architecture one is, its kernels, their
//! parameters and stacks. The machine code itself is not read.
//!
//! The numbers are those of the files that `ptxas` 12.9 writes; there are two versions of them, which differ in the header's flags.

mod elf;
mod kernels;

use std::fmt;

use thiserror::Error;

pub use elf::{HEADER_BYTES, IDENTITY_BYTES, check_identity, file_length};

/// Reasons why a file is not a valid cubin.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CubinError {
    /// The file is not a 64-bit ELF file for a GPU.
    #[error("not an ELF file for a GPU: {0}")]
    Header(&'static str),
    /// A part lies outside the file, or has no end.
    #[error("{0} is beyond the file")]
    Truncated(&'static str),
    /// The version of the file's ABI is unknown.
    #[error("unknown ABI version {0}: expected 7 or 8")]
    Abi(u8),
    /// A required part of a kernel is missing.
    #[error("kernel {kernel} has no {what}")]
    Missing {
        /// Name of the kernel.
        kernel: String,
        /// Name of the missing part.
        what: &'static str,
    },
}

/// Contents of a cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// Devices that the code runs on.
    pub architecture: Architecture,
    /// Kernels in the order of their names.
    pub kernels: Vec<Kernel>,
}

/// The architecture that machine code runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Architecture {
    /// The number behind `sm_`.
    pub number: u32,
    /// Whether the code runs only on this architecture, like `sm_90a`.
    pub specific: bool,
}

/// A kernel of a cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Name in the file.
    pub name: String,
    /// Bytes of each parameter, in order.
    pub parameters: Vec<u32>,
    /// Bytes of a thread's stack in local memory, where registers are spilled.
    pub stack: u32,
}

impl Cubin {
    /// Reads the contents of a file.
    ///
    /// # Errors
    ///
    /// If the file is not a cubin, or is broken.
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
