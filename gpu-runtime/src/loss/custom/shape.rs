//! Operations that change the shape of a tensor, or put tensors together.

use candle_core::Tensor;

use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind, broadcast, volume};
use super::value::{Arguments, Value, dimension};

/// Records an operation of one tensor that candle differentiates.
fn moved(
    tape: &mut Tape,
    x: &GraphTensor,
    apply: impl FnOnce(&Tensor) -> candle_core::Result<Tensor>,
) -> Result<GraphTensor> {
    tape.traced(&[x], |x| match x {
        [x] => apply(x),
        _ => candle_core::bail!("expected one tensor"),
    })
}

/// Reshapes to a shape in which one extent may be -1.
pub(super) fn reshape(tape: &mut Tape, x: &GraphTensor, wanted: &[i64]) -> Result<GraphTensor> {
    let count = x.len();
    let refused = || Failure::new(format!("cannot reshape a tensor of {count} elements to {wanted:?}"));
    let mut known = wanted.iter().filter(|extent| **extent != -1);
    let known = known.try_fold(1_i64, |product, extent| product.checked_mul(*extent)).filter(|product| *product >= 0);
    let known = known.and_then(|known| usize::try_from(known).ok()).ok_or_else(refused)?;
    if wanted.iter().filter(|extent| **extent == -1).count() > 1 {
        return Err(refused());
    }
    let open = count.checked_div(known).unwrap_or(0);
    let extent = |extent: &i64| if *extent == -1 { Ok(open) } else { usize::try_from(*extent).map_err(|_| refused()) };
    let shape = wanted.iter().map(extent).collect::<Result<Vec<_>>>()?;
    if volume(&shape) != count || (known == 0 && wanted.contains(&-1)) {
        return Err(refused());
    }
    to_shape(tape, x, &shape)
}

/// Reshapes to a shape with the same number of elements.
pub(super) fn to_shape(tape: &mut Tape, x: &GraphTensor, shape: &[usize]) -> Result<GraphTensor> {
    if volume(shape) != x.len() {
        return Err(Failure::new(format!("cannot reshape a tensor of shape {:?} to {shape:?}", x.shape())));
    }
    moved(tape, x, |x| x.reshape(shape))
}

/// Joins the dimensions from one to another.
pub(super) fn flatten(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    let (start, end) = (args.dim_or(1, 0, x.rank())?, args.dim_or(2, -1, x.rank())?);
    if start > end {
        return Err(Failure::new(format!("start_dim {start} is greater than end_dim {end}")));
    }
    let shape = x.shape();
    let part = |range: std::ops::Range<usize>| shape.get(range).unwrap_or_default();
    let joined = volume(part(start..(end + 1).min(shape.len())));
    let wanted = [part(0..start.min(shape.len())), &[joined], part((end + 1).min(shape.len())..shape.len())].concat();
    to_shape(tape, x, &wanted)
}

/// Removes dimensions of extent 1: all of them, or those named as far as they have it.
pub(super) fn squeeze(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    let dims = args.dims(1, x.rank())?;
    let kept = x.shape().iter().enumerate().filter(|(dim, extent)| **extent != 1 || !dims.contains(dim));
    let shape: Vec<usize> = kept.map(|(_, extent)| *extent).collect();
    to_shape(tape, x, &shape)
}

pub(super) fn unsqueeze(tape: &mut Tape, x: &GraphTensor, dim: i64) -> Result<GraphTensor> {
    let at = dimension(dim, x.rank() + 1)?;
    let mut shape = x.shape().to_vec();
    shape.insert(at.min(shape.len()), 1);
    to_shape(tape, x, &shape)
}

/// Reorders the dimensions of a tensor.
pub(super) fn permute(tape: &mut Tape, x: &GraphTensor, order: &[usize]) -> Result<GraphTensor> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..x.rank()) {
        return Err(Failure::new(format!("{order:?} is not a permutation of the {} dimensions", x.rank())));
    }
    if sorted == order {
        return Ok(x.clone());
    }
    moved(tape, x, |x| x.permute(order)?.contiguous())
}

pub(super) fn transpose(tape: &mut Tape, x: &GraphTensor, a: usize, b: usize) -> Result<GraphTensor> {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    if a < order.len() && b < order.len() {
        order.swap(a, b);
    }
    permute(tape, x, &order)
}

/// Broadcasts to a shape in which -1 keeps the extent.
pub(super) fn expand(tape: &mut Tape, x: &GraphTensor, wanted: &[i64]) -> Result<GraphTensor> {
    let refused = || Failure::new(format!("a tensor of shape {:?} does not expand to {wanted:?}", x.shape()));
    let added = wanted.len().checked_sub(x.rank()).ok_or_else(refused)?;
    let mut shape = Vec::with_capacity(wanted.len());
    for (at, &extent) in wanted.iter().enumerate() {
        let own = at.checked_sub(added).and_then(|at| x.shape().get(at));
        shape.push(match (extent, own) {
            (-1, Some(&own)) => own,
            (extent, _) => usize::try_from(extent).map_err(|_| refused())?,
        });
    }
    expand_to(tape, x, &shape)
}

