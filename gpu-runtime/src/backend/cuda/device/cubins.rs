//! Machine code of the kernels, which NVIDIA's assembler makes from their PTX, and the choice of the one that a device
//! runs.

use std::fmt;

use super::error::{CudaError, Result};

/// Devices that machine code is for.
pub(crate) struct Architecture {
    pub(crate) name: &'static str,
    /// Compute capability: major, minor.
    capability: (i32, i32),
    /// Whether only devices of exactly this capability run it, because its instructions are specific to them; otherwise
    /// devices with a higher minor version run it too.
    exact: bool,
}

/// Architectures that `make kernels` assembles for, the most specific one last.
pub(crate) const ARCHITECTURES: [Architecture; 3] = [
    Architecture { name: "sm_80", capability: (8, 0), exact: false },
    Architecture { name: "sm_90a", capability: (9, 0), exact: true },
    Architecture { name: "sm_100a", capability: (10, 0), exact: true },
];

/// The one that a device of this compute capability runs, if there is one.
pub(crate) fn architecture(major: i32, minor: i32) -> Option<&'static Architecture> {
    let runs = |of: &&Architecture| {
        let (own_major, own_minor) = of.capability;
        own_major == major && if of.exact { own_minor == minor } else { own_minor <= minor }
    };
    ARCHITECTURES.iter().filter(runs).max_by_key(|of| of.capability)
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
