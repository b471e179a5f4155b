//! Tensors of one or more safetensors files, read range by range.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::Dtype;

use self::header::{Info, Infos};
use super::{io, malformed};
use crate::config::{LoadError, TensorSource, absent_part};

mod header;

/// Longer headers are taken for damage; the format's own limit.
const MAX_HEADER: u64 = 100_000_000;

/// Elements are widened in pieces of this many bytes, so that a tensor is never held twice.
const PIECE: usize = 1 << 22;

/// The tensors of a checkpoint, under canonical names.
pub(super) struct SafetensorsSource {
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
}

struct Shard {
    path: PathBuf,
    file: File,
}

struct Entry {
    shard: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    /// First byte in the file, and bytes.
    offset: u64,
    length: usize,
}

impl SafetensorsSource {
    /// Opens the given files and reads their headers. Tensors of the type `packed`, of one byte, are there too, for
    /// [`Self::read_bytes`].
    pub(super) fn open(paths: &[PathBuf], packed: Option<Dtype>) -> Result<Self, LoadError> {
        let mut source = Self { shards: Vec::new(), tensors: BTreeMap::new() };
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
            let name = canonical(&name);
            // Buffers that old exports carry; the runtime computes them.
            if name.ends_with("rotary_emb.inv_freq") || name.ends_with("attn.masked_bias") {
                continue;
            }
            let entry = entry(shard, start, &name, info, packed)?;
            if self.tensors.insert(name.clone(), entry).is_some() {
                return Err(malformed(path, format!("tensor {name} occurs twice")));
            }
        }
        self.shards.push(Shard { path: path.to_owned(), file });
        Ok(())
    }
}

impl SafetensorsSource {
    fn entry(&self, name: &str) -> Result<&Entry, LoadError> {
        self.tensors.get(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))
    }

    /// The elements of some bytes of a tensor, widened to f32.
    fn values(&self, name: &str, entry: &Entry, bytes: Range<usize>) -> Result<Vec<f32>, LoadError> {
        if is_packed(entry.dtype) {
            return Err(LoadError::Unsupported(format!("tensor {name} has dtype {:?}", entry.dtype)));
        }
        let mut values = Vec::with_capacity(bytes.len() * 8 / entry.dtype.bitsize());
        let mut piece = vec![0; PIECE.min(bytes.len())];
        let mut done = bytes.start;
        while done < bytes.end {
            let piece = &mut piece[..PIECE.min(bytes.end - done)];
            self.read_exact(entry, done, piece)?;
            widen(entry.dtype, piece, &mut values);
            done += piece.len();
        }
        Ok(values)
    }

    /// Whether a tensor has elements for [`Self::read_bytes`].
    pub(super) fn is_packed(&self, name: &str) -> bool {
        self.tensors.get(name).is_some_and(|entry| is_packed(entry.dtype))
    }

    /// `count` elements of a tensor of bytes from element `first` on.
    pub(super) fn read_bytes(&self, name: &str, first: usize, count: usize) -> Result<Vec<u8>, LoadError> {
        let entry = self.entry(name)?;
        if !is_packed(entry.dtype) {
            let dtype = entry.dtype;
            return Err(LoadError::Unsupported(format!("tensor {name} has dtype {dtype:?} (supported: U8)")));
        }
        let mut bytes = vec![0; count];
        self.read_exact(entry, first, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of a tensor from byte `first` on.
    fn read_exact(&self, entry: &Entry, first: usize, into: &mut [u8]) -> Result<(), LoadError> {
        let shard = &self.shards[entry.shard];
        if first + into.len() > entry.length {
            return Err(malformed(&shard.path, "a part beyond its tensor"));
        }
        shard.file.read_exact_at(into, entry.offset + first as u64).map_err(|e| io(&shard.path, e))
    }
}

impl TensorSource for SafetensorsSource {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|entry| entry.shape.clone())
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        let entry = self.entry(name)?;
        self.values(name, entry, 0..entry.length)
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let entry = self.entry(name)?;
        let width = entry.dtype.bitsize() / 8;
        if elements.start > elements.end || elements.end > entry.length / width {
            return Err(absent_part(name, &elements));
        }
        self.values(name, entry, elements.start * width..elements.end * width)
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
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

/// Whether elements are bytes, which a checkpoint's format gives a meaning.
fn is_packed(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::U8 | Dtype::F8_E4M3)
}

fn entry(shard: usize, start: u64, name: &str, info: Info, packed: Option<Dtype>) -> Result<Entry, LoadError> {
    let is_float = matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::F64);
    if !is_float && packed != Some(info.dtype) {
        return Err(LoadError::Unsupported(format!("tensor {name} has dtype {:?}", info.dtype)));
    }
    let (first, end) = info.data_offsets;
    // The file has these bytes, as `header` checked, so that their number fits.
    Ok(Entry { shard, dtype: info.dtype, shape: info.shape, offset: start + first, length: (end - first) as usize })
}

/// The name in a full causal model, for exports of the bare decoder.
fn canonical(name: &str) -> String {
    if name.starts_with("model.") || name.starts_with("lm_head.") { name.to_owned() } else { format!("model.{name}") }
}

fn widen(dtype: Dtype, bytes: &[u8], into: &mut Vec<f32>) {
    match dtype {
        Dtype::F16 => into.extend(bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32())),
        Dtype::BF16 => into.extend(bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32())),
        Dtype::F64 => into.extend(bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32)),
        // `entry` lets nothing else through.
        _ => into.extend(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
    }
}