/// Broadcasts to a shape.
pub(super) fn expand_to(tape: &mut Tape, x: &GraphTensor, shape: &[usize]) -> Result<GraphTensor> {
    if broadcast(x.shape(), shape).ok().as_deref() != Some(shape) {
        return Err(Failure::new(format!("a tensor of shape {:?} does not expand to {shape:?}", x.shape())));
    }
    tape.reserve(volume(shape))?;
    moved(tape, x, |x| x.broadcast_as(shape)?.contiguous())
}

/// The tensors of a list, in one kind.
fn tensors(args: &Arguments) -> Result<Vec<GraphTensor>> {
    let given = args.list(0)?.iter().map(|value| match value {
        Value::Tensor(tensor) => Ok(tensor.clone()),
        other => Err(Failure::new(format!("expected a list of tensors, found {} in it", other.describe()))),
    });
    let given = given.collect::<Result<Vec<_>>>()?;
    let kind = given.iter().map(GraphTensor::kind).max();
    let kind = kind.ok_or_else(|| Failure::new("expected a list of at least one tensor"))?;
    given.iter().map(|tensor| tensor.to_kind(kind)).collect()
}

pub(super) fn cat(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let parts = tensors(args)?;
    // As torch has it, a vector of no elements goes with anything.
    let is_nothing = |part: &&GraphTensor| part.shape() == [0];
    let kept: Vec<&GraphTensor> = parts.iter().filter(|part| !is_nothing(part)).collect();
    let Some(first) = kept.first() else {
        return Ok(parts.first().cloned().unwrap_or(GraphTensor::floats(vec![], &[0])?));
    };
    if first.rank() == 0 {
        return Err(Failure::new("tensors without dimensions can't be concatenated; stack them"));
    }
    let dim = args.dim_or(1, 0, first.rank())?;
    let others = |part: &GraphTensor| -> Vec<usize> {
        part.shape().iter().enumerate().filter(|(at, _)| *at != dim).map(|(_, extent)| *extent).collect()
    };
    if let Some(odd) = kept.iter().find(|part| part.rank() != first.rank() || others(part) != others(first)) {
        return Err(Failure::new(format!(
            "shapes {:?} and {:?} differ beyond dimension {dim}",
            first.shape(),
            odd.shape()
        )));
    }
    joined(tape, &kept, dim)
}

fn joined(tape: &mut Tape, parts: &[&GraphTensor], dim: usize) -> Result<GraphTensor> {
    tape.reserve(parts.iter().fold(0, |sum, part| sum.saturating_add(part.len())))?;
    tape.traced(parts, |parts| Tensor::cat(parts, dim))
}

pub(super) fn stack(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let parts = tensors(args)?;
    let shape = parts.first().map(|part| part.shape().to_vec()).unwrap_or_default();
    if let Some(odd) = parts.iter().find(|part| part.shape() != shape) {
        return Err(Failure::new(format!("shapes {shape:?} and {:?} differ", odd.shape())));
    }
    let dim = dimension(args.int_or(1, 0)?, shape.len() + 1)?;
    let mut widened = Vec::with_capacity(parts.len());
    for part in &parts {
        widened.push(unsqueeze(tape, part, i64::try_from(dim).unwrap_or(0))?);
    }
    joined(tape, &widened.iter().collect::<Vec<_>>(), dim)
}

/// The product of matrices; a vector on the left is a row, one on the right a column.
pub(super) fn matmul(tape: &mut Tape, a: &GraphTensor, b: &GraphTensor) -> Result<GraphTensor> {
    if a.kind() != Kind::Float || b.kind() != Kind::Float {
        return Err(Failure::new("needs tensors of floats"));
    }
    let refused = || Failure::new(format!("shapes {:?} and {:?} have no matrix product", a.shape(), b.shape()));
    let (rows, inner) = match *a.shape() {
        [inner] => (1, inner),
        [rows, inner] => (rows, inner),
        _ => return Err(refused()),
    };
    let (depth, columns) = match *b.shape() {
        [depth] => (depth, 1),
        [depth, columns] => (depth, columns),
        _ => return Err(refused()),
    };
    if inner != depth {
        return Err(refused());
    }
    let mut shape = Vec::new();
    shape.extend((a.rank() == 2).then_some(rows));
    shape.extend((b.rank() == 2).then_some(columns));
    // Summed in the order of the inner dimension, whatever the sizes.
    let work = volume(&[rows, columns, inner]);
    tape.reserve(work)?;
    tape.charge(work)?;
    let left = to_shape(tape, a, &[rows, 1, inner])?;
    let transposed = to_shape(tape, b, &[inner, columns])?;
    let transposed = transpose(tape, &transposed, 0, 1)?;
    let products = Arguments::new(vec![Value::Tensor(left), Value::Tensor(transposed)]);
    let products = super::binary::binary(tape, trainyard_protocol::custom_loss::Binary::Mul, &products)?;
    let sums = super::reduce::over(tape, &products, &[2], false, super::reduce::sum)?;
    to_shape(tape, &sums, &shape)
}
