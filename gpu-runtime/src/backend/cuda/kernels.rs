//! The kernels: their PTX, and launches whose parameters are checked against it.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::driver::{Driver, Function};
use super::memory::{Element, Slice};
use super::queue::Queue;
use super::work::Work;
use super::{CudaError, Result};

/// What `make kernels` compiled, by source.
pub(super) const PTX: &[(&str, &str)] = &[
    ("activation", include_str!("ptx/activation.ptx")),
    ("attention", include_str!("ptx/attention.ptx")),
    ("copies", include_str!("ptx/copies.ptx")),
    ("bias", include_str!("ptx/bias.ptx")),
    ("collective", include_str!("ptx/collective.ptx")),
    ("combine", include_str!("ptx/combine.ptx")),
    ("embedding", include_str!("ptx/embedding.ptx")),
    ("head", include_str!("ptx/head.ptx")),
    ("latent", include_str!("ptx/latent.ptx")),
    ("lora", include_str!("ptx/lora.ptx")),
    ("norm", include_str!("ptx/norm.ptx")),
    ("optimizer", include_str!("ptx/optimizer.ptx")),
    ("rotary", include_str!("ptx/rotary.ptx")),
    ("routing", include_str!("ptx/routing.ptx")),
    ("sampling", include_str!("ptx/sampling.ptx")),
    ("scalar_head", include_str!("ptx/scalar_head.ptx")),
    ("sinks", include_str!("ptx/sinks.ptx")),
    ("tensor_attention", include_str!("ptx/tensor_attention.ptx")),
    ("tensor_lora", include_str!("ptx/tensor_lora.ptx")),
    ("tensor_outer", include_str!("ptx/tensor_outer.ptx")),
    ("vocabulary", include_str!("ptx/vocabulary.ptx")),
];

/// What a parameter of a kernel is, after its declaration in PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `.u64`: an address or a number.
    Wide,
    /// `.u32`.
    Word,
    /// `.f32`.
    Float,
}

/// A parameter of a launch.
#[derive(Clone, Copy)]
pub(super) struct Argument<'a> {
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

    /// No memory.
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

/// All kernels, loaded.
pub(super) struct Kernels(BTreeMap<&'static str, Kernel>);

impl Kernels {
    pub(super) fn load(driver: &Driver) -> Result<Self> {
        let mut kernels = BTreeMap::new();
        for (source, ptx) in PTX {
            #[cfg(not(test))]
            let module = driver.load(source, ptx)?;
            #[cfg(test)]
            let module = driver.load(source, &super::tests::mutants::mutated(ptx))?;
            for (name, parameters) in entries(ptx)? {
                kernels.insert(name, Kernel { function: driver.function(module, name)?, parameters });
            }
        }
        Ok(Self(kernels))
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
        let kernel = self.0.get(name).ok_or_else(|| problem("there is none of this name".to_owned()))?;
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
