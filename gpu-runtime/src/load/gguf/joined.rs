//! Modules whose rows a GGUF file has in two modules: read as one, by the name that Hugging Face's folders have.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::architecture::JoinedRows;
use crate::blocks::{BlockFormat, BlockRows};
use crate::config::{LoadError, TensorSource, absent_part, read_span, split_block};
use crate::runs::Runs;

/// A checkpoint with some modules joined.
pub(super) struct JoinedTensors {
    inner: Box<dyn TensorSource>,
    wholes: BTreeMap<String, Whole>,
    /// Tensors that are a part of another one.
    parts: BTreeSet<String>,
}

/// A matrix whose rows lie in two tensors.
struct Whole {
    parts: [String; 2],
    /// Number of rows of each part.
    rows: [usize; 2],
    columns: usize,
}

impl JoinedTensors {
    /// Finds the parts in all blocks.
    ///
    /// # Errors
    /// One part of a module is absent, or the parts do not have rows of one length.
    pub(super) fn new(inner: Box<dyn TensorSource>, joined: &[JoinedRows]) -> Result<Self, LoadError> {
        let (mut wholes, mut parts) = (BTreeMap::new(), BTreeSet::new());
        for name in inner.names() {
            let Some((layer, rest)) = split_block(&name) else { continue };
            let of = |module: &str| format!("model.layers.{layer}.{module}.weight");
            let is_first = |joined: &&JoinedRows| rest.strip_suffix(".weight") == Some(joined.parts[0]);
            let Some(JoinedRows { whole, parts: modules }) = joined.iter().find(is_first) else { continue };
            let names = modules.map(of);
            let matrix = |name: &String| match inner.shape(name).as_deref() {
                Some(&[rows, columns]) => Ok([rows, columns]),
                Some(found) => {
                    Err(LoadError::Unsupported(format!("tensor {name} of shape {found:?} in {}", of(whole))))
                }
                None => Err(LoadError::MissingTensor(name.clone())),
            };
            let [first, second] = [matrix(&names[0])?, matrix(&names[1])?];
            if first[1] != second[1] {
                let found = second.to_vec();
                let name = names[1].clone();
                return Err(LoadError::WrongShape { name, found, expected: vec![second[0], first[1]] });
            }
            parts.extend(names.iter().cloned());
            wholes.insert(of(whole), Whole { parts: names, rows: [first[0], second[0]], columns: first[1] });
        }
        Ok(Self { inner, wholes, parts })
    }
}

impl Whole {
    fn elements(&self) -> usize {
        (self.rows[0] + self.rows[1]) * self.columns
    }
}

impl TensorSource for JoinedTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        let whole = |whole: &Whole| vec![whole.rows[0] + whole.rows[1], whole.columns];
        self.wholes.get(name).map(whole).or_else(|| self.inner.shape(name))
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        let Some(whole) = self.wholes.get(name) else { return self.inner.read(name) };
        let [mut all, second] = [self.inner.read(&whole.parts[0])?, self.inner.read(&whole.parts[1])?];
        all.extend(second);
        Ok(all)
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let Some(whole) = self.wholes.get(name) else { return self.inner.read_part(name, elements) };
        if elements.start > elements.end || elements.end > whole.elements() {
            return Err(absent_part(name, &elements));
        }
        let middle = whole.rows[0] * whole.columns;
        let mut values = Vec::with_capacity(elements.len());
        if elements.start < middle {
            values.extend(self.inner.read_part(&whole.parts[0], elements.start..elements.end.min(middle))?);
        }
        if elements.end > middle {
            let part = elements.start.max(middle) - middle..elements.end - middle;
            values.extend(self.inner.read_part(&whole.parts[1], part)?);
        }
        Ok(values)
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        match self.wholes.get(name) {
            None => self.inner.read_runs(name, runs),
            Some(_) => read_span(self, name, runs),
        }
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        match self.wholes.get(name) {
            None => self.inner.quantized_type(name),
            Some(whole) => whole.parts.iter().find_map(|part| self.inner.quantized_type(part)),
        }
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        match self.wholes.get(name) {
            None => self.inner.refusal(name),
            Some(whole) => whole.parts.iter().find_map(|part| self.inner.refusal(part)),
        }
    }

    fn block_format(&self, name: &str) -> Option<BlockFormat> {
        let Some(whole) = self.wholes.get(name) else { return self.inner.block_format(name) };
        let [first, second] = whole.parts.each_ref().map(|part| self.inner.block_format(part));
        first.filter(|format| second == Some(*format))
    }

    fn read_blocks(&self, name: &str) -> Result<Option<BlockRows>, LoadError> {
        let Some(whole) = self.wholes.get(name) else { return self.inner.read_blocks(name) };
        if self.block_format(name).is_none() {
            return Ok(None);
        }
        let [first, second] = [self.inner.read_blocks(&whole.parts[0])?, self.inner.read_blocks(&whole.parts[1])?];
        Ok(first.zip(second).and_then(|(first, second)| first.followed_by(second)))
    }

    fn names(&self) -> Vec<String> {
        let apart = self.inner.names().into_iter().filter(|name| !self.parts.contains(name));
        apart.chain(self.wholes.keys().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}
