//! Reductions: each is a function of the elements that are reduced together, with its derivatives.

use trainyard_protocol::custom_loss::Reduction;

use super::error::{Failure, Result};
use super::lanes::{Lanes, by_row};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind};
use super::value::Arguments;

/// A reduction's result and its derivatives with respect to each element.
pub(super) type Reduced = (f64, Vec<f64>);

/// The sum of all elements, or their mean.
pub(super) fn total(tape: &mut Tape, x: &GraphTensor, is_mean: bool) -> Result<GraphTensor> {
    let dims: Vec<usize> = (0..x.rank()).collect();
    over(tape, x, &dims, false, if is_mean { mean } else { sum })
}

/// Reduces floats over some dimensions.
pub(super) fn over(
    tape: &mut Tape,
    x: &GraphTensor,
    dims: &[usize],
    keepdim: bool,
    function: impl Fn(&[f64]) -> Reduced,
) -> Result<GraphTensor> {
    let lanes = Lanes::of(tape, &x.to_kind(Kind::Float)?, dims)?;
    let (values, slopes): (Vec<f64>, Vec<Vec<f64>>) = lanes.rows()?.iter().map(|row| function(row)).unzip();
    let (rows, width) = (values.len(), lanes.width);
    let output = GraphTensor::floats(values, &lanes.reduced(dims, keepdim))?;
    let scaled = move |at: usize, gradient: &[f64]| {
        let factor = gradient.first().copied().unwrap_or(0.0);
        slopes.get(at).into_iter().flatten().map(|slope| slope * factor).collect()
    };
    Ok(tape.function(&lanes.tensor, output, by_row(width, rows, 1, scaled)))
}

/// A reduction with the arguments `input, dim, keepdim, dtype`.
pub(super) fn reduce(tape: &mut Tape, op: Reduction, args: &Arguments) -> Result<GraphTensor> {
    let given = args.tensor(0)?;
    let x = match args.kind(3)? {
        Some(kind) => given.to_kind(kind)?,
        None => given.clone(),
    };
    let (dims, keepdim) = (args.dims(1, x.rank())?, args.flag(2)?);
    match op {
        Reduction::Any => logical(tape, &x, &dims, keepdim, |row| f64::from(u8::from(row.iter().any(|v| *v != 0.0)))),
        Reduction::All => logical(tape, &x, &dims, keepdim, |row| f64::from(u8::from(row.iter().all(|v| *v != 0.0)))),
        Reduction::CountNonzero => {
            let x = GraphTensor::bools(x.to_bools()?, x.shape())?;
            integers(tape, &x, &dims, keepdim, |row| row.iter().sum())
        }
        Reduction::Sum | Reduction::NanSum if x.kind() != Kind::Float => {
            integers(tape, &x, &dims, keepdim, |row| row.iter().fold(0, |sum, value| value.wrapping_add(sum)))
        }
        Reduction::Prod if x.kind() != Kind::Float => {
            integers(tape, &x, &dims, keepdim, |row| row.iter().fold(1, |product, value| value.wrapping_mul(product)))
        }
        Reduction::Mean if x.kind() != Kind::Float => {
            Err(Failure::new(format!("the mean of a {} tensor; convert it first, with .float()", x.kind().name())))
        }
        Reduction::Amax | Reduction::Amin => {
            if x.len() == 0 {
                return Err(Failure::new("an empty tensor has no largest or smallest element"));
            }
            let function = if op == Reduction::Amax { largest } else { smallest };
            over(tape, &x, &dims, keepdim, function)?.to_kind(x.kind())
        }
        Reduction::Sum => over(tape, &x, &dims, keepdim, sum),
        Reduction::Mean => over(tape, &x, &dims, keepdim, mean),
        Reduction::Prod => over(tape, &x, &dims, keepdim, product),
        Reduction::NanSum => over(tape, &x, &dims, keepdim, |row| {
            let kept = row.iter().filter(|value| !value.is_nan());
            (kept.sum(), row.iter().map(|value| f64::from(u8::from(!value.is_nan()))).collect())
        }),
        Reduction::LogSumExp => over(tape, &x, &dims, keepdim, log_sum_exp),
    }
}

fn logical(
    tape: &mut Tape,
    x: &GraphTensor,
    dims: &[usize],
    keepdim: bool,
    function: impl Fn(&[f64]) -> f64,
) -> Result<GraphTensor> {
    let x = GraphTensor::bools(x.to_bools()?, x.shape())?;
    over(tape, &x, dims, keepdim, |row| (function(row), Vec::new()))?.to_kind(Kind::Bool)
}

/// Reduces integers or truth values to integers.
fn integers(
    tape: &mut Tape,
    x: &GraphTensor,
    dims: &[usize],
    keepdim: bool,
    function: impl Fn(&[i64]) -> i64,
) -> Result<GraphTensor> {
    let lanes = Lanes::of(tape, &x.to_kind(Kind::Int)?, dims)?;
    let shape = lanes.reduced(dims, keepdim);
    let rows = super::lanes::split(lanes.tensor.to_ints()?, lanes.width, super::tensor::volume(&shape));
    GraphTensor::ints(rows.iter().map(|row| function(row)).collect(), &shape)
}

pub(super) fn sum(row: &[f64]) -> Reduced {
    (row.iter().sum(), vec![1.0; row.len()])
}

pub(super) fn mean(row: &[f64]) -> Reduced {
    let count = row.len() as f64;
    (row.iter().sum::<f64>() / count, vec![1.0 / count; row.len()])
}

fn product(row: &[f64]) -> Reduced {
    let mut slopes = vec![1.0; row.len()];
    let mut before = 1.0;
    for (slope, value) in slopes.iter_mut().zip(row) {
        *slope = before;
        before *= value;
    }
    let mut after = 1.0;
    for (slope, value) in slopes.iter_mut().zip(row).rev() {
        *slope *= after;
        after *= value;
    }
    (before, slopes)
}

fn log_sum_exp(row: &[f64]) -> Reduced {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shift = if most.is_finite() { most } else { 0.0 };
    let result = row.iter().map(|value| (value - shift).exp()).sum::<f64>().ln() + shift;
    let base = if result == f64::NEG_INFINITY { 0.0 } else { result };
    (result, row.iter().map(|value| (value - base).exp()).collect())
}

/// The gradient of an extreme value goes to all elements that have it, in equal parts.
fn extreme(row: &[f64], is_better: fn(f64, f64) -> bool) -> Reduced {
    let best = best_of(row, is_better).and_then(|at| row.get(at).copied()).unwrap_or(f64::NAN);
    let is_best = |value: &f64| *value == best || (best.is_nan() && value.is_nan());
    let count = row.iter().filter(|value| is_best(value)).count() as f64;
    (best, row.iter().map(|value| if is_best(value) { 1.0 / count } else { 0.0 }).collect())
}

pub(super) fn largest(row: &[f64]) -> Reduced {
    extreme(row, |a, b| a > b)
}

pub(super) fn smallest(row: &[f64]) -> Reduced {
    extreme(row, |a, b| a < b)
}

/// The first of the best elements; the first NaN where there is one.
pub(super) fn best_of(row: &[f64], is_better: fn(f64, f64) -> bool) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (at, &value) in row.iter().enumerate() {
        let replaces = match best {
            None => true,
            Some((_, found)) => !found.is_nan() && (value.is_nan() || is_better(value, found)),
        };
        if replaces {
            best = Some((at, value));
        }
    }
    best.map(|(at, _)| at)
}
