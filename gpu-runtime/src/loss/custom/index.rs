//! Parts of tensors: slices, indices, masks. All are one operation, which gathers elements by position.

use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind, broadcast, dense, elements, volume};
use super::value::{Value, position};

/// Places of elements in a tensor, in a shape: what indexing is applied to.
pub(super) struct Places {
    pub(super) shape: Vec<usize>,
    pub(super) flat: Vec<usize>,
}

impl Places {
    /// All elements of a tensor.
    pub(super) fn of(x: &GraphTensor) -> Self {
        Self { shape: x.shape().to_vec(), flat: (0..x.len()).collect() }
    }

    /// Keeps these positions of a dimension, in this order; they are within its extent.
    pub(super) fn keep(&self, tape: &Tape, dim: usize, kept: &[usize]) -> Result<Self> {
        let extent = self.shape.get(dim).copied().unwrap_or(1);
        let inner = volume(self.shape.get(dim + 1..).unwrap_or_default());
        let outer = volume(self.shape.get(..dim).unwrap_or_default());
        tape.reserve(volume(&[outer, kept.len(), inner]))?;
        let mut flat = Vec::with_capacity(outer * kept.len() * inner);
        for block in 0..outer {
            for &at in kept {
                let start = (block * extent + at) * inner;
                flat.extend_from_slice(self.flat.get(start..start + inner).unwrap_or_default());
            }
        }
        let mut shape = self.shape.clone();
        if let Some(slot) = shape.get_mut(dim) {
            *slot = kept.len();
        }
        Ok(Self { shape, flat })
    }

    /// The elements at these places.
    pub(super) fn take(self, tape: &mut Tape, x: &GraphTensor) -> Result<GraphTensor> {
        let Self { shape, flat } = self;
        tape.reserve(flat.len())?;
        fn picked<T: Copy + Default>(values: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|&at| values.get(at).copied().unwrap_or_default()).collect()
        }
        let output = match x.kind() {
            Kind::Float => GraphTensor::floats(picked(&x.to_floats()?, &flat), &shape)?,
            Kind::Int => GraphTensor::ints(picked(&x.to_ints()?, &flat), &shape)?,
            Kind::Bool => GraphTensor::bools(picked(&x.to_bools()?, &flat), &shape)?,
        };
        let input = x.shape().to_vec();
        Ok(tape.function(x, output, move |gradient| {
            let mut sums = vec![0.0; volume(&input)];
            for (value, &at) in elements::<f64>(gradient)?.into_iter().zip(&flat) {
                if let Some(sum) = sums.get_mut(at) {
                    *sum += value;
                }
            }
            dense(sums, &input)
        }))
    }
}

