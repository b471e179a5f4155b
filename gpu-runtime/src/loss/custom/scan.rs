//! Running sums, products and log-sum-exps along a dimension, and differences of neighbours.

use trainyard_protocol::custom_loss::Cumulative;

use super::binary::log_add_exp;
use super::error::{Failure, Result};
use super::lanes::{Lanes, by_row};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind};

pub(super) fn scan(tape: &mut Tape, op: Cumulative, x: &GraphTensor, dim: usize) -> Result<GraphTensor> {
    let dims: Vec<usize> = Some(dim).into_iter().filter(|dim| *dim < x.rank()).collect();
    if x.kind() != Kind::Float {
        return of_integers(tape, op, x, &dims);
    }
    let lanes = Lanes::of(tape, x, &dims)?;
    let inputs = lanes.rows()?;
    let outputs: Vec<Vec<f64>> = inputs.iter().map(|row| running(op, row)).collect();
    let (rows, width) = (inputs.len(), lanes.width);
    let output = GraphTensor::floats(outputs.iter().flatten().copied().collect(), &[rows, width])?;
    let backward = move |at: usize, gradient: &[f64]| match (inputs.get(at), outputs.get(at)) {
        (Some(x), Some(y)) => back(op, x, y, gradient),
        _ => Vec::new(),
    };
    let output = tape.function(&lanes.tensor, output, by_row(width, rows, width, backward));
    lanes.restored(tape, &output)
}

fn of_integers(tape: &mut Tape, op: Cumulative, x: &GraphTensor, dims: &[usize]) -> Result<GraphTensor> {
    let step: fn(i64, i64) -> i64 = match op {
        Cumulative::Sum => i64::wrapping_add,
        Cumulative::Prod => i64::wrapping_mul,
        Cumulative::LogSumExp => return Err(Failure::new("needs a tensor of floats")),
    };
    let start = i64::from(op == Cumulative::Prod);
    let lanes = Lanes::of(tape, &x.to_kind(Kind::Int)?, dims)?;
    let values = lanes.tensor.to_ints()?;
    let running = values.chunks(lanes.width.max(1)).flat_map(|row| {
        row.iter().scan(start, |state, &value| {
            *state = step(*state, value);
            Some(*state)
        })
    });
    let output = GraphTensor::ints(running.collect(), lanes.tensor.shape())?;
    lanes.restored(tape, &output)
}

fn running(op: Cumulative, row: &[f64]) -> Vec<f64> {
    let (start, step): (f64, fn(f64, f64) -> f64) = match op {
        Cumulative::Sum => (0.0, |state, value| state + value),
        Cumulative::Prod => (1.0, |state, value| state * value),
        Cumulative::LogSumExp => (f64::NEG_INFINITY, log_add_exp),
    };
    let mut state = start;
    let next = |value: &f64| {
        state = step(state, *value);
        state
    };
    row.iter().map(next).collect()
}

/// The gradient with respect to `x`, from the last element to the first. `rest` is the part of the later outputs, divided
/// by what they have in common with the current one.
fn back(op: Cumulative, x: &[f64], y: &[f64], gradient: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; x.len()];
    let mut rest = 0.0;
    let mut next: Option<(f64, f64)> = None;
    for ((slot, (&x, &y)), &gradient) in found.iter_mut().zip(x.iter().zip(y)).zip(gradient).rev() {
        let factor = match (op, next) {
            (_, None) | (Cumulative::Sum, _) => 1.0,
            (Cumulative::Prod, Some((next_x, _))) => next_x,
            (Cumulative::LogSumExp, Some((_, next_y))) if y == next_y => 1.0,
            (Cumulative::LogSumExp, Some((_, next_y))) => (y - next_y).exp(),
        };
        rest = gradient + factor * rest;
        *slot = match op {
            Cumulative::Sum | Cumulative::Prod => rest,
            Cumulative::LogSumExp if x == y => rest,
            Cumulative::LogSumExp => (x - y).exp() * rest,
        };
        next = Some((x, y));
    }
    if op == Cumulative::Prod {
        let mut before = 1.0;
        for (slot, x) in found.iter_mut().zip(x) {
            *slot *= before;
            before *= x;
        }
    }
    found
}
