//! Named operations that take parts of a tensor.

use trainyard_protocol::custom_loss::{Binary, Op};

use super::binary::{binary, mask_in};
use super::error::{Failure, Result};
use super::index::Places;
use super::select::choose;
use super::shape::{expand_to, to_shape};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind, broadcast, volume};
use super::value::{Arguments, Value, position};

/// Dimension and extent that an argument names.
fn along(args: &Arguments, index: usize, default: i64, x: &GraphTensor) -> Result<(usize, usize)> {
    let dim = args.dim_or(index, default, x.rank())?;
    let extent = x.shape().get(dim).copied();
    extent.map(|extent| (dim, extent)).ok_or_else(|| Failure::new("needs a tensor with at least one dimension"))
}

fn kept(tape: &mut Tape, x: &GraphTensor, dim: usize, positions: &[usize]) -> Result<GraphTensor> {
    Places::of(x).keep(tape, dim, positions)?.take(tape, x)
}

/// Operations whose value is one tensor.
pub(super) fn part(tape: &mut Tape, op: Op, args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    match op {
        Op::MaskedSelect => masked_select(tape, x, args.tensor(1)?),
        Op::Diff => diff(tape, args),
        Op::Repeat => repeat(tape, x, &args.shape(1)?),
        Op::Narrow => {
            let (dim, extent) = along(args, 1, 0, x)?;
            let (start, length) =
                (position(args.int(2)?, extent + 1)?, usize::try_from(args.int(3)?).unwrap_or(usize::MAX));
            let end = start.checked_add(length).filter(|end| *end <= extent);
            let end =
                end.ok_or_else(|| Failure::new(format!("start {start} plus length exceeds the extent {extent}")))?;
            kept(tape, x, dim, &(start..end).collect::<Vec<_>>())
        }
        Op::Select => {
            let (dim, extent) = along(args, 1, 0, x)?;
            let mut places = Places::of(x).keep(tape, dim, &[position(args.int(2)?, extent)?])?;
            places.shape.remove(dim);
            places.take(tape, x)
        }
        Op::IndexSelect => {
            let (dim, extent) = along(args, 1, 0, x)?;
            let index = args.tensor(2)?;
            if index.kind() != Kind::Int || index.rank() > 1 {
                return Err(Failure::new("the index must be a vector of integers"));
            }
            let positions = index.to_ints()?.into_iter().map(|at| position(at, extent)).collect::<Result<Vec<_>>>()?;
            kept(tape, x, dim, &positions)
        }
        Op::Gather => gather(tape, args),
        Op::Flip => {
            let mut places = Places::of(x);
            for dim in args.dims(1, x.rank())? {
                let extent = x.shape().get(dim).copied().unwrap_or(0);
                places = places.keep(tape, dim, &(0..extent).rev().collect::<Vec<_>>())?;
            }
            places.take(tape, x)
        }
        Op::Roll => roll(tape, args),
        _ => triangle(tape, x, args.int_or(1, 0)?, op == Op::Tril),
    }
}

fn masked_select(tape: &mut Tape, x: &GraphTensor, mask: &GraphTensor) -> Result<GraphTensor> {
    let shape = broadcast(x.shape(), mask.shape())?;
    tape.reserve(volume(&shape))?;
    let wide = expand_to(tape, x, &shape)?;
    let chosen = mask_in(mask, &shape)?.into_iter().enumerate().filter(|(_, is_set)| *is_set).map(|(at, _)| at);
    let flat: Vec<usize> = chosen.collect();
    Places { shape: vec![flat.len()], flat }.take(tape, &wide)
}

fn diff(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let mut x = args.tensor(0)?.clone();
    let times = args.int_or(1, 1)?;
    for _ in 0..times {
        let (dim, extent) = along(args, 2, -1, &x)?;
        if extent == 0 {
            break;
        }
        tape.charge(x.len())?;
        let later = kept(tape, &x, dim, &(1..extent).collect::<Vec<_>>())?;
        let earlier = kept(tape, &x, dim, &(0..extent - 1).collect::<Vec<_>>())?;
        x = binary(tape, Binary::Sub, &Arguments::new(vec![Value::Tensor(later), Value::Tensor(earlier)]))?;
    }
    Ok(x)
}

fn repeat(tape: &mut Tape, x: &GraphTensor, counts: &[usize]) -> Result<GraphTensor> {
    let added = counts.len().checked_sub(x.rank());
    let added = added.ok_or_else(|| Failure::new(format!("{} counts for {} dimensions", counts.len(), x.rank())))?;
    let wide = to_shape(tape, x, &[vec![1; added], x.shape().to_vec()].concat())?;
    tape.reserve(volume(counts).saturating_mul(x.len()))?;
    let mut places = Places::of(&wide);
    for (dim, &count) in counts.iter().enumerate() {
        let extent = wide.shape().get(dim).copied().unwrap_or(1);
        tape.reserve(extent.saturating_mul(count))?;
        let positions: Vec<usize> = (0..count).flat_map(|_| 0..extent).collect();
        places = places.keep(tape, dim, &positions)?;
    }
    places.take(tape, &wide)
}

