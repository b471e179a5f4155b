//! Stacks of experts in MXFP4, dequantized as they are read.

use std::ops::Range;

use super::mxfp4::{self, BLOCK, BLOCK_BYTES};
use super::safetensors::SafetensorsSource;
use crate::config::{LoadError, TensorSource, absent_part, read_span};
use crate::runs::Runs;

/// Suffixes of the tensors with elements and with shared exponents.
const BLOCKS: &str = "_blocks";
const SCALES: &str = "_scales";

/// Checkpoints whose stacks of experts may be in MXFP4: `X_blocks` `[experts, outputs, inputs / 32, 16]` and `X_scales` stand
/// for `X` `[experts, inputs, outputs]`. A byte holds two neighbours of a row, the first one in its low half.
pub(super) struct Mxfp4Stacks {
    inner: SafetensorsSource,
}

/// Extents of a stack.
#[derive(Clone, Copy)]
struct Extents {
    experts: usize,
    outputs: usize,
    inputs: usize,
}

impl Extents {
    fn shape(self) -> Vec<usize> {
        vec![self.experts, self.inputs, self.outputs]
    }
}

impl Mxfp4Stacks {
    /// Checks that all blocks have scales.
    pub(super) fn new(inner: SafetensorsSource) -> Result<Self, LoadError> {
        let source = Self { inner };
        for name in source.inner.names() {
            let Some(stack) = name.strip_suffix(BLOCKS) else { continue };
            let found = source.inner.shape(&name).unwrap_or_default();
            let Some(Extents { experts, outputs, inputs }) = source.extents(stack) else {
                let name = source.inner.in_files(&name);
                let reason =
                    format!("tensor {name} has shape {found:?}; MXFP4 has [experts, outputs, blocks, {BLOCK_BYTES}]");
                return Err(LoadError::Unsupported(reason));
            };
            let (scales, expected) = (format!("{stack}{SCALES}"), vec![experts, outputs, inputs / BLOCK]);
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

    /// Extents of a stack, if it is in MXFP4.
    fn extents(&self, stack: &str) -> Option<Extents> {
        match self.inner.shape(&format!("{stack}{BLOCKS}"))?[..] {
            [experts, outputs, blocks, BLOCK_BYTES] => Some(Extents { experts, outputs, inputs: blocks * BLOCK }),
            _ => None,
        }
    }

    /// Elements of one expert, inputs before outputs.
    fn expert(
        &self,
        stack: &str,
        Extents { outputs, inputs, .. }: Extents,
        expert: usize,
    ) -> Result<Vec<f32>, LoadError> {
        let row = inputs / BLOCK;
        let part = |suffix: &str, length: usize| {
            self.inner.read_bytes(&format!("{stack}{suffix}"), expert * length..(expert + 1) * length)
        };
        let scales = part(SCALES, outputs * row)?;
        let blocks = part(BLOCKS, outputs * row * BLOCK_BYTES)?;
        let mut values = vec![0.0; outputs * inputs];
        for (at, bytes) in blocks.chunks_exact(BLOCK_BYTES).enumerate() {
            let (output, first, scale) = (at / row, at % row * BLOCK, mxfp4::scale(scales[at]));
            for (pair, byte) in bytes.iter().enumerate() {
                for (half, bits) in [byte & 15, byte >> 4].into_iter().enumerate() {
                    values[(first + 2 * pair + half) * outputs + output] = mxfp4::value(bits, scale);
                }
            }
        }
        Ok(values)
    }
}

impl TensorSource for Mxfp4Stacks {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.inner.shape(name).or_else(|| self.extents(name).map(Extents::shape))
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        match self.extents(name) {
            Some(extents) => self.read_part(name, 0..extents.shape().iter().product()),
            None => self.inner.read(name),
        }
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let Some(extents) = self.extents(name) else { return self.inner.read_part(name, elements) };
        let of_expert = extents.inputs * extents.outputs;
        if elements.start > elements.end || elements.end > extents.experts * of_expert {
            return Err(absent_part(name, &elements));
        }
        let mut values = Vec::with_capacity(elements.len());
        let mut next = elements.start;
        while next < elements.end {
            let expert = next / of_expert;
            let end = elements.end.min((expert + 1) * of_expert);
            let all = self.expert(name, extents, expert)?;
            values.extend_from_slice(&all[next - expert * of_expert..end - expert * of_expert]);
            next = end;
        }
        Ok(values)
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        match self.extents(name) {
            Some(_) => read_span(self, name, runs),
            None => self.inner.read_runs(name, runs),
        }
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        self.extents(name).map(|_| "MXFP4".to_owned())
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        if self.extents(name).is_none() {
            return self.inner.refusal(name);
        }
        [BLOCKS, SCALES].into_iter().find_map(|suffix| self.inner.packed_refusal(&format!("{name}{suffix}")))
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn names(&self) -> Vec<String> {
        let unpacked = |name: String| match name.strip_suffix(BLOCKS) {
            Some(stack) => Some(stack.to_owned()),
            None if name.strip_suffix(SCALES).is_some_and(|stack| self.extents(stack).is_some()) => None,
            None => Some(name),
        };
        let mut names: Vec<String> = self.inner.names().into_iter().filter_map(unpacked).collect();
        names.sort();
        names
    }
}
