//! Tensors of a safetensors file that are changed in place.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use serde_json::{Map, Value, json};

use crate::checkpoint::tensors::{Entry, MAX_HEADER, read_header};
use crate::checkpoint::{io_error, malformed};
use crate::config::LoadError;

/// A file that is open for changes.
pub(super) struct TensorFile {
    path: PathBuf,
    file: File,
    tensors: BTreeMap<String, Entry>,
    /// First byte of the tensors' data, and its length.
    data: (u64, u64),
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    F32,
    Bf16,
    F16,
}

impl Element {
    fn of(name: &str) -> Option<Self> {
        [("F32", Self::F32), ("BF16", Self::Bf16), ("F16", Self::F16)]
            .into_iter()
            .find_map(|(known, element)| (known == name).then_some(element))
    }

    fn bytes(self) -> usize {
        if self == Self::F32 { 4 } else { 2 }
    }

    fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Self::F32 => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
            Self::Bf16 => bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32()).collect(),
            Self::F16 => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32()).collect(),
        }
    }

    /// Values rounded to the nearest of the type.
    fn encode(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::Bf16 => values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect(),
        }
    }
}

impl TensorFile {
    pub(super) fn open(path: &Path) -> Result<Self, LoadError> {
        let failed = |error| io_error(path, error);
        let mut file = File::options().read(true).write(true).open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let (entries, data) = read_header(path, &mut file, length, MAX_HEADER)?;
        let tensors = entries.into_iter().collect();
        Ok(Self { path: path.to_owned(), file, tensors, data: (length - data, data) })
    }

    /// Names of the tensors, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.tensors.keys()
    }

    /// Reads elements of a tensor, changes them, and writes them back, rounded to the tensor's type.
    pub(super) fn change(
        &self,
        name: &str,
        elements: Range<usize>,
        change: impl FnOnce(&mut [f32]),
    ) -> Result<(), LoadError> {
        let entry = self.tensors.get(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))?;
        let element = Element::of(&entry.dtype).ok_or_else(|| {
            LoadError::Unsupported(format!("tensor {name} of type {} (supported: F32, BF16, F16)", entry.dtype))
        })?;
        let (first, end) = entry.data_offsets;
        let [start, length] = [elements.start, elements.len()].map(|count| count as u64 * element.bytes() as u64);
        if first + start + length > end {
            return Err(malformed(&self.path, format_args!("tensor {name} is shorter than its shape")));
        }
        let at = self.data.0 + first + start;
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, at).map_err(|error| io_error(&self.path, error))?;
        let mut values = element.decode(&bytes);
        change(&mut values);
        self.file.write_all_at(&element.encode(&values), at).map_err(|error| io_error(&self.path, error))
    }

    /// Extents of a tensor.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|entry| &entry.shape[..])
    }

    /// Adds a copy of a tensor under another name to the end of the file.
    pub(super) fn append_copy(&mut self, of: &str, name: &str) -> Result<(), LoadError> {
        let source = self.tensors.get(of).ok_or_else(|| LoadError::MissingTensor(of.to_owned()))?;
        let (from, to) = source.data_offsets;
        let (start, length) = self.data;
        let copy =
            json!({"dtype": source.dtype, "shape": source.shape, "data_offsets": [length, length + (to - from)]});
        let failed = |error: io::Error| io_error(&self.path, error);
        let mut text = vec![0; start as usize - 8];
        self.file.read_exact_at(&mut text, 8).map_err(failed)?;
        let mut header: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| malformed(&self.path, error))?;
        header.insert(name.to_owned(), copy);
        let mut header = Value::Object(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let part = self.path.with_extension("part");
        let write = || {
            let mut out = io::BufWriter::new(File::create(&part)?);
            out.write_all(&(header.len() as u64).to_le_bytes())?;
            out.write_all(&header)?;
            let mut source = &self.file;
            source.seek(SeekFrom::Start(start))?;
            io::copy(&mut source.take(length), &mut out)?;
            source.seek(SeekFrom::Start(start + from))?;
            io::copy(&mut source.take(to - from), &mut out)?;
            out.flush()?;
            fs::rename(&part, &self.path)
        };
        write().map_err(failed)?;
        *self = Self::open(&self.path)?;
        Ok(())
    }

    pub(super) fn file_name(&self) -> String {
        super::super::file_name(&self.path)
    }

    pub(super) fn sync(&self) -> Result<(), LoadError> {
        self.file.sync_all().map_err(|error| io_error(&self.path, error))
    }
}
