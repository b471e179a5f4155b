//! The kernels: loaded as cubins or as PTX, and launches whose parameters are checked against the PTX.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::device::cubins::{Cubins, KernelCode, architecture};
use super::device::driver::Driver;
use super::device::error::{CudaError, Result};
use super::device::memory::{Element, Slice};
use super::device::modules::{CubinError, Function, Module};
use super::device::queue::Queue;
use super::device::sources::{SOURCES, Source};
use super::device::work::Work;

/// Kind of a kernel's parameter, by its declaration in PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `.u64`: an address or a number.
    Wide,
    /// `.u32`: a number or an index.
    Word,
    /// `.f32`: a single-precision number.
    Float,
}

/// A parameter of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Argument<'a> {
    kind: Kind,
    /// The value's bytes, little endian.
    bits: u64,
    memory: PhantomData<&'a ()>,
}

impl Argument<'_> {
    fn new(kind: Kind, bits: u64) -> Self {
        Self { kind, bits, memory: PhantomData }
    }

    /// An address within memory that outlives the launch's place in the stream; 0 stands for none.
    pub(super) fn address(address: u64) -> Self {
        Self::new(Kind::Wide, address)
    }

    /// A number of 64 bits.
    pub(super) fn wide(value: u64) -> Self {
        Self::new(Kind::Wide, value)
    }

    pub(super) fn null() -> Self {
        Self::address(0)
    }
}

impl<'a, T: Element> From<&'a Slice<T>> for Argument<'a> {
    fn from(slice: &'a Slice<T>) -> Self {
        Self::address(slice.address())
    }
}

impl<'a, T: Element> From<&'a mut Slice<T>> for Argument<'a> {
    fn from(slice: &'a mut Slice<T>) -> Self {
        Self::address(slice.address())
    }
}

impl From<u32> for Argument<'_> {
    fn from(value: u32) -> Self {
        Self::new(Kind::Word, u64::from(value))
    }
}

impl From<f32> for Argument<'_> {
    fn from(value: f32) -> Self {
        Self::new(Kind::Float, u64::from(value.to_bits()))
    }
}

struct Kernel {
    function: Function,
    parameters: Vec<Kind>,
}

type Named = BTreeMap<&'static str, Kernel>;

pub(super) struct Kernels {
    named: Named,
    code: KernelCode,
}

impl Kernels {
    /// Loads the cubins for the device, or the PTX where there are none, or where the driver refuses one.
    pub(super) fn load(driver: &Driver) -> Result<Self> {
        let (device, (major, minor)) = (driver.ordinal(), driver.capability());
        let reason = match architecture(major) {
            Some(architecture) => match load_each(driver, |source| load_cubin(driver, source, architecture.name)) {
                Ok(named) => return Ok(Self { named, code: KernelCode::Cubin(architecture.name) }),
                Err(CubinError::Failed(error)) => return Err(error),
                Err(CubinError::Refused(error)) => {
                    let reason = error.to_string();
                    tracing::warn!(
                        device,
                        reason,
                        "the driver rejected the cubins: compiling the kernels' PTX instead"
                    );
                    reason
                }
            },
            None => {
                let reason = format!("no cubin is for compute capability {major}.{minor}");
                tracing::info!(device, reason, "the driver compiles the kernels' PTX");
                reason
            }
        };
        let named = load_each(driver, |source| {
            #[cfg(not(test))]
            let ptx = source.ptx;
            #[cfg(test)]
            let ptx = &super::tests::mutants::mutated(source.ptx);
            driver.load(source.name, ptx)
        })?;
        Ok(Self { named, code: KernelCode::Ptx(reason) })
    }

    pub(super) fn code(&self) -> &KernelCode {
        &self.code
    }

    /// Launches a kernel by name. A grid without a block does nothing.
    pub(super) fn launch(
        &self,
        queue: &Queue,
        name: &str,
        grid: [u32; 3],
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result {
        let problem = |problem: String| CudaError::Kernel { name: name.to_owned(), problem };
        let kernel = self.named.get(name).ok_or_else(|| problem("no kernel has this name".to_owned()))?;
        let found: Vec<Kind> = arguments.iter().map(|argument| argument.kind).collect();
        if found != kernel.parameters {
            return Err(problem(format!("its parameters are {:?}, not {found:?}", kernel.parameters)));
        }
        if grid.contains(&0) {
            return Ok(());
        }
        if grid[1] > MOST_BLOCKS || grid[2] > MOST_BLOCKS {
            return Err(problem(format!("a grid of {grid:?} is too large")));
        }
        let parameters = arguments.iter().map(|argument| argument.bits).collect();
        let function = kernel.function;
        queue.push(Work::Launch { name: name.to_owned(), function, grid, threads, parameters })
    }
}

/// Loads the kernels of all sources, each of them as a module.
fn load_each<E: From<CudaError>>(
    driver: &Driver,
    load: impl Fn(&'static Source) -> Result<Module, E>,
) -> Result<Named, E> {
    let mut named = Named::new();
    for source in SOURCES {
        let module = load(source)?;
        for (name, parameters) in entries(source.ptx)? {
            named.insert(name, Kernel { function: driver.function(module, name)?, parameters });
        }
    }
    Ok(named)
}

fn load_cubin(driver: &Driver, source: &Source, architecture: &str) -> Result<Module, CubinError> {
    let cubins = Cubins::unpack(source.name, source.cubins)?;
    let cubin = cubins.of(architecture).ok_or_else(|| CudaError::Kernel {
        name: source.name.to_owned(),
        problem: format!("no cubin for {architecture}"),
    })?;
    driver.load_cubin(source.name, cubin)
}

/// Blocks along y and z.
const MOST_BLOCKS: u32 = 65_535;

/// The entries of PTX with their parameters.
pub(super) fn entries(ptx: &'static str) -> Result<Vec<(&'static str, Vec<Kind>)>> {
    let mut found = Vec::new();
    for text in ptx.split(".entry ").skip(1) {
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let declared = rest.split_once(')').map_or("", |(declared, _)| declared);
        let kinds = declared.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
        let kinds = kinds.map(|parameter| kind(name, parameter)).collect::<Result<_>>()?;
        found.push((name.trim(), kinds));
    }
    Ok(found)
}

fn kind(name: &str, parameter: &str) -> Result<Kind> {
    match parameter.split_whitespace().nth(1) {
        Some(".u64") => Ok(Kind::Wide),
        Some(".u32") => Ok(Kind::Word),
        Some(".f32") => Ok(Kind::Float),
        _ => Err(CudaError::Kernel { name: name.to_owned(), problem: format!("parameter `{parameter}`") }),
    }
}
