//! A parsed module: kernels as decoded instructions, and the variables that they share.

use crate::instruction::Instruction;

/// Contents of a PTX file.
#[derive(Debug, Clone)]
pub struct Module {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) variables: Vec<Variable>,
}

impl Module {
    /// The kernels in the order of the file.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel of this name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The variables of the module's scope. The loader of the module allocates them and calls [`Module::place`].
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Tells the kernels where the variables are: one address for each, in their order.
    pub fn place(&mut self, addresses: &[u64]) {
        for kernel in &mut self.kernels {
            kernel.variables = addresses.to_vec();
        }
    }
}

/// A `.global` or `.const` variable.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Name in the module.
    pub name: String,
    /// Initial bytes; shorter than `size` if the rest is zero.
    pub initial: Vec<u8>,
    /// Number of bytes that the variable takes.
    pub size: usize,
    /// True for `.const`: kernels only read it.
    pub constant: bool,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Bytes from the start of the parameter block.
    pub offset: usize,
    /// Number of bytes that the parameter takes.
    pub size: usize,
}

/// A decoded kernel: an `.entry` of the module.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) code: Vec<Instruction>,
    pub(crate) registers: usize,
    pub(crate) shared: usize,
    pub(crate) local: usize,
    pub(crate) max_threads: usize,
    pub(crate) variables: Vec<u64>,
}

impl Kernel {
    /// The kernel's name in the module.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's parameters, in the order of the declaration.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Bytes of the parameter block.
    #[must_use]
    pub fn param_bytes(&self) -> usize {
        self.params.last().map_or(0, |last| last.offset + last.size)
    }

    /// Bytes of static shared memory.
    #[must_use]
    pub fn shared_bytes(&self) -> usize {
        self.shared
    }

    /// Bytes of local memory of a thread.
    #[must_use]
    pub fn local_bytes(&self) -> usize {
        self.local
    }

    /// The most threads of a block: `.maxntid`, or 1024.
    #[must_use]
    pub fn max_threads(&self) -> usize {
        self.max_threads
    }
}
