//! Tensors of a GGUF file, dequantized when they are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::ggml_file::qtensor_from_ggml;

use super::architecture::Architecture;
use super::header::TensorInfo;
use super::metadata::GgufFile;
use super::names;
use crate::config::{LoadError, TensorSource, absent_part};
use crate::load::{io, malformed};

/// Elements dequantized at a time; a multiple of every block size.
const PIECE: usize = 1 << 20;

/// Rotary frequency factors, which are no parameter of the model.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// The tensors of a GGUF file, under Hugging Face names and in Hugging Face row order.
pub(super) struct GgufSource {
    path: PathBuf,
    file: File,
    tensors: BTreeMap<String, Entry>,
    rope_factors: Option<Entry>,
}

struct Entry {
    dtype: GgmlDType,
    shape: Vec<usize>,
    /// First byte in the file, elements.
    offset: u64,
    elements: usize,
    /// Heads whose rows llama.cpp interleaved.
    interleaved_heads: Option<usize>,
    /// Whether llama.cpp added 1 to its elements.
    has_one_added: bool,
}

impl GgufSource {
    /// Finds every tensor of the file and checks that its bytes are there.
    pub(super) fn open(file: &GgufFile, family: &Architecture) -> Result<Self, LoadError> {
        let handle = File::open(&file.path).map_err(|e| io(&file.path, e))?;
        let mut source = Self { path: file.path.clone(), file: handle, tensors: BTreeMap::new(), rope_factors: None };
        let size = source.file.metadata().map_err(|e| io(&file.path, e))?.len();
        for (name, info) in &file.header.tensors {
            let entry = entry(file, size, name, info)?;
            if name == ROPE_FACTORS {
                source.rope_factors = Some(entry);
                continue;
            }
            let Some(canonical) = names::canonical(family, name) else {
                return Err(LoadError::Unsupported(format!("GGUF tensor {name}")));
            };
            if source.tensors.insert(canonical, entry).is_some() {
                return Err(file.malformed(format!("tensor {name} is there twice")));
            }
        }
        if family.interleaves_heads {
            let [queries, keys] = ["head_count", "head_count_kv"].map(|key| format!("{}.attention.{key}", family.name));
            source.mark_interleaved("q_proj", heads(file, &queries)?);
            source.mark_interleaved("k_proj", heads(file, if file.value(&keys).is_some() { &keys } else { &queries })?);
        }
        if family.adds_one_to_norms {
            source.mark_norms();
        }
        Ok(source)
    }

    /// Divisors of the rotary frequencies, one for each pair of a head's elements.
    pub(super) fn rope_factors(&self) -> Result<Option<Vec<f32>>, LoadError> {
        self.rope_factors.as_ref().map(|entry| self.values(ROPE_FACTORS, entry, 0..entry.elements)).transpose()
    }

    fn mark_interleaved(&mut self, module: &str, heads: usize) {
        for (name, entry) in &mut self.tensors {
            if name.rsplit('.').nth(1) == Some(module) {
                entry.interleaved_heads = Some(heads);
            }
        }
    }

    fn entry(&self, name: &str) -> Result<&Entry, LoadError> {
        self.tensors.get(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))
    }

    fn mark_norms(&mut self) {
        for (name, entry) in &mut self.tensors {
            entry.has_one_added = name.ends_with("norm.weight");
        }
    }

    /// Some elements of a tensor, as the file has them: whole blocks.
    fn values(&self, name: &str, entry: &Entry, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let mut values = Vec::with_capacity(elements.len());
        let mut raw = Vec::new();
        let mut offset = entry.offset + bytes(entry.dtype, elements.start) as u64;
        while values.len() < elements.len() {
            let count = PIECE.min(elements.len() - values.len());
            raw.resize(bytes(entry.dtype, count), 0);
            self.file.read_exact_at(&mut raw, offset).map_err(|e| io(&self.path, e))?;
            let piece = dequantize(entry.dtype, &raw, count);
            values.extend(piece.map_err(|e| malformed(&self.path, format!("tensor {name}: {e}")))?);
            offset += raw.len() as u64;
        }
        Ok(values)
    }
}