/// `out[.., i, ..] = x[.., index[.., i, ..], ..]`.
fn gather(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let (x, index) = (args.tensor(0)?, args.tensor(2)?);
    let (dim, extent) = along(args, 1, 0, x)?;
    let fits = index.shape().iter().zip(x.shape()).enumerate().all(|(at, (index, own))| at == dim || index <= own);
    if index.kind() != Kind::Int || index.rank() != x.rank() || !fits {
        return Err(Failure::new(format!("an index of shape {:?} into shape {:?}", index.shape(), x.shape())));
    }
    let mut counter = vec![0_usize; x.rank()];
    let mut flat = Vec::with_capacity(index.len());
    for chosen in index.to_ints()? {
        let chosen = position(chosen, extent)?;
        let coordinates = counter.iter().enumerate().map(|(at, own)| if at == dim { chosen } else { *own });
        flat.push(coordinates.zip(x.shape()).fold(0, |place, (at, extent)| place * extent + at));
        for (at, &extent) in counter.iter_mut().zip(index.shape()).rev() {
            *at += 1;
            if *at < extent {
                break;
            }
            *at = 0;
        }
    }
    Places { shape: index.shape().to_vec(), flat }.take(tape, x)
}

fn roll(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    let shifts = args.ints(1)?;
    if !args.is_given(2) {
        let flat = to_shape(tape, x, &[x.len()])?;
        let shift = shifts.first().copied().filter(|_| shifts.len() == 1);
        let shift = shift.ok_or_else(|| Failure::new("without dims, exactly one shift is expected"))?;
        let rolled = kept(tape, &flat, 0, &rolled(x.len(), shift))?;
        return to_shape(tape, &rolled, x.shape());
    }
    let dims = args.ints(2)?;
    if dims.len() != shifts.len() {
        return Err(Failure::new(format!("{} shifts for {} dims", shifts.len(), dims.len())));
    }
    let mut places = Places::of(x);
    for (dim, shift) in dims.into_iter().zip(shifts) {
        let dim = position(dim, x.rank())?;
        let extent = x.shape().get(dim).copied().unwrap_or(0);
        places = places.keep(tape, dim, &rolled(extent, shift))?;
    }
    places.take(tape, x)
}

/// Positions of an extent, moved by a shift.
fn rolled(extent: usize, shift: i64) -> Vec<usize> {
    let size = i64::try_from(extent).unwrap_or(i64::MAX).max(1);
    let shift = usize::try_from(shift.rem_euclid(size)).unwrap_or(0);
    (0..extent).map(|at| (at + extent - shift) % extent.max(1)).collect()
}

/// Zero above, or below, a diagonal of the last two dimensions.
fn triangle(tape: &mut Tape, x: &GraphTensor, diagonal: i64, is_lower: bool) -> Result<GraphTensor> {
    let [.., _, columns] = *x.shape() else { return Err(Failure::new("needs at least two dimensions")) };
    let rows = x.shape().iter().rev().nth(1).copied().unwrap_or(1);
    let stays = |at: usize| {
        let (row, column) = ((at / columns.max(1) % rows.max(1)) as i64, (at % columns.max(1)) as i64);
        let edge = row.saturating_add(diagonal);
        if is_lower { column <= edge } else { column >= edge }
    };
    let mask = GraphTensor::bools((0..x.len()).map(stays), x.shape())?;
    let zero = Value::Tensor(GraphTensor::ints(vec![0], &[])?.to_kind(x.kind())?);
    choose(tape, &mask, &Value::Tensor(x.clone()), &zero)
}

/// Pieces of these lengths along a dimension.
fn pieces(tape: &mut Tape, x: &GraphTensor, dim: usize, lengths: &[usize]) -> Result<Value> {
    let mut start = 0;
    let mut found = Vec::with_capacity(lengths.len());
    for length in lengths {
        let positions: Vec<usize> = (start..start + length).collect();
        tape.charge(x.len())?;
        found.push(Value::Tensor(kept(tape, x, dim, &positions)?));
        start += length;
    }
    Ok(Value::Tuple(found))
}

fn of_size(extent: usize, size: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..extent).step_by(size).map(|start| size.min(extent - start)).collect();
    if lengths.is_empty() {
        lengths.push(0);
    }
    lengths
}

/// Pieces of one size, or of the sizes of a list.
pub(super) fn split(tape: &mut Tape, args: &Arguments) -> Result<Value> {
    let x = args.tensor(0)?;
    let (dim, extent) = along(args, 2, 0, x)?;
    let lengths = match args.at(1) {
        Value::List(_) | Value::Tuple(_) => {
            let lengths = args.shape(1)?;
            if lengths.iter().fold(0_usize, |sum, length| sum.saturating_add(*length)) != extent {
                return Err(Failure::new(format!("the sizes {lengths:?} do not add up to {extent}")));
            }
            lengths
        }
        _ => match usize::try_from(args.int(1)?) {
            Ok(size) if size > 0 => of_size(extent, size),
            _ => return Err(Failure::new("the size of a piece must be positive")),
        },
    };
    tape.reserve(lengths.len())?;
    pieces(tape, x, dim, &lengths)
}

/// Divides a tensor into a number of pieces of nearly equal size.
pub(super) fn chunk(tape: &mut Tape, args: &Arguments) -> Result<Value> {
    let x = args.tensor(0)?;
    let (dim, extent) = along(args, 2, 0, x)?;
    match usize::try_from(args.int(1)?) {
        Ok(count) if count > 0 => pieces(tape, x, dim, &of_size(extent, extent.div_ceil(count).max(1))),
        _ => Err(Failure::new("the number of pieces must be positive")),
    }
}

/// The slices along a dimension, without it.
pub(super) fn unbind(tape: &mut Tape, args: &Arguments) -> Result<Value> {
    let x = args.tensor(0)?;
    let (dim, extent) = along(args, 1, 0, x)?;
    let mut found = Vec::with_capacity(extent);
    for at in 0..extent {
        let mut places = Places::of(x).keep(tape, dim, &[at])?;
        places.shape.remove(dim);
        tape.charge(x.len())?;
        found.push(Value::Tensor(places.take(tape, x)?));
    }
    Ok(Value::Tuple(found))
}
