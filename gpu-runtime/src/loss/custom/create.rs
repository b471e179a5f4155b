//! New tensors, and tensors in another kind.

use trainyard_protocol::custom_loss::Op;

use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind, dense, volume};
use super::value::{Arguments, Value};

/// A tensor of one number.
fn filled(tape: &Tape, value: f64, shape: &[usize], kind: Kind) -> Result<GraphTensor> {
    let count = volume(shape);
    tape.reserve(count)?;
    match kind {
        Kind::Float => GraphTensor::floats(vec![value; count], shape),
        Kind::Int => GraphTensor::ints(vec![value as i64; count], shape),
        Kind::Bool => GraphTensor::bools(vec![value != 0.0; count], shape),
    }
}

/// The kind of a number.
fn kind_of(value: &Value) -> Result<Kind> {
    Ok(value.to_tensor()?.kind())
}

/// `zeros`, `ones`, `full` and their forms that take shape or kind of a tensor.
pub(super) fn new(tape: &Tape, op: Op, args: &Arguments) -> Result<GraphTensor> {
    let (value, shape, kind) = match op {
        Op::Zeros => (0.0, args.shape(0)?, args.kind(1)?.unwrap_or(Kind::Float)),
        Op::Ones => (1.0, args.shape(0)?, args.kind(1)?.unwrap_or(Kind::Float)),
        Op::Full => (args.number(1)?, args.shape(0)?, args.kind(2)?.map_or_else(|| kind_of(args.at(1)), Ok)?),
        _ => {
            let like = args.tensor(0)?;
            let own = like.shape().to_vec();
            match op {
                Op::ZerosLike => (0.0, own, args.kind(1)?.unwrap_or(like.kind())),
                Op::OnesLike => (1.0, own, args.kind(1)?.unwrap_or(like.kind())),
                Op::FullLike => (args.number(1)?, own, args.kind(2)?.unwrap_or(like.kind())),
                Op::NewZeros => (0.0, args.shape(1)?, args.kind(2)?.unwrap_or(like.kind())),
                Op::NewOnes => (1.0, args.shape(1)?, args.kind(2)?.unwrap_or(like.kind())),
                _ => (args.number(2)?, args.shape(1)?, args.kind(3)?.unwrap_or(like.kind())),
            }
        }
    };
    // As torch does it: a number takes the precision of the tensor.
    filled(tape, if kind == Kind::Float { f64::from(value as f32) } else { value }, &shape, kind)
}

/// `arange(end)`, `arange(start, end, step)`.
pub(super) fn arange(tape: &Tape, args: &Arguments) -> Result<GraphTensor> {
    let (start, end) = if args.is_given(1) { (0, 1) } else { (3, 0) };
    let step = args.number_or(2, 1.0)?;
    let (first, last) = (if start == 0 { args.number(0)? } else { 0.0 }, args.number(end)?);
    if step == 0.0 || !step.is_finite() || !first.is_finite() || !last.is_finite() {
        return Err(Failure::new("start, end and step must be finite, and step not 0"));
    }
    let count = ((last - first) / step).ceil().max(0.0) as usize;
    tape.reserve(count)?;
    let is_float = [0, 1, 2].into_iter().any(|at| matches!(args.at(at), Value::Float(_)));
    let kind = args.kind(3)?.unwrap_or(if is_float { Kind::Float } else { Kind::Int });
    GraphTensor::floats((0..count).map(|at| first + at as f64 * step).collect(), &[count])?.to_kind(kind)
}

/// A tensor of a number, or of nested lists of numbers.
pub(super) fn of_data(args: &Arguments) -> Result<GraphTensor> {
    let (mut numbers, mut kind) = (Vec::new(), Kind::Bool);
    let shape = match args.at(0) {
        Value::Tensor(tensor) => {
            let kind = args.kind(1)?.unwrap_or(tensor.kind());
            return GraphTensor::constant(tensor.data.clone()).to_kind(kind);
        }
        data => collect(data, &mut numbers, &mut kind)?,
    };
    let tensor = GraphTensor::constant(dense(numbers, &shape)?);
    tensor.to_kind(args.kind(1)?.unwrap_or(kind))
}

fn collect(value: &Value, numbers: &mut Vec<f64>, kind: &mut Kind) -> Result<Vec<usize>> {
    let (Value::List(items) | Value::Tuple(items)) = value else {
        let scalar = value.to_tensor()?;
        *kind = scalar.kind().max(*kind);
        numbers.push(match value {
            Value::Float(number) => f64::from(*number as f32),
            _ => scalar.item()?,
        });
        return Ok(Vec::new());
    };
    let mut inner = None;
    for item in items {
        let shape = collect(item, numbers, kind)?;
        if inner.get_or_insert_with(|| shape.clone()) != &shape {
            return Err(Failure::new("the lists of the data differ in length"));
        }
    }
    Ok([vec![items.len()], inner.unwrap_or_default()].concat())
}

/// `x.to(dtype)`, `x.to(device, dtype)`, `x.to(other)`.
pub(super) fn to(args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    match (args.at(1), args.at(2)) {
        (Value::Tensor(other), _) => x.to_kind(other.kind()),
        (Value::DType(kind), _) | (_, Value::DType(kind)) => x.to_kind(*kind),
        (Value::Place | Value::Text(_) | Value::Absent | Value::None, _) => Ok(x.clone()),
        (other, _) => Err(Failure::new(format!("{} is not a dtype", other.describe()))),
    }
}