/// Evaluates the indexing expression `x[key]`.
pub(super) fn get_item(tape: &mut Tape, x: &GraphTensor, key: &Value) -> Result<GraphTensor> {
    // A tuple has an index for each dimension; a list is one index of several positions.
    let keys = match key {
        Value::Tuple(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    let used = keys.iter().map(width).sum::<usize>();
    let spare = x.rank().checked_sub(used);
    let spare =
        spare.ok_or_else(|| Failure::new(format!("{used} indices into a tensor of {} dimensions", x.rank())))?;
    let mut places = Places::of(x);
    let mut dim = 0;
    let mut advanced: Vec<(usize, GraphTensor)> = Vec::new();
    let mut has_ellipsis = false;
    for key in keys {
        match key {
            Value::Int(index) => {
                let extent = places.shape.get(dim).copied().unwrap_or(1);
                places = places.keep(tape, dim, &[position(*index, extent)?])?;
                places.shape.remove(dim);
            }
            Value::Slice(parts) => {
                let kept = sliced(parts, places.shape.get(dim).copied().unwrap_or(1))?;
                places = places.keep(tape, dim, &kept)?;
                dim += 1;
            }
            Value::None => {
                places.shape.insert(dim, 1);
                dim += 1;
            }
            Value::Ellipsis if !has_ellipsis => {
                has_ellipsis = true;
                dim += spare;
            }
            Value::Tensor(mask) if mask.kind() == Kind::Bool => {
                for index in nonzero(mask, places.shape.get(dim..).unwrap_or_default())? {
                    advanced.push((dim, index));
                    dim += 1;
                }
            }
            Value::Tensor(index) if index.kind() == Kind::Int => {
                advanced.push((dim, index.clone()));
                dim += 1;
            }
            Value::List(items) => {
                let ints: Option<Vec<i64>> = items.iter().map(Value::to_int).collect();
                let ints = ints.ok_or_else(|| Failure::new("a list as an index must hold integers"))?;
                advanced.push((dim, GraphTensor::ints(ints.clone(), &[ints.len()])?));
                dim += 1;
            }
            other => return Err(Failure::new(format!("{} is not an index", other.describe()))),
        }
    }
    if !advanced.is_empty() {
        places = gathered(tape, &places, &advanced)?;
    }
    places.take(tape, x)
}

/// Dimensions that an index takes.
fn width(key: &Value) -> usize {
    match key {
        Value::None | Value::Ellipsis => 0,
        Value::Tensor(mask) if mask.kind() == Kind::Bool => mask.rank(),
        _ => 1,
    }
}

/// The positions of a slice, as Python has them.
pub(super) fn sliced(parts: &[Value; 3], extent: usize) -> Result<Vec<usize>> {
    let [start, stop, step] = parts;
    let part = |value: &Value, default: i64| match value {
        Value::None | Value::Absent => Ok(default),
        value => value.to_int().ok_or_else(|| Failure::new(format!("a slice has {} as a bound", value.describe()))),
    };
    let most = i64::try_from(extent).unwrap_or(i64::MAX);
    let bound = |index: i64| if index < 0 { index.saturating_add(most).max(0) } else { index.min(most) };
    let (start, stop, step) = (bound(part(start, 0)?), bound(part(stop, most)?), part(step, 1)?);
    let step = usize::try_from(step).ok().filter(|step| *step > 0);
    let step = step.ok_or_else(|| Failure::new("the step of a slice must be positive"))?;
    let index = |value: i64| usize::try_from(value).unwrap_or(0);
    Ok((index(start)..index(stop)).step_by(step).collect())
}

/// The positions of a mask's true elements, one list for each of its dimensions.
fn nonzero(mask: &GraphTensor, shape: &[usize]) -> Result<Vec<GraphTensor>> {
    if !shape.starts_with(mask.shape()) {
        return Err(Failure::new(format!("a mask of shape {:?} does not match shape {shape:?}", mask.shape())));
    }
    let values = mask.to_bools()?;
    let set: Vec<usize> = values.iter().enumerate().filter(|(_, is_set)| **is_set).map(|(at, _)| at).collect();
    let mut inner = values.len();
    let along = |extent: &usize| {
        inner = inner.checked_div(*extent).unwrap_or(0);
        let index = |at: &usize| (at.checked_div(inner).unwrap_or(0) % (*extent).max(1)) as i64;
        GraphTensor::ints(set.iter().map(index).collect(), &[set.len()])
    };
    mask.shape().iter().map(along).collect()
}

/// Indexes several dimensions by tensors that broadcast to one shape. That shape takes the place of the dimensions where
/// these are neighbours, and goes first where they are not.
fn gathered(tape: &Tape, places: &Places, indices: &[(usize, GraphTensor)]) -> Result<Places> {
    let mut shape = Vec::new();
    for (_, index) in indices {
        shape = broadcast(&shape, index.shape())?;
    }
    let dims: Vec<usize> = indices.iter().map(|(dim, _)| *dim).collect();
    let are_neighbours = dims.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b));
    let before = if are_neighbours { dims.first().copied().unwrap_or(0) } else { 0 };
    let others: Vec<usize> = (0..places.shape.len()).filter(|dim| !dims.contains(dim)).collect();
    let (left, right) = others.split_at(before.min(others.len()));
    let extent = |dim: &usize| places.shape.get(*dim).copied().unwrap_or(1);
    let stride = |dim: &usize| volume(places.shape.get(dim + 1..).unwrap_or_default());
    let mut offsets = vec![0_usize; volume(&shape)];
    tape.reserve(volume(&[places.flat.len().max(1), 1]).max(offsets.len()))?;
    for (dim, index) in indices {
        let wide = index.data.broadcast_as(shape.as_slice())?;
        for (offset, at) in offsets.iter_mut().zip(elements::<i64>(&wide)?) {
            *offset += position(at, extent(dim))? * stride(dim);
        }
    }
    let starts = |dims: &[usize]| -> Vec<usize> {
        dims.iter().fold(vec![0], |starts, dim| {
            let along = |start: usize| (0..extent(dim)).map(move |at| start + at * stride(dim));
            starts.into_iter().flat_map(along).collect()
        })
    };
    let (outer, inner) = (starts(left), starts(right));
    tape.reserve(volume(&[outer.len(), offsets.len(), inner.len()]))?;
    let mut flat = Vec::with_capacity(outer.len() * offsets.len() * inner.len());
    for start in &outer {
        for offset in &offsets {
            flat.extend(inner.iter().map(|rest| places.flat.get(start + offset + rest).copied().unwrap_or(0)));
        }
    }
    let full = left.iter().map(extent).chain(shape).chain(right.iter().map(extent)).collect();
    Ok(Places { shape: full, flat })
}
