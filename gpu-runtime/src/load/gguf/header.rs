//! The header of a GGUF file, versions 1 to 3: metadata, then names, shapes and places of the tensors
//! (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>).
//!
//! A header is not trusted: counts and lengths are compared with the remaining bytes of the file before anything is
//! allocated, so a header takes at most a few times its size in memory.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::dtype::{self, Dtype};
use super::error::Error;
use super::reader::Reader;
use super::value::{self, Value};

/// `GGUF` in little-endian order.
const MAGIC: u32 = 0x4655_4747;

/// `general.alignment` of a file that has none.
const ALIGNMENT: u64 = 32;

/// Dimensions that llama.cpp can store.
const MAX_DIMENSIONS: u32 = 4;

/// Header of a file, before its tensors' bytes.
pub(super) struct Header {
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) tensors: BTreeMap<String, TensorInfo>,
    /// First byte after the header, aligned: the origin of the tensors' offsets.
    pub(super) data_start: u64,
}

/// A tensor of the file.
pub(super) struct TensorInfo {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// Offset in bytes from `data_start`.
    pub(super) offset: u64,
}

impl Header {
    /// Reads a header from the start of a file of `size` bytes.
    pub(super) fn read(input: impl BufRead, size: u64) -> Result<Self, Error> {
        let mut reader = Reader::new(input, size);
        if reader.u32()? != MAGIC {
            return Err("it does not begin with \"GGUF\"".into());
        }
        match reader.u32()? {
            1 => reader.short_lengths(),
            2 | 3 => {}
            version => return Err(format!("version {version} (supported: 1 to 3)").into()),
        }
        let (tensor_count, key_count) = (reader.length()?, reader.length()?);
        let metadata = metadata(&mut reader, key_count)?;
        let tensors = tensors(&mut reader, tensor_count)?;
        let data_start = reader.position().checked_next_multiple_of(alignment(&metadata)?);
        Ok(Self { metadata, tensors, data_start: data_start.ok_or("it extends beyond the end of the file")? })
    }
}

fn metadata(reader: &mut Reader<impl BufRead>, count: u64) -> Result<BTreeMap<String, Value>, Error> {
    let mut metadata = BTreeMap::new();
    for index in 0..count {
        let key = reader.name().map_err(|e| e.within(format!("metadata key {index} of {count}")))?;
        let value = value::read(reader).map_err(|e| e.within(format!("metadata key {key}")))?;
        if metadata.contains_key(&key) {
            return Err(format!("metadata key {key} occurs twice").into());
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn tensors(reader: &mut Reader<impl BufRead>, count: u64) -> Result<BTreeMap<String, TensorInfo>, Error> {
    let mut tensors = BTreeMap::new();
    for index in 0..count {
        let name = reader.name().map_err(|e| e.within(format!("tensor {index} of {count}")))?;
        let info = tensor(reader).map_err(|e| e.within(format!("tensor {name}")))?;
        if tensors.contains_key(&name) {
            return Err(format!("tensor {name} occurs twice").into());
        }
        tensors.insert(name, info);
    }
    Ok(tensors)
}

fn tensor(reader: &mut Reader<impl BufRead>) -> Result<TensorInfo, Error> {
    let dimensions = reader.u32()?;
    if dimensions > MAX_DIMENSIONS {
        return Err(format!("{dimensions} dimensions, at most {MAX_DIMENSIONS}").into());
    }
    let mut shape = Vec::with_capacity(dimensions as usize);
    for _ in 0..dimensions {
        let extent = reader.length()?;
        shape.push(usize::try_from(extent).map_err(|_| format!("an extent of {extent}"))?);
    }
    // The file has the innermost extent first.
    shape.reverse();
    let number = reader.u32()?;
    let dtype = Dtype::of(number).ok_or_else(|| format!("element type {} is not supported", dtype::name(number)))?;
    Ok(TensorInfo { dtype, shape, offset: reader.u64()? })
}

fn alignment(metadata: &BTreeMap<String, Value>) -> Result<u64, Error> {
    const KEY: &str = "general.alignment";
    match metadata.get(KEY).map(Value::integer) {
        None => Ok(ALIGNMENT),
        Some(Some(alignment)) if alignment > 0 => Ok(alignment),
        Some(_) => Err(format!("metadata key {KEY} is not a positive integer").into()),
    }
}
