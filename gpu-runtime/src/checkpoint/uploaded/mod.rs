//! Adapters that clients upload, in PEFT's format. Nothing in them is trusted: this server must compute the
//! configuration as PEFT does, and the tensors must be exactly those of the run's adapter. Other tensors are refused
//! before their data are read, so reading takes no more memory than the adapter.

mod config;
mod pieces;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use half::{bf16, f16};
use trainyard_protocol::{LoraSpec, OpError, UploadedAdapter};

use self::config::UploadedConfig;
use self::pieces::Pieces;
use super::adapter::{A_SUFFIX, B_SUFFIX, CONFIG_FILE, PREFIX, TENSORS_FILE};
use super::tensors::{Entry, read_header};
use crate::interrupt;

/// Maximum bytes of a configuration.
const MAX_CONFIG: u64 = 1 << 20;
/// Maximum bytes of a header for each tensor, and in addition.
const HEADER: (u64, u64) = (1 << 10, 64 << 10);
/// Elements that are converted at a time.
const CHUNK: u64 = 16_384;

/// A module that the adapter has to have.
pub(crate) struct ExpectedModule {
    /// Names of the module in files; errors use the first.
    pub names: Vec<String>,
    /// Shapes of A and B.
    pub shapes: [Vec<usize>; 2],
    /// Whether the file may lack A and B, which are read as empty then.
    pub may_be_absent: bool,
}

/// Reads A and B of each module, in the order of `modules`, for an adapter of this shape. B is scaled by the file's
/// `lora_alpha`, times the root of the rank with `use_rslora`, over that of `lora`. This is exact where the quotient is a
/// power of two.
///
/// # Errors
/// The client's, by file and field or tensor.
pub(crate) fn read_uploaded(
    dir: &Path,
    files: &UploadedAdapter,
    lora: &LoraSpec,
    modules: &[ExpectedModule],
) -> Result<Vec<Vec<f32>>, OpError> {
    let mut config = Pieces::open(dir, &files.config).map_err(|error| unreadable(CONFIG_FILE, &error))?;
    if config.length() > MAX_CONFIG {
        return Err(refused(CONFIG_FILE, format_args!("is longer than {MAX_CONFIG} bytes")));
    }
    let mut text = Vec::new();
    config.read_to_end(&mut text).map_err(|error| unreadable(CONFIG_FILE, &error))?;
    let config = UploadedConfig::parse(&text)?;
    let needed = modules.iter().filter(|module| !module.may_be_absent);
    config.check(lora.rank as usize, needed.map(|module| module.names.as_slice()))?;
    let tensors = Pieces::open(dir, &files.tensors).map_err(|error| unreadable(TENSORS_FILE, &error))?;
    read_tensors(tensors, modules, config.alpha() / lora.alpha)
}

/// Destination of a tensor.
struct Slot {
    /// Index in the result.
    index: usize,
    shape: Vec<usize>,
    scale: f32,
    may_be_absent: bool,
}

/// The tensors of the file, as in [`read_uploaded`].
fn read_tensors(mut file: Pieces, modules: &[ExpectedModule], scale: f32) -> Result<Vec<Vec<f32>>, OpError> {
    let mut slots = slots(modules, scale);
    let count = slots.len();
    let most = HEADER.0 * count as u64 + HEADER.1;
    let length = file.length();
    let (mut entries, data_length) = read_header(Path::new(TENSORS_FILE), &mut file, length, most)
        .map_err(|error| OpError::user(error.to_string()))?;
    let first_names = first_names(modules);
    for (name, _) in &mut entries {
        if let Some(first) = first_names.get(name) {
            name.clone_from(first);
        }
    }
    check_layout(&entries, data_length, &slots)?;
    let mut masters = vec![Vec::new(); count];
    for (name, entry) in entries {
        let Some(slot) = slots.remove(&name) else { continue };
        let values = read_values(&mut file, &name, &entry.dtype, &slot)?;
        if let Some(master) = masters.get_mut(slot.index) {
            *master = values;
        }
    }
    Ok(masters)
}

fn slots(modules: &[ExpectedModule], scale: f32) -> BTreeMap<String, Slot> {
    let mut slots = BTreeMap::new();
    for (at, ExpectedModule { names, shapes: [a, b], may_be_absent }) in modules.iter().enumerate() {
        let (module, may_be_absent) = (names.first().map_or("", String::as_str), *may_be_absent);
        let a = Slot { index: 2 * at, shape: a.clone(), scale: 1.0, may_be_absent };
        let b = Slot { index: 2 * at + 1, shape: b.clone(), scale, may_be_absent };
        slots.insert(tensor(module, A_SUFFIX), a);
        slots.insert(tensor(module, B_SUFFIX), b);
    }
    slots
}

