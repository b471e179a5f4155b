//! Functions that choose between elements: where, clamp, masks. And losses of differences.

use trainyard_protocol::custom_loss::{Binary, Regression};

use super::binary::{Pair, binary, mask_in};
use super::error::{Failure, Result};
use super::reduce;
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind, broadcast, volume};
use super::unary::map;
use super::value::{Arguments, Value};

/// `where(condition, a, b)`: the gradient goes where the element came from.
pub(super) fn choose(tape: &mut Tape, condition: &GraphTensor, a: &Value, b: &Value) -> Result<GraphTensor> {
    let (kind_a, kind_b) = (a.to_tensor()?.kind(), b.to_tensor()?.kind());
    let kind = kind_a.max(kind_b);
    let narrow = |value: &Value| match value {
        Value::Float(number) => GraphTensor::floats(vec![f64::from(*number as f32)], &[]),
        value => value.to_tensor()?.to_kind(kind),
    };
    let (a, b) = (narrow(a)?, narrow(b)?);
    let shape = broadcast(&broadcast(condition.shape(), a.shape())?, b.shape())?;
    tape.reserve(volume(&shape))?;
    let mask = GraphTensor::bools(mask_in(condition, &shape)?, &shape)?.data;
    tape.traced(&[&a, &b], |operands| match operands {
        [a, b] => {
            let (a, b) = (a.broadcast_as(shape.as_slice())?, b.broadcast_as(shape.as_slice())?);
            mask.where_cond(&a.contiguous()?, &b.contiguous()?)
        }
        _ => candle_core::bail!("where takes two tensors"),
    })
}

/// Bounds that are numbers or tensors; the gradient of an element at a bound is the element's.
pub(super) fn clamp(tape: &mut Tape, x: &GraphTensor, low: &Value, high: &Value) -> Result<GraphTensor> {
    let given = |bound: &Value| !matches!(bound, Value::Absent | Value::None);
    if !given(low) && !given(high) {
        return Err(Failure::new("min and max are both missing"));
    }
    let mut clamped = x.clone();
    if given(low) {
        clamped = bound(tape, &clamped, low, |x, low| x < low)?;
    }
    if given(high) {
        clamped = bound(tape, &clamped, high, |x, high| x > high)?;
    }
    Ok(clamped)
}

fn bound(tape: &mut Tape, x: &GraphTensor, limit: &Value, beyond: fn(f64, f64) -> bool) -> Result<GraphTensor> {
    let x = Value::Tensor(x.clone());
    let pair = Pair::of(tape, &x, limit)?;
    let (elements, limits) = pair.floats()?;
    let outside = elements.into_iter().zip(limits).map(|(x, limit)| beyond(x, limit));
    let outside = GraphTensor::bools(outside, &pair.shape)?;
    choose(tape, &outside, limit, &x)
}

pub(super) fn masked_fill(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    let value = args.at(2);
    if value.to_tensor()?.rank() > 0 {
        return Err(Failure::new("value must be a number or a tensor of no dimensions"));
    }
    let value = match (value, x.kind()) {
        (Value::Float(_), Kind::Int | Kind::Bool) => {
            return Err(Failure::new("a float can't fill a tensor of integers"));
        }
        (Value::Tensor(_), Kind::Float) => value.clone(),
        (Value::Tensor(tensor), kind) => Value::Tensor(tensor.to_kind(kind)?),
        _ => value.clone(),
    };
    choose(tape, args.tensor(1)?, &value, &Value::Tensor(x.clone()))
}

/// `a + weight (b - a)`.
pub(super) fn lerp(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let mut apply = |op, a: Value, b: Value| binary(tape, op, &Arguments::new(vec![a, b])).map(Value::Tensor);
    let (start, end, weight) = (args.at(0).clone(), args.at(1).clone(), args.at(2).clone());
    let difference = apply(Binary::Sub, end, start.clone())?;
    let part = apply(Binary::Mul, difference, weight)?;
    binary(tape, Binary::Add, &Arguments::new(vec![start, part]))
}

/// A function of the difference of two tensors, reduced to its mean unless told otherwise.
pub(super) fn regression(tape: &mut Tape, op: Regression, args: &Arguments) -> Result<GraphTensor> {
    let bend = args.number_or(3, 1.0)?;
    if matches!(op, Regression::Huber | Regression::SmoothL1)
        && !(bend > 0.0 || (bend == 0.0 && op == Regression::SmoothL1))
    {
        return Err(Failure::new(format!("expected a positive width, found {bend}")));
    }
    let pair = Arguments::new(vec![Value::Tensor(args.floats(0)?), Value::Tensor(args.floats(1)?)]);
    let difference = binary(tape, Binary::Sub, &pair)?;
    let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    let terms = match op {
        Regression::Mse => map(tape, &difference, |x| x * x, |x, _| 2.0 * x),
        Regression::L1 => map(tape, &difference, f64::abs, |x, _| sign(x)),
        Regression::Huber => {
            let value = |x: f64| if x.abs() <= bend { 0.5 * x * x } else { bend * (x.abs() - 0.5 * bend) };
            map(tape, &difference, value, |x, _| if x.abs() <= bend { x } else { bend * sign(x) })
        }
        Regression::SmoothL1 => {
            let value = |x: f64| if x.abs() < bend { 0.5 * x * x / bend } else { x.abs() - 0.5 * bend };
            map(tape, &difference, value, |x, _| if x.abs() < bend { x / bend } else { sign(x) })
        }
    }?;
    match args.text_or(2, "mean")? {
        "none" => Ok(terms),
        "sum" => reduce::total(tape, &terms, false),
        "mean" => reduce::total(tape, &terms, true),
        other => Err(Failure::new(format!("reduction must be \"none\", \"mean\" or \"sum\", not {other:?}"))),
    }
}
