//! Tensors of a GGUF file, dequantized when they are read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::architecture::Architecture;
use super::conversion::{Change, Order};
use super::entry::Entry;
use super::extents::{kv_heads, layers};
use super::metadata::GgufFile;
use super::names;
use super::recurrent;
use super::stacks::{ExpertStacks, SplitLatent};
use crate::blocks::{BlockFormat, BlockRows};
use crate::config::{LoadError, ModelConfig, TensorSource, absent_part, read_span, split_block};
use crate::load::errors::{io, malformed};
use crate::runs::Runs;

/// Elements dequantized at a time; a multiple of every block size.
const PIECE: usize = 1 << 20;

/// The tensors of a GGUF file, under Hugging Face names and in Hugging Face row order.
pub(super) struct GgufSource {
    path: PathBuf,
    file: File,
    tensors: BTreeMap<String, Entry>,
    experts: ExpertStacks,
    /// Split latents by the name of the whole tensor.
    latents: BTreeMap<String, SplitLatent>,
    /// Divisors of rotary frequencies, which are not parameters of the model, by their names in the file.
    rope_factors: BTreeMap<String, Entry>,
    bytes_read: AtomicU64,
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
            rope_factors: BTreeMap::new(),
            bytes_read: AtomicU64::new(0),
        };
        let size = source.file.metadata().map_err(|e| io(&file.path, e))?.len();
        let blocks = if family.predicts_further { Some(layers(file, family)?) } else { None };
        for (name, info) in &file.header.tensors {
            if names::block(name).zip(blocks).is_some_and(|(block, blocks)| block >= blocks) {
                continue;
            }
            let mut entry = Entry::new(file, size, name, info)?;
            if names::is_rope(family, name) {
                source.rope_factors.insert(name.clone(), entry);
                continue;
            }
            let Some(canonical) = names::canonical(family, name) else {
                return Err(LoadError::Unsupported(format!("GGUF tensor {name}")));
            };
            if let Some(form) = names::form(&canonical) {
                entry.shape = form.extents(&entry.shape, entry.elements);
            }
            let is_new = match ExpertStacks::is_stack(&canonical) {
                true => source.experts.add(canonical, entry)?,
                false => source.tensors.insert(canonical, entry).is_none(),
            };
            if !is_new {
                return Err(file.malformed(format!("tensor {name} occurs twice")));
            }
        }
        source.join_latents()?;
        source.mark_changes(family);
        source.mark_orders(file, family)?;
        Ok(source)
    }

    /// Notes what a reader must undo in elements.
    fn mark_changes(&mut self, family: &Architecture) {
        for (name, entry) in &mut self.tensors {
            let is_norm = name.ends_with("norm.weight") && !name.ends_with(".linear_attn.norm.weight");
            if family.adds_one_to_norms && is_norm {
                entry.change = Change::OneAdded;
            }
            if name.ends_with(".A_log") {
                entry.change = Change::NegativeExp;
            }
        }
    }

    /// Notes what a reader must undo in the order of rows and columns.
    fn mark_orders(&mut self, file: &GgufFile, family: &Architecture) -> Result<(), LoadError> {
        if family.interleaves_heads {
            let queries = heads(file, &format!("{}.attention.head_count", family.name))?;
            let keys = match kv_heads(file, family)? {
                None => queries,
                Some(keys) => usize::try_from(keys).ok().filter(|&keys| keys > 0).ok_or_else(|| {
                    file.malformed(format!("metadata key {}.attention.head_count_kv is {keys}", family.name))
                })?,
            };
            self.mark("self_attn.q_proj", Order::Interleaved { heads: queries });
            self.mark("self_attn.k_proj", Order::Interleaved { heads: keys });
        }
        if family.tiles_value_heads {
            for (module, order) in recurrent::value_head_orders(file, family.name)? {
                self.mark(module, order);
            }
        }
        Ok(())
    }

    /// Sets the order of a module's tensors in all blocks, or of a tensor that is not a module's.
    fn mark(&mut self, module: &str, order: Order) {
        for (name, entry) in &mut self.tensors {
            let rest = split_block(name).and_then(|(_, rest)| rest.strip_prefix(module));
            if rest.is_some_and(|kind| kind.is_empty() || kind.starts_with('.')) {
                entry.order = order;
            }
        }
    }

    /// Whether some block has a tensor of this name.
    pub(super) fn has_in_blocks(&self, name: &str) -> bool {
        self.tensors.keys().any(|own| split_block(own).is_some_and(|(_, rest)| rest == name))
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

    /// Divisors of rotary frequencies, by the name of their tensor: one for each pair of a head's elements.
    pub(super) fn rope_factors(&self, name: &str) -> Result<Option<Vec<f32>>, LoadError> {
        self.rope_factors.get(name).map(|entry| self.values(name, entry, 0..entry.elements)).transpose()
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

    fn read_exact(&self, into: &mut [u8], offset: u64) -> Result<(), LoadError> {
        self.file.read_exact_at(into, offset).map_err(|e| io(&self.path, e))?;
        self.bytes_read.fetch_add(into.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Some elements of a tensor, as the file has them: whole blocks.
    fn values(&self, name: &str, entry: &Entry, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let mut values = Vec::with_capacity(elements.len());
        let mut raw = Vec::new();
        let mut offset = entry.offset + entry.dtype.bytes(elements.start) as u64;
        while values.len() < elements.len() {
            let count = PIECE.min(elements.len() - values.len());
            raw.resize(entry.dtype.bytes(count), 0);
            self.read_exact(&mut raw, offset)?;
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
        entry.change.undo(name, entry.order.restore(values, entry.shape[0]))
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
        // A range that ends within a head with interleaved rows needs other rows than its own, and so does one that reaches into
        // tiled heads.
        let rows = entry.shape[0].max(1);
        let row = (entry.elements / rows).max(1);
        let head = match entry.order {
            Order::Interleaved { heads } => Some(rows / heads),
            _ => None,
        };
        let unit = (head.unwrap_or(1) * row).max(1);
        let block = entry.dtype.block_size();
        let fits = |at: usize| at.is_multiple_of(block) && (head.is_none() || at.is_multiple_of(unit));
        let in_place = head.is_some() || elements.end <= entry.order.rows_in_place(rows) * row;
        if !in_place || !fits(elements.start) || !fits(elements.end) {
            return self.read(name).map(|all| all[elements].to_vec());
        }
        let values = self.values(name, entry, elements)?;
        let values = match head {
            Some(_) => {
                let heads = (values.len() / unit).max(1);
                Order::Interleaved { heads }.restore(values, heads * unit / row)
            }
            None => values,
        };
        entry.change.undo(name, values)
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        let Some(entry) = self.find(name).filter(|entry| entry.has_columns(runs)) else {
            return read_span(self, name, runs);
        };
        let mut values = Vec::with_capacity(runs.elements());
        for run in runs.ranges() {
            values.extend(self.values(name, &entry, run)?);
        }
        entry.change.undo(name, entry.order.restore(values, runs.count))
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        self.find(name).map(|entry| entry.dtype).filter(|dtype| dtype.is_quantized()).map(|dtype| dtype.to_string())
    }

    fn block_format(&self, name: &str) -> Option<BlockFormat> {
        let entry = self.find(name)?;
        let is_kept = entry.change == Change::None && entry.order.keeps_rows();
        let [_, columns] = entry.shape[..] else { return None };
        entry.dtype.blocks().filter(|format| is_kept && columns.is_multiple_of(format.elements()))
    }

    fn read_blocks(&self, name: &str) -> Result<Option<BlockRows>, LoadError> {
        let (Some(format), Some(entry)) = (self.block_format(name), self.find(name)) else { return Ok(None) };
        let mut raw = vec![0; entry.dtype.bytes(entry.elements)];
        self.read_exact(&mut raw, entry.offset)?;
        Ok(BlockRows::new(format, entry.shape[1], entry.order.restore(raw, entry.shape[0])))
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
