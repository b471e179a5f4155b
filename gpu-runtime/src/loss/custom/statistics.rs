//! Extremes with their places, variances and norms.

use trainyard_protocol::custom_loss::Binary;

use super::binary::binary;
use super::error::{Failure, Result};
use super::lanes::{Lanes, by_row};
use super::reduce::{best_of, largest, over, smallest};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind};
use super::value::{Arguments, Value};

/// The extreme that an operation searches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Largest,
    Smallest,
}

impl Extreme {
    fn is_better(self) -> fn(f64, f64) -> bool {
        match self {
            Self::Largest => |a, b| a > b,
            Self::Smallest => |a, b| a < b,
        }
    }
}

/// `max` and `min`: of all elements, along a dimension with the places, or of two tensors.
pub(super) fn extreme(tape: &mut Tape, which: Extreme, args: &Arguments) -> Result<Value> {
    let x = args.tensor(0)?;
    if let Value::Tensor(other) = args.at(1)
        && (other.kind() == Kind::Float || other.rank() > 0)
    {
        let op = if which == Extreme::Largest { Binary::Maximum } else { Binary::Minimum };
        return binary(tape, op, args).map(Value::Tensor);
    }
    if x.len() == 0 {
        return Err(Failure::new("an empty tensor has no largest or smallest element"));
    }
    if !args.is_given(1) {
        let dims: Vec<usize> = (0..x.rank()).collect();
        let function = if which == Extreme::Largest { largest } else { smallest };
        return Ok(Value::Tensor(over(tape, x, &dims, false, function)?.to_kind(x.kind())?));
    }
    let dim = args.dim(1, x.rank())?;
    let dims: Vec<usize> = Some(dim).into_iter().filter(|dim| *dim < x.rank()).collect();
    let (places, _) = places(tape, which, x, &dims, args.flag(2)?)?;
    let is_better = which.is_better();
    let values = over(tape, x, &dims, args.flag(2)?, |row| {
        let best = best_of(row, is_better).unwrap_or(0);
        let slopes = (0..row.len()).map(|at| f64::from(u8::from(at == best))).collect();
        (row.get(best).copied().unwrap_or(f64::NAN), slopes)
    })?;
    Ok(Value::Tuple(vec![Value::Tensor(values.to_kind(x.kind())?), Value::Tensor(places)]))
}

fn places(
    tape: &mut Tape,
    which: Extreme,
    x: &GraphTensor,
    dims: &[usize],
    keepdim: bool,
) -> Result<(GraphTensor, usize)> {
    let constant = GraphTensor::constant(x.to_kind(Kind::Float)?.data);
    let lanes = Lanes::of(tape, &constant, dims)?;
    let best = lanes.rows()?.iter().map(|row| best_of(row, which.is_better()).unwrap_or(0) as i64).collect();
    Ok((GraphTensor::ints(best, &lanes.reduced(dims, keepdim))?, lanes.width))
}

/// `argmax` and `argmin`; without a dimension, of the flattened tensor.
pub(super) fn place(tape: &mut Tape, which: Extreme, args: &Arguments) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    if x.len() == 0 {
        return Err(Failure::new("an empty tensor has no largest or smallest element"));
    }
    let dims = if args.is_given(1) { vec![args.dim(1, x.rank())?] } else { (0..x.rank()).collect() };
    let dims: Vec<usize> = dims.into_iter().filter(|dim| *dim < x.rank()).collect();
    Ok(places(tape, which, x, &dims, args.flag(2)?)?.0)
}

