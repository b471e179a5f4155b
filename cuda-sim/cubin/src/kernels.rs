//! Kernels, and what the sections `.nv.info` say of them.

use std::collections::BTreeMap;

use crate::elf::{File, number};
use crate::error::CubinError;

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

/// Format of an attribute whose value is stored behind it, with its number of bytes; other values are in place.
const SIZED: u64 = 4;

/// `EIATTR_FRAME_SIZE`: number of a symbol, bytes of its stack.
const FRAME_SIZE: u64 = 0x11;
/// `EIATTR_KPARAM_INFO`: where a parameter is, and its bytes.
const PARAMETER: u64 = 0x17;
/// `EIATTR_CBANK_PARAM_SIZE`: bytes of all parameters.
const PARAMETERS_SIZE: u64 = 0x19;

const WHAT: &str = "an attribute";

type Result<T> = std::result::Result<T, CubinError>;

/// Attributes of a section: what each is, its value in place, and the bytes behind it.
fn attributes(mut rest: &[u8]) -> Result<Vec<(u64, u64, &[u8])>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (form, what, value) = (number(rest, 0, 1, WHAT)?, number(rest, 1, 1, WHAT)?, number(rest, 2, 2, WHAT)?);
        let end = if form == SIZED { 4 + value as usize } else { 4 };
        found.push((what, value, rest.get(4..end).ok_or(CubinError::Truncated(WHAT))?));
        rest = &rest[end..];
    }
    Ok(found)
}

pub(crate) fn read(file: &File<'_>) -> Result<Vec<Kernel>> {
    let stacks = stacks(file)?;
    let names = file.sections.iter().filter_map(|section| section.name.strip_prefix(".text."));
    let mut kernels: Vec<Kernel> = names.map(|name| kernel(file, name, &stacks)).collect::<Result<_>>()?;
    kernels.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(kernels)
}

/// Bytes of the stack of each kernel.
fn stacks<'a>(file: &File<'a>) -> Result<BTreeMap<&'a str, u32>> {
    let symbols = file.symbols()?;
    let about_all = file.section(".nv.info").map_or(&[][..], |section| section.bytes);
    let mut stacks = BTreeMap::new();
    for (_, _, bytes) in attributes(about_all)?.into_iter().filter(|(what, ..)| *what == FRAME_SIZE) {
        let symbol = symbols.get(number(bytes, 0, 4, WHAT)? as usize).ok_or(CubinError::Truncated("a symbol"))?;
        stacks.insert(*symbol, number(bytes, 4, 4, WHAT)? as u32);
    }
    Ok(stacks)
}

fn kernel(file: &File<'_>, name: &str, stacks: &BTreeMap<&str, u32>) -> Result<Kernel> {
    let missing = |what| CubinError::Missing { kernel: name.to_owned(), what };
    let own = file.section(&format!(".nv.info.{name}")).ok_or_else(|| missing("attributes"))?;
    let mut parameters = BTreeMap::new();
    let mut bytes_of_all = None;
    for (what, value, bytes) in attributes(own.bytes)? {
        match what {
            // Its bytes are behind 18 bits of other things.
            PARAMETER => {
                let [place, offset] = [4, 6].map(|at| number(bytes, at, 2, WHAT));
                parameters.insert(place?, (offset?, (number(bytes, 8, 4, WHAT)? >> 18) as u32));
            }
            PARAMETERS_SIZE => bytes_of_all = Some(value),
            _ => {}
        }
    }
    let end = parameters.values().map(|(offset, size)| offset + u64::from(*size)).max().unwrap_or(0);
    if bytes_of_all.unwrap_or(0) != end {
        return Err(missing("description of each parameter"));
    }
    let stack = *stacks.get(name).ok_or_else(|| missing("size of a stack"))?;
    Ok(Kernel { name: name.to_owned(), parameters: parameters.into_values().map(|(_, size)| size).collect(), stack })
}
