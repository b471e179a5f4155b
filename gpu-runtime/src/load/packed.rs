//! Models whose weights are packed in blocks while they are read: tensors appear as if the file had them in these blocks.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::blocks::{BLOCK, BlockFormat, BlockRows, PackedForm, Quantizer};
use crate::config::{LoadError, ModelSource, TensorSource, absent_part, read_span};
use crate::model::ParamTable;
use crate::runs::Runs;

/// A checkpoint with tensors that are packed.
struct PackedTensors {
    inner: Box<dyn TensorSource>,
    /// Tensors that are packed, by name.
    packed: BTreeMap<String, Quantizer>,
}

/// The same model with its weights in this form. Tensors that are in blocks already stay as they are.
pub(crate) fn pack(name: &str, source: ModelSource, form: PackedForm) -> ModelSource {
    let (table, mut kept) = (ParamTable::new(&source.config), 0);
    let mut packed = BTreeMap::new();
    for (index, spec) in table.specs.iter().enumerate() {
        let Some(quantizer) = table.quantizer(index, form) else { continue };
        match source.tensors.block_format(&spec.name) {
            Some(_) => kept += 1,
            None => {
                packed.insert(spec.name.clone(), quantizer);
            }
        }
    }
    let form = form.name();
    for (dtype, tensors) in repacked_types(&*source.tensors, packed.keys()) {
        tracing::warn!(
            model = name,
            tensors,
            "--weights {form}: tensors in {dtype} are dequantized and packed again, which loses precision"
        );
    }
    if kept > 0 {
        tracing::warn!(
            model = name,
            tensors = kept,
            packed = packed.len(),
            "--weights {form}: the file has tensors in blocks already; they stay as they are"
        );
    } else {
        tracing::info!(model = name, packed = packed.len(), "weights are packed as {form}");
    }
    ModelSource { tensors: Box::new(PackedTensors { inner: source.tensors, packed }), ..source }
}

/// The quantized types that tensors of these names have in their file, and the number of tensors of each.
fn repacked_types<'a>(tensors: &dyn TensorSource, names: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
    let mut types = BTreeMap::new();
    for dtype in names.filter_map(|name| tensors.quantized_type(name)) {
        *types.entry(dtype).or_default() += 1;
    }
    types
}

impl PackedTensors {
    /// Packs the elements of a tensor's rows, or of a range of whole blocks.
    fn blocks(&self, name: &str, quantizer: Quantizer, values: &[f32], columns: usize) -> Result<BlockRows, LoadError> {
        let (format, limit) = (quantizer.format().name(), quantizer.limit());
        let packed = quantizer.pack(values, columns).map_err(|value| {
            LoadError::Blocks(format!(
                "tensor {name} has the element {value} (expected finite elements up to {limit} for {format})"
            ))
        })?;
        packed.ok_or_else(|| LoadError::Blocks(format!("tensor {name} has rows that are not whole blocks")))
    }

    fn read_packed(&self, name: &str) -> Result<Option<BlockRows>, LoadError> {
        let Some(quantizer) = self.quantizer(name) else { return Ok(None) };
        let columns = self.shape(name).and_then(|shape| shape.last().copied()).unwrap_or(0);
        self.blocks(name, quantizer, &self.inner.read(name)?, columns).map(Some)
    }

    fn quantizer(&self, name: &str) -> Option<Quantizer> {
        self.packed.get(name).copied()
    }
}

impl TensorSource for PackedTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.inner.shape(name)
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        match self.read_packed(name)? {
            Some(blocks) => Ok(blocks.values(0..blocks.rows())),
            None => self.inner.read(name),
        }
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let Some(quantizer) = self.quantizer(name) else { return self.inner.read_part(name, elements) };
        let len = self.shape(name).map_or(0, |shape| shape.iter().product());
        if elements.start > elements.end || elements.end > len {
            return Err(absent_part(name, &elements));
        }
        // Rows are whole blocks, so that blocks begin at multiples of their length.
        let first = elements.start / BLOCK * BLOCK;
        let whole = first..elements.end.next_multiple_of(BLOCK);
        if whole.is_empty() {
            return Ok(Vec::new());
        }
        let blocks = self.blocks(name, quantizer, &self.inner.read_part(name, whole)?, BLOCK)?;
        let values = blocks.values(0..blocks.rows());
        Ok(values[elements.start - first..elements.end - first].to_vec())
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        // Columns that begin or end within a block need all of it.
        match self.quantizer(name) {
            Some(_) => read_span(self, name, runs),
            None => self.inner.read_runs(name, runs),
        }
    }

    fn block_format(&self, name: &str) -> Option<BlockFormat> {
        self.quantizer(name).map(Quantizer::format).or_else(|| self.inner.block_format(name))
    }

    fn read_blocks(&self, name: &str) -> Result<Option<BlockRows>, LoadError> {
        let packed = self.read_packed(name)?;
        if packed.is_some() { Ok(packed) } else { self.inner.read_blocks(name) }
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        self.quantizer(name)
            .map(|quantizer| quantizer.format().name().to_owned())
            .or_else(|| self.inner.quantized_type(name))
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn names(&self) -> Vec<String> {
        self.inner.names()
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        self.inner.refusal(name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::path::Path;

    use candle_core::quantized::GgmlDType;

    use super::*;
    use crate::load::load;
    use crate::load::tests::{fp8, mxfp4, write_wide};

    fn types(path: &Path) -> Vec<String> {
        let tensors = load(path).unwrap().tensors;
        repacked_types(&*tensors, tensors.names().iter()).into_keys().collect()
    }

    #[test]
    fn quantized_types_are_told_by_name() {
        assert_eq!(types(fp8().path()), ["FP8 E4M3"]);
        assert_eq!(types(mxfp4().path()), ["MXFP4"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let mixed = |name: &str| match name.rsplit('.').nth(1) {
            Some("attn_q") => GgmlDType::Q2K,
            Some("attn_k") => GgmlDType::F16,
            _ => GgmlDType::F32,
        };
        write_wide(&path, mixed);
        assert_eq!(types(&path), ["Q2_K"]);
        let source = pack("m", load(&path).unwrap(), PackedForm::Q8);
        let of = |name: &str| source.tensors.quantized_type(&format!("model.layers.0.{name}.weight"));
        assert_eq!(of("self_attn.q_proj").as_deref(), Some("Q8_0"));
        assert_eq!(of("input_layernorm"), None);
    }
}
