//! Reads cubins, the ELF files of machine code that NVIDIA's assembler writes: for which architecture one is, its kernels, their
//! parameters and stacks. The machine code itself is not read.
//!
//! The numbers are those of the files that `ptxas` 12.9 writes; there are two versions of them, which differ in the header's flags.

mod architecture;
mod elf;
mod error;
mod kernels;

pub use architecture::Architecture;
pub use elf::{HEADER_BYTES, IDENTITY_BYTES, check_identity, file_length};
pub use error::CubinError;
pub use kernels::Kernel;

/// Contents of a cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// Devices that the code runs on.
    pub architecture: Architecture,
    /// Kernels in the order of their names.
    pub kernels: Vec<Kernel>,
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