impl TensorSource for GgufSource {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|entry| entry.shape.clone())
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        let entry = self.entry(name)?;
        let values = self.values(name, entry, 0..entry.elements)?;
        Ok(match entry.interleaved_heads {
            Some(heads) => split_halves(&values, entry.shape[0], heads),
            None if entry.has_one_added => values.iter().map(|x| x - 1.0).collect(),
            None => values,
        })
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let entry = self.entry(name)?;
        if elements.start > elements.end || elements.end > entry.elements {
            return Err(absent_part(name, &elements));
        }
        // Rows of heads are interleaved within each head: a range that ends within one needs other rows than its own.
        let row = (entry.elements / entry.shape[0].max(1)).max(1);
        let head = entry.interleaved_heads.map(|heads| entry.shape[0] / heads * row);
        let unit = head.unwrap_or(1).max(1);
        let block = entry.dtype.block_size();
        let fits = |at: usize| at.is_multiple_of(unit) && at.is_multiple_of(block);
        if !fits(elements.start) || !fits(elements.end) {
            return self.read(name).map(|all| all[elements].to_vec());
        }
        let values = self.values(name, entry, elements)?;
        Ok(match entry.interleaved_heads {
            Some(_) => split_halves(&values, values.len() / row, (values.len() / unit).max(1)),
            None if entry.has_one_added => values.iter().map(|x| x - 1.0).collect(),
            None => values,
        })
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }
}

fn entry(file: &GgufFile, size: u64, name: &str, info: &TensorInfo) -> Result<Entry, LoadError> {
    let (dtype, shape) = (info.dtype, &info.shape);
    if matches!(dtype, GgmlDType::Q8_1 | GgmlDType::Q8K) {
        return Err(LoadError::Unsupported(format!("GGUF tensor {name} of type {dtype:?}")));
    }
    let odd = || file.malformed(format!("tensor {name} has shape {shape:?}"));
    let elements = shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent)).ok_or_else(odd)?;
    if shape.is_empty() || elements > isize::MAX as usize / 8 || !elements.is_multiple_of(dtype.block_size()) {
        return Err(odd());
    }
    let offset = file.header.data_start.saturating_add(info.offset);
    let end = offset.saturating_add(bytes(dtype, elements) as u64);
    if end > size {
        return Err(file.malformed(format!("truncated GGUF file: tensor {name} ends at byte {end} of {size}")));
    }
    Ok(Entry { dtype, shape: shape.clone(), offset, elements, interleaved_heads: None, has_one_added: false })
}

fn heads(file: &GgufFile, key: &str) -> Result<usize, LoadError> {
    let heads = file.integer(key)?.and_then(|heads| usize::try_from(heads).ok()).filter(|&heads| heads > 0);
    heads.ok_or_else(|| file.malformed(format!("metadata key {key} is missing or zero")))
}

fn bytes(dtype: GgmlDType, elements: usize) -> usize {
    elements / dtype.block_size() * dtype.type_size()
}

fn dequantize(dtype: GgmlDType, raw: &[u8], elements: usize) -> candle_core::Result<Vec<f32>> {
    qtensor_from_ggml(dtype, raw, vec![elements], &Device::Cpu)?.dequantize(&Device::Cpu)?.to_vec1()
}

/// Undoes the interleaving of rotary halves: rows `2j` and `2j + 1` of a head become `j` and `j + width / 2`.
/// Works for weights (`rows` of equal length) and biases (rows of one element). Rows that do not divide into
/// heads are left to the shape check.
fn split_halves(values: &[f32], rows: usize, heads: usize) -> Vec<f32> {
    let (width, length) = (rows / heads, values.len() / rows.max(1));
    let mut out = Vec::with_capacity(values.len());
    for head in 0..heads {
        for half in 0..2 {
            for pair in 0..width / 2 {
                let row = head * width + 2 * pair + half;
                out.extend_from_slice(&values[row * length..][..length]);
            }
        }
    }
    out
}
