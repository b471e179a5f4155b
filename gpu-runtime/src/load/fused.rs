//! Checkpoints with tensors that hold several parameters: fused projections and stacked experts, read by the names of the
//! parameters.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::layout::{Arrangement, Columns, FileTensor, file_tensors};
use super::storage::with_storage_of;
use crate::blocks::{BlockFormat, BlockRows};
use crate::config::{LoadError, ModelConfig, TensorSource, absent_part, read_span};
use crate::model::ParamTable;
use crate::runs::Runs;

/// A checkpoint by the names of the parameter table.
pub(super) struct FusedTensors {
    inner: Box<dyn TensorSource>,
    /// Parameters that lie among others.
    places: BTreeMap<String, Place>,
    /// Tensors that hold several parameters.
    fused: BTreeSet<String>,
    /// The expert's matrix that was read last: its projections are read one after the other.
    last: RefCell<Option<Matrix>>,
}

/// Where a parameter lies.
#[derive(Clone)]
struct Place {
    tensor: String,
    shape: Vec<usize>,
    /// First element; with columns, that of the expert's matrix.
    first: usize,
    /// The number of its projection, where outputs are columns.
    columns: Option<(Columns, usize)>,
}

struct Matrix {
    tensor: String,
    first: usize,
    values: Vec<f32>,
}

impl FusedTensors {
    /// Checks the extents of the tensors that hold several parameters.
    pub(super) fn new(inner: Box<dyn TensorSource>, config: &ModelConfig) -> Result<Self, LoadError> {
        let config = with_storage_of(&*inner, config)?;
        let specs = ParamTable::new(&config).specs;
        let (mut places, mut fused) = (BTreeMap::new(), BTreeSet::new());
        for FileTensor { name, shape, parts, arrangement } in file_tensors(&config, &specs) {
            let is_single = parts.iter().all(|part| specs[*part].name == name);
            let is_apart = || parts.iter().all(|part| inner.shape(&specs[*part].name).is_some());
            let found = inner.shape(&name);
            if is_single || (found.is_none() && is_apart()) {
                continue;
            }
            let in_files = config.spelling.in_files(&name);
            match found {
                None => return Err(LoadError::MissingTensor(in_files)),
                Some(found) if found != shape => {
                    return Err(LoadError::WrongShape { name: in_files, found, expected: shape });
                }
                Some(_) => {}
            }
            let mut first = 0;
            for (at, part) in parts.into_iter().enumerate() {
                let spec = &specs[part];
                let (start, columns) = match arrangement {
                    Arrangement::Rows => (first, None),
                    Arrangement::Columns(columns) => {
                        let (expert, projection) = (at / columns.projections, at % columns.projections);
                        (expert * columns.elements(), Some((columns, projection)))
                    }
                };
                first += spec.len();
                let place = Place { tensor: name.clone(), shape: spec.shape.clone(), first: start, columns };
                places.insert(spec.name.clone(), place);
            }
            fused.insert(name);
        }
        Ok(Self { inner, places, fused, last: RefCell::new(None) })
    }

    fn read_place(&self, place: &Place) -> Result<Vec<f32>, LoadError> {
        let Place { tensor, shape, first, columns } = place;
        let Some((columns, projection)) = columns else {
            return self.inner.read_part(tensor, *first..first + shape.iter().product::<usize>());
        };
        let mut last = self.last.borrow_mut();
        let matrix = match last.take().filter(|last| last.tensor == *tensor && last.first == *first) {
            Some(matrix) => matrix,
            None => {
                let values = self.inner.read_part(tensor, *first..first + columns.elements())?;
                Matrix { tensor: tensor.clone(), first: *first, values }
            }
        };
        let inputs = |output: usize| (0..columns.inputs).map(move |input| columns.index(*projection, output, input));
        let values = (0..columns.outputs).flat_map(inputs).map(|index| matrix.values[index]).collect();
        *last = Some(matrix);
        Ok(values)
    }
}

impl TensorSource for FusedTensors {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.places.get(name).map(|place| place.shape.clone()).or_else(|| self.inner.shape(name))
    }

    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        self.places.get(name).map_or_else(|| self.inner.read(name), |place| self.read_place(place))
    }

    fn read_part(&self, name: &str, elements: Range<usize>) -> Result<Vec<f32>, LoadError> {
        let Some(place) = self.places.get(name) else { return self.inner.read_part(name, elements) };
        let len: usize = place.shape.iter().product();
        if elements.start > elements.end || elements.end > len {
            return Err(absent_part(name, &elements));
        }
        match place.columns {
            None => self.inner.read_part(&place.tensor, place.first + elements.start..place.first + elements.end),
            Some(_) => self.read_place(place).map(|all| all[elements].to_vec()),
        }
    }

    fn read_runs(&self, name: &str, runs: Runs) -> Result<Vec<f32>, LoadError> {
        match self.places.get(name) {
            None => self.inner.read_runs(name, runs),
            Some(place) if place.columns.is_none() => {
                let (span, len) = (runs.span(), place.shape.iter().product::<usize>());
                match span.end {
                    end if end > len => Err(absent_part(name, &span)),
                    _ => self.inner.read_runs(&place.tensor, runs.shifted(place.first)),
                }
            }
            Some(_) => read_span(self, name, runs),
        }
    }

    fn quantized_type(&self, name: &str) -> Option<String> {
        self.inner.quantized_type(self.places.get(name).map_or(name, |place| &place.tensor))
    }

    fn refusal(&self, name: &str) -> Option<LoadError> {
        self.inner.refusal(self.places.get(name).map_or(name, |place| &place.tensor))
    }

    fn block_format(&self, name: &str) -> Option<BlockFormat> {
        if self.places.contains_key(name) { None } else { self.inner.block_format(name) }
    }

    fn read_blocks(&self, name: &str) -> Result<Option<BlockRows>, LoadError> {
        if self.places.contains_key(name) { Ok(None) } else { self.inner.read_blocks(name) }
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn names(&self) -> Vec<String> {
        let apart = self.inner.names().into_iter().filter(|name| !self.fused.contains(name));
        apart.chain(self.places.keys().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}
