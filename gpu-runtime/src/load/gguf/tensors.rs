//! Tensors of a GGUF file, dequantized when they are read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::architecture::Architecture;
use super::entry::Entry;
use super::metadata::GgufFile;
use super::names;
use super::stacks::{ExpertStacks, SplitLatent};
use crate::config::{LoadError, ModelConfig, TensorSource, absent_part};
use crate::load::{io, malformed};

/// Elements dequantized at a time; a multiple of every block size.
const PIECE: usize = 1 << 20;

/// Rotary frequency factors, which are not a parameter of the model.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// The tensors of a GGUF file, under Hugging Face names and in Hugging Face row order.
pub(super) struct GgufSource {
    path: PathBuf,
    file: File,
    tensors: BTreeMap<String, Entry>,
    experts: ExpertStacks,
    /// Split latents by the name of the whole tensor.
    latents: BTreeMap<String, SplitLatent>,
    rope_factors: Option<Entry>,
}

impl GgufSource {
    /// Finds every tensor of the file and checks that its bytes are there.
    pub(super) fn open(file: &GgufFile, family: &Architecture) -> Result<Self, LoadError> {
        let handle = File::open(&file.path).map_err(|e| io(&file.path, e))?;
        let mut source = Self {
            path: file.path.clone(),
            file: handle,
            tensors: BTreeMap::new(),
            experts: ExpertStacks::default(),
            latents: BTreeMap::new(),
            rope_factors: None,
        };
        let size = source.file.metadata().map_err(|e| io(&file.path, e))?.len();
        for (name, info) in &file.header.tensors {
            let entry = Entry::new(file, size, name, info)?;
            if name == ROPE_FACTORS {
                source.rope_factors = Some(entry);
                continue;
            }
            let Some(canonical) = names::canonical(family, name) else {
                return Err(LoadError::Unsupported(format!("GGUF tensor {name}")));
            };
            let is_new = match ExpertStacks::is_stack(&canonical) {
                true => source.experts.add(canonical, entry)?,
                false => source.tensors.insert(canonical, entry).is_none(),
            };
            if !is_new {
                return Err(file.malformed(format!("tensor {name} occurs twice")));
            }
        }
        source.join_latents()?;
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

    /// Makes wholes of the halves of latent attention, where the file has no whole itself.
    fn join_latents(&mut self) -> Result<(), LoadError> {
        let blocks: Vec<String> =
            self.tensors.keys().filter_map(|name| Some(name.strip_suffix(".k_b_proj.weight")?.to_owned())).collect();
        for block in blocks {
            let (whole, values) = (format!("{block}.kv_b_proj.weight"), format!("{block}.v_b_proj.weight"));
            let keys = self.tensors.remove(&format!("{block}.k_b_proj.weight"));
            let values = self.tensors.remove(&values).ok_or(LoadError::MissingTensor(values))?;
            if let Some(keys) = keys.filter(|_| !self.tensors.contains_key(&whole)) {
                let joined = SplitLatent::new(&whole, keys, values)?;
                self.latents.insert(whole, joined);
            }
        }
        Ok(())
    }

    /// Checks that blocks have the experts of a configuration.
    pub(super) fn check_experts(&self, config: &ModelConfig) -> Result<(), LoadError> {
        self.experts.check(config)
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

    fn find(&self, name: &str) -> Option<Cow<'_, Entry>> {
        self.tensors.get(name).map(Cow::Borrowed).or_else(|| self.experts.find(name).map(Cow::Owned))
    }

    fn entry(&self, name: &str) -> Result<Cow<'_, Entry>, LoadError> {
        self.find(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))
    }

    /// Some heads of a whole that the file has in halves.
    fn latent_heads(&self, name: &str, latent: &SplitLatent, heads: Range<usize>) -> Result<Vec<f32>, LoadError> {
        latent.heads(heads, |entry, elements| self.values(name, entry, elements))
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
        let mut offset = entry.offset + entry.dtype.bytes(elements.start) as u64;
        while values.len() < elements.len() {
            let count = PIECE.min(elements.len() - values.len());
            raw.resize(entry.dtype.bytes(count), 0);
            self.file.read_exact_at(&mut raw, offset).map_err(|e| io(&self.path, e))?;
            let piece = entry.dtype.dequantize(&raw, count);
            values.extend(piece.map_err(|e| malformed(&self.path, format!("tensor {name}: {e}")))?);
            offset += raw.len() as u64;
        }
        Ok(values)
    }
}

impl TensorSource for GgufSource {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        let latent = || self.latents.get(name).map(SplitLatent::shape);
        self.find(name).map(|entry| entry.shape.clone()).or_else(latent)
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        if let Some(latent) = self.latents.get(name) {
            return self.latent_heads(name, latent, 0..latent.keys.shape[0]);
        }
        let entry = &*self.entry(name)?;
        let values = self.values(name, entry, 0..entry.elements)?;
        Ok(match entry.interleaved_heads {
            Some(heads) => split_halves(&values, entry.shape[0], heads),
            None if entry.has_one_added => values.iter().map(|x| x - 1.0).collect(),
            None => values,
        })
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        if let Some(latent) = self.latents.get(name) {
            let (head, all) = (latent.head().max(1), latent.head() * latent.keys.shape[0]);
            if elements.start > elements.end || elements.end > all {
                return Err(absent_part(name, &elements));
            }
            // Heads that a range cuts are read whole.
            let heads = elements.start / head..elements.end.div_ceil(head);
            let first = heads.start * head;
            let values = self.latent_heads(name, latent, heads)?;
            return Ok(values[elements.start - first..elements.end - first].to_vec());
        }
        let entry = &*self.entry(name)?;
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
        let names = self.tensors.keys().chain(self.latents.keys()).cloned().chain(self.experts.names());
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn heads(file: &GgufFile, key: &str) -> Result<usize, LoadError> {
    let heads = file.integer(key)?.and_then(|heads| usize::try_from(heads).ok()).filter(|&heads| heads > 0);
    heads.ok_or_else(|| file.malformed(format!("metadata key {key} is missing or zero")))
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