/// `var`, and its root: arguments `input, dim, unbiased, keepdim, correction`.
pub(super) fn spread(tape: &mut Tape, args: &Arguments, is_root: bool) -> Result<GraphTensor> {
    let x = args.tensor(0)?;
    if x.kind() != Kind::Float {
        return Err(Failure::new("needs a tensor of floats"));
    }
    // `var(x, False)` is `var(x, unbiased=False)`.
    let (dims, mut unbiased) = match args.at(1) {
        Value::Bool(flag) => ((0..x.rank()).collect(), *flag),
        _ => (args.dims(1, x.rank())?, true),
    };
    if args.is_given(2) {
        unbiased = args.flag(2)?;
    }
    let correction = args.number_or(4, f64::from(u8::from(unbiased)))?;
    over(tape, x, &dims, args.flag(3)?, |row| {
        let (count, mean) = (row.len() as f64, row.iter().sum::<f64>() / row.len() as f64);
        let degrees = (count - correction).max(0.0);
        let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / degrees;
        let slope = |value: &f64| 2.0 * (value - mean) / degrees;
        if !is_root {
            return (variance, row.iter().map(slope).collect());
        }
        let root = variance.sqrt();
        // As torch has it: no gradient where all elements are equal.
        let slopes = row.iter().map(|value| if root == 0.0 { 0.0 } else { slope(value) / (2.0 * root) });
        (root, slopes.collect())
    })
}

/// Vector norms of order 1, 2 and infinity: arguments `input, p, dim, keepdim`.
pub(super) fn norm(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let order = match args.at(1) {
        Value::Text(text) if text == "fro" => 2.0,
        Value::Text(text) => return Err(Failure::new(format!("p must be 1, 2, inf or \"fro\", not {text:?}"))),
        _ => args.number_or(1, 2.0)?,
    };
    let x = args.floats(0)?;
    let (dims, keepdim) = (args.dims(2, x.rank())?, args.flag(3)?);
    let sign = |value: f64| if value == 0.0 { 0.0 } else { value.signum() };
    if order == 2.0 {
        over(tape, &x, &dims, keepdim, |row| {
            let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
            let slopes = row.iter().map(|value| if length == 0.0 { 0.0 } else { value / length });
            (length, slopes.collect())
        })
    } else if order == 1.0 {
        over(tape, &x, &dims, keepdim, |row| {
            (row.iter().map(|value| value.abs()).sum(), row.iter().map(|&value| sign(value)).collect())
        })
    } else if order == f64::INFINITY {
        over(tape, &x, &dims, keepdim, |row| {
            let sizes: Vec<f64> = row.iter().map(|value| value.abs()).collect();
            let (most, shares) = largest(&sizes);
            (most, shares.iter().zip(row).map(|(share, &value)| share * sign(value)).collect())
        })
    } else {
        Err(Failure::new(format!("p must be 1, 2 or inf, not {order}")))
    }
}

/// `softmax` and `log_softmax` along a dimension: arguments `input, dim`.
pub(super) fn softmax(tape: &mut Tape, x: &GraphTensor, dim: usize, is_log: bool) -> Result<GraphTensor> {
    let dims: Vec<usize> = Some(dim).into_iter().filter(|dim| *dim < x.rank()).collect();
    let lanes = Lanes::of(tape, &x.to_kind(Kind::Float)?, &dims)?;
    let mut shares = Vec::new();
    let mut results = Vec::new();
    for row in lanes.rows()? {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|value| (value - most).exp()).sum();
        let logs: Vec<f64> = row.iter().map(|value| value - most - sum.ln()).collect();
        let row_shares: Vec<f64> = row.iter().map(|value| (value - most).exp() / sum).collect();
        results.extend_from_slice(if is_log { &logs } else { &row_shares });
        shares.push(row_shares);
    }
    let (rows, width) = (shares.len(), lanes.width);
    let output = GraphTensor::floats(results, &[rows, width])?;
    let backward = move |at: usize, gradient: &[f64]| {
        let Some(shares) = shares.get(at) else { return Vec::new() };
        let pairs = gradient.iter().zip(shares);
        if is_log {
            let sum: f64 = gradient.iter().sum();
            return pairs.map(|(gradient, share)| gradient - share * sum).collect();
        }
        let sum: f64 = pairs.clone().map(|(gradient, share)| gradient * share).sum();
        pairs.map(|(gradient, share)| share * (gradient - sum)).collect()
    };
    let output = tape.function(&lanes.tensor, output, by_row(width, rows, width, backward));
    lanes.restored(tape, &output)
}
