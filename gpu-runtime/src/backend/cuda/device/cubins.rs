//! Machine code of the kernels, which NVIDIA's assembler makes from their PTX, and the choice of the one that a device
//! runs.

use std::fmt;

use super::error::{CudaError, Result};

/// Devices that machine code is for.
pub(crate) struct Architecture {
    pub(crate) name: &'static str,
    /// Major version of the compute capability. The code is for its first minor version, and higher ones run it too.
    major: i32,
}

/// Architectures that `make kernels` assembles for. None has instructions that only one minor version runs.
pub(crate) const ARCHITECTURES: [Architecture; 4] = [
    Architecture { name: "sm_80", major: 8 },
    Architecture { name: "sm_90", major: 9 },
    Architecture { name: "sm_100", major: 10 },
    Architecture { name: "sm_120", major: 12 },
];

/// The one that devices of this major version of the compute capability run, if there is one.
pub(crate) fn architecture(major: i32) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|of| of.major == major)
}

/// Code that a device runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelCode {
    /// The binary's machine code for this architecture.
    Cubin(&'static str),
    /// Code that the driver compiles from PTX, for this reason.
    Ptx(String),
}

impl fmt::Display for KernelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin(architecture) => write!(f, "cubins for {architecture}"),
            Self::Ptx(reason) => write!(f, "PTX, compiled by the driver: {reason}"),
        }
    }
}

/// The cubins of a source.
pub(crate) struct Cubins {
    contents: Vec<u8>,
    /// Lines before the first cubin.
    head: String,
}

impl Cubins {
    /// Decompresses what `make kernels` wrote.
    pub(crate) fn unpack(source: &str, packed: &[u8]) -> Result<Self> {
        let problem = |problem: String| CudaError::Kernel { name: source.to_owned(), problem };
        let contents = zstd::decode_all(packed).map_err(|error| problem(format!("its cubins: {error}")))?;
        let end = contents.windows(2).position(|two| two == b"\n\n").map(|at| at + 2);
        let head = end.and_then(|end| String::from_utf8(contents[..end].to_vec()).ok());
        let head = head.ok_or_else(|| problem("its cubins have no table".to_owned()))?;
        Ok(Self { contents, head })
    }

    /// The cubin for an architecture.
    pub(crate) fn of(&self, architecture: &str) -> Option<&[u8]> {
        let mut start = self.head.len();
        for line in self.head.lines().skip(1) {
            let (name, bytes) = line.split_once(' ')?;
            let end = start.checked_add(bytes.parse().ok()?)?;
            if name == architecture {
                return self.contents.get(start..end);
            }
            start = end;
        }
        None
    }
}
