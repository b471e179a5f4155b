//! Tensors of one or more safetensors files, read range by range.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use safetensors::Dtype;

use self::header::{Info, Infos};
use super::errors::{io, malformed};
use crate::config::{LoadError, Spelling, TensorSource, absent_part};
use crate::runs::Runs;

mod header;
mod read;

/// Longer headers are taken for damage; the format's own limit.
const MAX_HEADER: u64 = 100_000_000;

/// Element types that become numbers.
const FLOATS: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F64];

/// The tensors of a checkpoint, in the spelling of the parameter table.
pub(super) struct SafetensorsSource {
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
    spelling: Spelling,
    /// Bytes of tensors that were read.
    bytes_read: AtomicU64,
}

struct Shard {
    path: PathBuf,
    file: File,
}

struct Entry {
    shard: usize,
    dtype: Dtype,
    /// Whether elements are bytes, to which the checkpoint's format gives a meaning.
    is_packed: bool,
    shape: Vec<usize>,
    /// First byte in the file, and bytes.
    offset: u64,
    length: usize,
}

impl SafetensorsSource {
    /// Opens the given files and reads their headers. [`Self::read_bytes`] reads tensors of the type `packed`.
    pub(super) fn open(paths: &[PathBuf], packed: Option<Dtype>, spelling: &Spelling) -> Result<Self, LoadError> {
        let (tensors, bytes_read) = (BTreeMap::new(), AtomicU64::new(0));
        let mut source = Self { shards: Vec::new(), tensors, spelling: spelling.clone(), bytes_read };
        for path in paths {
            source.add(path, packed)?;
        }
        Ok(source)
    }

    fn add(&mut self, path: &Path, packed: Option<Dtype>) -> Result<(), LoadError> {
        let file = File::open(path).map_err(|e| io(path, e))?;
        let (start, infos) = header(path, &file)?;
        let shard = self.shards.len();
        for (name, info) in infos {
            // Buffers that old exports carry; the runtime computes them.
            if name.ends_with("rotary_emb.inv_freq") || name.ends_with("attn.masked_bias") {
                continue;
            }
            let Some(canonical) = self.spelling.canonical(&name) else { continue };
            let entry = entry(shard, start, info, packed);
            if self.tensors.insert(canonical, entry).is_some() {
                return Err(malformed(path, format!("tensor {name} occurs twice")));
            }
        }
        self.shards.push(Shard { path: path.to_owned(), file });
        Ok(())
    }
}

impl SafetensorsSource {
    /// The name of a tensor in the files.
    pub(super) fn in_files(&self, name: &str) -> String {
        self.spelling.in_files(name)
    }

    fn entry(&self, name: &str) -> Result<&Entry, LoadError> {
        self.tensors.get(name).ok_or_else(|| LoadError::MissingTensor(self.in_files(name)))
    }

    /// A tensor whose elements are floats.
    fn floats(&self, name: &str) -> Result<&Entry, LoadError> {
        let entry = self.entry(name)?;
        if FLOATS.contains(&entry.dtype) {
            return Ok(entry);
        }
        let name = self.in_files(name);
        Err(LoadError::Unsupported(format!("tensor {name} has dtype {:?} (supported: {FLOATS:?})", entry.dtype)))
    }

    /// Whether a tensor has elements for [`Self::read_bytes`].
    pub(super) fn is_packed(&self, name: &str) -> bool {
        self.tensors.get(name).is_some_and(|entry| entry.is_packed)
    }

    /// The error of reading bytes of a tensor that does not have them.
    pub(super) fn packed_refusal(&self, name: &str) -> Option<LoadError> {
        self.packed(name).err()
    }

    fn packed(&self, name: &str) -> Result<&Entry, LoadError> {
        let entry = self.entry(name)?;
        if entry.is_packed {
            return Ok(entry);
        }
        let (name, dtype) = (self.in_files(name), entry.dtype);
        Err(LoadError::Unsupported(format!("tensor {name} has dtype {dtype:?}, expected packed elements")))
    }

    /// Some bytes of a tensor of packed elements.
    pub(super) fn read_bytes(&self, name: &str, part: Range<usize>) -> Result<Vec<u8>, LoadError> {
        let entry = self.packed(name)?;
        let mut bytes = vec![0; part.len()];
        self.read_exact(entry, part.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Some bytes of a tensor of packed elements, one run after the other.
    pub(super) fn read_packed_runs(&self, name: &str, runs: Runs) -> Result<Vec<u8>, LoadError> {
        let entry = self.packed(name)?;
        let mut bytes = vec![0; runs.elements()];
        for (run, into) in runs.ranges().zip(bytes.chunks_mut(runs.len.max(1))) {
            self.read_exact(entry, run.start, into)?;
        }
        Ok(bytes)
    }

    /// Bytes of a tensor from byte `first` on.
    fn read_exact(&self, entry: &Entry, first: usize, into: &mut [u8]) -> Result<(), LoadError> {
        let shard = &self.shards[entry.shard];
        if first + into.len() > entry.length {
            return Err(malformed(&shard.path, "a part beyond its tensor"));
        }
        shard.file.read_exact_at(into, entry.offset + first as u64).map_err(|e| io(&shard.path, e))?;
        self.bytes_read.fetch_add(into.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl TensorSource for SafetensorsSource {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|entry| entry.shape.clone())
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        let entry = self.floats(name)?;
        self.values(entry, Runs::one(0..entry.length))
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        if elements.start > elements.end {
            return Err(absent_part(name, &elements));
        }
        self.read_runs(name, Runs::one(elements))
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        let entry = self.floats(name)?;
        let width = entry.dtype.bitsize() / 8;
        if runs.span().end > entry.length / width {
            return Err(absent_part(name, &runs.span()));
        }
        self.values(entry, runs.bytes(width))
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        self.floats(name).err()
    }
}

/// The header of a file and where its data starts.
fn header(path: &Path, file: &File) -> Result<(u64, BTreeMap<String, Info>), LoadError> {
    let size = file.metadata().map_err(|e| io(path, e))?.len();
    let mut prefix = [0; 8];
    let truncated = |what: &str| malformed(path, format!("truncated safetensors file: {what}"));
    if size < 8 {
        return Err(truncated("no header"));
    }
    file.read_exact_at(&mut prefix, 0).map_err(|e| io(path, e))?;
    let length = u64::from_le_bytes(prefix);
    if length > MAX_HEADER {
        return Err(malformed(path, format!("header of {length} bytes: not a safetensors file")));
    }
    let start = 8 + length;
    if start > size {
        return Err(truncated("the header ends after the file"));
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 8).map_err(|e| io(path, e))?;
    let infos: Infos = serde_json::from_slice(&text).map_err(|e| malformed(path, format!("header: {e}")))?;
    let expected = infos.data_length().map_err(|reason| malformed(path, format!("header: {reason}")))?;
    if size - start < expected {
        return Err(truncated(&format!("{} bytes of data, {expected} expected", size - start)));
    }
    Ok((start, infos.0))
}

fn entry(shard: usize, start: u64, info: Info, packed: Option<Dtype>) -> Entry {
    let Info { dtype, shape, data_offsets: (first, end) } = info;
    // The file has these bytes, as `header` checked, so that their number fits.
    let length = (end - first) as usize;
    Entry { shard, dtype, is_packed: packed == Some(dtype), shape, offset: start + first, length }
}
