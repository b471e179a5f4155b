//! Checkpoints whose linear layers are packed 4-bit integers with a scale for each group of inputs, as compressed-tensors
//! writes them: `X.weight_packed` and `X.weight_scale` stand for `X.weight`, which is dequantized as it is read.

use std::ops::Range;

use safetensors::Dtype;

use super::keys::Keys;
use super::safetensors::SafetensorsSource;
use crate::config::{LoadError, TensorSource, absent_part, read_span};
use crate::runs::Runs;

/// Type of the packed elements, and how many of them share one.
pub(super) const PACKED: Dtype = Dtype::I32;
const PER_WORD: usize = 8;
const WORD_BYTES: usize = 4;
/// Stored elements are this much larger than their values.
const OFFSET: f32 = 8.0;

const PACKED_SUFFIX: &str = "_packed";
const SCALE_SUFFIX: &str = "_scale";
/// Extents of the matrix, which follow from those of the packed one.
const SHAPE_SUFFIX: &str = "_shape";

/// A checkpoint with packed matrices, in f32.
pub(super) struct PackedInt4 {
    inner: SafetensorsSource,
    /// Inputs that share a scale.
    group: usize,
}

/// The number of inputs that share a scale, from a `quantization_config`.
///
/// # Errors
/// Another format than symmetric 4-bit integers in groups.
pub(super) fn group_size(quantization: &Keys<'_>) -> Result<usize, LoadError> {
    let refused = |what: String, supported: &str| {
        Err(LoadError::Unsupported(format!("quantization_config with {what} (supported: {supported})")))
    };
    let format = quantization.text("format")?.unwrap_or_default();
    if format != "pack-quantized" {
        return refused(format!("format {format:?}"), "pack-quantized");
    }
    let groups: Vec<_> = match quantization.object("config_groups")? {
        Some(groups) => groups.members().map(|(name, _)| groups.object(name)).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let [Some(only)] = groups[..] else {
        return refused(format!("{} config_groups", groups.len()), "1");
    };
    let Some(weights) = only.object("weights")? else {
        return refused("config_groups without weights".to_owned(), "4-bit integers");
    };
    if only.value("input_activations").is_some() {
        return refused("quantized input_activations".to_owned(), "null");
    }
    for (key, supported) in [("type", "int"), ("strategy", "group")] {
        if let Some(found) = weights.text(key)?.filter(|found| *found != supported) {
            return refused(format!("{key} {found:?}"), supported);
        }
    }
    if let Some(order) = weights.text("actorder")?.filter(|order| *order == "group") {
        return refused(format!("actorder {order:?}"), "null, weight");
    }
    if !weights.flag("symmetric")?.unwrap_or(true) {
        return refused("symmetric false".to_owned(), "true");
    }
    match (weights.size("num_bits")?, weights.size("group_size")?) {
        (Some(4), Some(group)) if group > 0 => Ok(group),
        (Some(4), group) => refused(format!("group_size {group:?}"), "a positive number"),
        (bits, _) => refused(format!("num_bits {bits:?}"), "4"),
    }
}

impl PackedInt4 {
    /// Checks that every packed matrix has its scales.
    pub(super) fn new(inner: SafetensorsSource, group: usize) -> Result<Self, LoadError> {
        let source = Self { inner, group };
        for name in source.inner.names() {
            let Some(weight) = name.strip_suffix(PACKED_SUFFIX) else { continue };
            let found = source.inner.shape(&name).unwrap_or_default();
            let Some([rows, columns]) = source.extents(weight).filter(|[_, columns]| columns.is_multiple_of(group))
            else {
                let name = source.inner.in_files(&name);
                return Err(LoadError::Unsupported(format!(
                    "tensor {name} has shape {found:?}, not two extents with whole groups of {group} inputs"
                )));
            };
            let (scales, expected) = (format!("{weight}{SCALE_SUFFIX}"), vec![rows, columns / group]);
            match source.inner.shape(&scales) {
                None => return Err(LoadError::MissingTensor(source.inner.in_files(&scales))),
                Some(found) if found != expected => {
                    return Err(LoadError::WrongShape { name: source.inner.in_files(&scales), found, expected });
                }
                Some(_) => {}
            }
        }
        Ok(source)
    }

    /// Rows and columns of a matrix, if it is packed.
    fn extents(&self, weight: &str) -> Option<[usize; 2]> {
        match self.inner.shape(&format!("{weight}{PACKED_SUFFIX}"))?[..] {
            [rows, words] => Some([rows, words.checked_mul(PER_WORD)?]),
            _ => None,
        }
    }
}

impl TensorSource for PackedInt4 {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.inner.shape(name).or_else(|| self.extents(name).map(Vec::from))
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        match self.extents(name) {
            Some([rows, columns]) => self.read_part(name, 0..rows * columns),
            None => self.inner.read(name),
        }
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let Some([rows, columns]) = self.extents(name) else { return self.inner.read_part(name, elements) };
        if elements.start > elements.end || elements.end > rows * columns {
            return Err(absent_part(name, &elements));
        }
        // Rows are whole words and whole groups, so that both can be counted through all rows.
        let first_word = elements.start / PER_WORD;
        let words = first_word..elements.end.div_ceil(PER_WORD);
        let first_group = elements.start / self.group;
        let groups = first_group..elements.end.div_ceil(self.group);
        let bytes = words.start * WORD_BYTES..words.end.max(words.start) * WORD_BYTES;
        let packed = self.inner.read_bytes(&format!("{name}{PACKED_SUFFIX}"), bytes)?;
        let scales =
            self.inner.read_part(&format!("{name}{SCALE_SUFFIX}"), groups.start..groups.end.max(groups.start))?;
        // Elements fill words from the lowest bits up, and words are little-endian: two elements in each byte.
        let value = |element: usize| {
            let at = element - first_word * PER_WORD;
            let bits = packed[at / 2] >> (4 * (at % 2)) & 15;
            (f32::from(bits) - OFFSET) * scales[element / self.group - first_group]
        };
        Ok(elements.map(value).collect())
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        match self.extents(name) {
            Some(_) => read_span(self, name, runs),
            None => self.inner.read_runs(name, runs),
        }
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        self.extents(name).map(|_| "pack-quantized int4".to_owned())
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        if self.extents(name).is_none() {
            return self.inner.refusal(name);
        }
        let refusal = self.inner.packed_refusal(&format!("{name}{PACKED_SUFFIX}"));
        refusal.or_else(|| self.inner.refusal(&format!("{name}{SCALE_SUFFIX}")))
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn names(&self) -> Vec<String> {
        let is_of_packed = |name: &str| {
            let weight = [SCALE_SUFFIX, SHAPE_SUFFIX].into_iter().find_map(|suffix| name.strip_suffix(suffix));
            weight.is_some_and(|weight| self.extents(weight).is_some())
        };
        let names = self.inner.names().into_iter().filter(|name| !is_of_packed(name));
        let mut names: Vec<String> =
            names.map(|name| name.strip_suffix(PACKED_SUFFIX).map(str::to_owned).unwrap_or(name)).collect();
        names.sort();
        names
    }
}