/// The first name of each tensor by its other ones.
fn first_names(modules: &[ExpectedModule]) -> BTreeMap<String, String> {
    let of_module = |module: &ExpectedModule| {
        let (first, others) =
            module.names.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
        let pair = |other: &String| [A_SUFFIX, B_SUFFIX].map(|suffix| (tensor(other, suffix), tensor(first, suffix)));
        others.iter().flat_map(pair).collect::<Vec<_>>()
    };
    modules.iter().flat_map(of_module).collect()
}

fn tensor(module: &str, suffix: &str) -> String {
    format!("{PREFIX}{module}{suffix}")
}

/// Checks names, types and extents, and that the data has no gaps and nothing else.
fn check_layout(entries: &[(String, Entry)], data_length: u64, slots: &BTreeMap<String, Slot>) -> Result<(), OpError> {
    let (mut end, mut there) = (0, BTreeSet::new());
    for (name, entry) in entries {
        if !there.insert(name.as_str()) {
            return Err(refused(TENSORS_FILE, format_args!("tensor {name:?} is there under several names")));
        }
        let slot = slots.get(name).ok_or_else(|| {
            refused(
                TENSORS_FILE,
                format_args!("unexpected tensor {name:?}: this adapter of the base model does not have it"),
            )
        })?;
        let Entry { dtype, shape, data_offsets: (from, to) } = entry;
        let width = element_width(dtype).ok_or_else(|| {
            refused(TENSORS_FILE, format_args!("tensor {name} is {dtype:?}; F32, F16 and BF16 are supported"))
        })?;
        if *shape != slot.shape {
            let expected = &slot.shape;
            return Err(refused(
                TENSORS_FILE,
                format_args!("tensor {name} has shape {shape:?}, expected {expected:?}"),
            ));
        }
        let bytes = shape.iter().fold(width, |product, &extent| product.saturating_mul(extent as u64));
        if *from != end || to.checked_sub(*from) != Some(bytes) || *to > data_length {
            return Err(refused(
                TENSORS_FILE,
                format_args!("tensor {name} of {bytes} bytes cannot be at {from}..{to}"),
            ));
        }
        end = *to;
    }
    // Of a pair that may be absent, both are, or neither.
    let counterpart = |slot: &Slot| slots.iter().find(|(_, other)| other.index == slot.index ^ 1).map(|(name, _)| name);
    let is_needed =
        |slot: &Slot| !slot.may_be_absent || counterpart(slot).is_some_and(|other| there.contains(other.as_str()));
    let is_missing = |(name, slot): &(&String, &Slot)| !there.contains(name.as_str()) && is_needed(slot);
    if let Some((missing, _)) = slots.iter().find(is_missing) {
        return Err(refused(TENSORS_FILE, format_args!("tensor {missing} is missing")));
    }
    match data_length - end {
        0 => Ok(()),
        rest => Err(refused(TENSORS_FILE, format_args!("has {rest} bytes after its tensors"))),
    }
}

fn element_width(dtype: &str) -> Option<u64> {
    match dtype {
        "F32" => Some(4),
        "F16" | "BF16" => Some(2),
        _ => None,
    }
}

/// The elements of a tensor of checked size, scaled.
fn read_values(file: &mut Pieces, name: &str, dtype: &str, slot: &Slot) -> Result<Vec<f32>, OpError> {
    let elements = slot.shape.iter().product::<usize>();
    let width = element_width(dtype).unwrap_or(4);
    let mut values = Vec::with_capacity(elements);
    let mut bytes = vec![0; (CHUNK.min(elements as u64) * width) as usize];
    while values.len() < elements {
        let count = (elements - values.len()).min(CHUNK as usize);
        let piece = &mut bytes[..count * width as usize];
        interrupt::check().and_then(|()| file.read_exact(piece)).map_err(|error| unreadable(TENSORS_FILE, &error))?;
        match dtype {
            "F16" => values.extend(piece.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32())),
            "BF16" => values.extend(piece.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32())),
            _ => values.extend(piece.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
        }
    }
    if slot.scale != 1.0 {
        values.iter_mut().for_each(|value| *value *= slot.scale);
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(at) => Err(refused(TENSORS_FILE, format_args!("tensor {name}: element {at} is not finite"))),
    }
}

fn refused(file: &str, reason: impl std::fmt::Display) -> OpError {
    OpError::user(format!("{file}: {reason}"))
}

/// A piece that the storage has lost, or a disk that fails.
fn unreadable(file: &str, error: &std::io::Error) -> OpError {
    if let Some(refusal) = interrupt::refusal(error) {
        return refusal;
    }
    tracing::error!(file, %error, "an upload cannot be read");
    OpError::server(format!("{file}: the upload cannot be read; the server's log has the details"))
}
