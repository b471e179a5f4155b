//! Elementwise functions of one tensor, with their derivatives.

use candle_core::cpu::erf::{erf_f64, erfc_f64};
use trainyard_protocol::custom_loss::Unary;

use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind};

/// `2 / sqrt(pi)`, the slope of erf at 0.
const ERF_SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// Applies a function to each element.
pub(super) fn unary(tape: &mut Tape, op: Unary, x: &GraphTensor) -> Result<GraphTensor> {
    if let Some(test) = predicate(op) {
        return GraphTensor::bools(x.to_floats()?.into_iter().map(test), x.shape());
    }
    match (x.kind(), integer(op)) {
        (Kind::Int, Some(function)) => {
            return GraphTensor::ints(x.to_ints()?.into_iter().map(function).collect(), x.shape());
        }
        (Kind::Bool, Some(_)) => {
            return Err(Failure::new("does not take a bool tensor; convert it first, with .float() or .long()"));
        }
        _ => {}
    }
    let x = x.to_kind(Kind::Float)?;
    map(tape, &x, |x| value(op, x), |x, y| derivative(op, x, y))
}

/// Applies a function to each float, whose derivative is a function of element and result.
pub(super) fn map(
    tape: &mut Tape,
    x: &GraphTensor,
    value: impl Fn(f64) -> f64,
    derivative: impl Fn(f64, f64) -> f64,
) -> Result<GraphTensor> {
    let elements = x.to_floats()?;
    let results: Vec<f64> = elements.iter().map(|&x| value(x)).collect();
    let slopes = match x.id {
        Some(_) => elements.iter().zip(&results).map(|(&x, &y)| derivative(x, y)).collect(),
        None => Vec::new(),
    };
    let output = GraphTensor::floats(results, x.shape())?;
    if x.id.is_none() {
        return Ok(output);
    }
    tape.pointwise(output, vec![(x, slopes)])
}

/// Functions from numbers to truth values.
fn predicate(op: Unary) -> Option<fn(f64) -> bool> {
    match op {
        Unary::IsNan => Some(f64::is_nan),
        Unary::IsInf => Some(f64::is_infinite),
        Unary::IsFinite => Some(f64::is_finite),
        Unary::LogicalNot => Some(|x| x == 0.0),
        _ => None,
    }
}

/// Functions that keep integers.
fn integer(op: Unary) -> Option<fn(i64) -> i64> {
    match op {
        Unary::Abs => Some(i64::wrapping_abs),
        Unary::Neg => Some(i64::wrapping_neg),
        Unary::Sign => Some(i64::signum),
        Unary::Square => Some(|x| x.wrapping_mul(x)),
        Unary::Relu => Some(|x| x.max(0)),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => Some(|x| x),
        _ => None,
    }
}

fn value(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Abs => x.abs(),
        Unary::Neg => -x,
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Square => x * x,
        Unary::Reciprocal => 1.0 / x,
        Unary::Sigmoid => sigmoid(x),
        Unary::LogSigmoid => x.min(0.0) - (-x.abs()).exp().ln_1p(),
        Unary::Tanh => x.tanh(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Atan => x.atan(),
        Unary::Erf => erf_f64(x),
        Unary::Erfc => erfc_f64(x),
        Unary::Relu if x <= 0.0 => 0.0,
        Unary::Relu => x,
        Unary::Silu => x * sigmoid(x),
        Unary::Sign if x == 0.0 || x.is_nan() => 0.0,
        Unary::Sign => x.signum(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Trunc => x.trunc(),
        Unary::IsNan => f64::from(u8::from(x.is_nan())),
        Unary::IsInf => f64::from(u8::from(x.is_infinite())),
        Unary::IsFinite => f64::from(u8::from(x.is_finite())),
        Unary::LogicalNot => f64::from(u8::from(x == 0.0)),
    }
}

/// The derivative at `x`, where the function is `y`.
fn derivative(op: Unary, x: f64, y: f64) -> f64 {
    match op {
        // As torch has it, 0 at 0.
        Unary::Abs => value(Unary::Sign, x),
        Unary::Neg => -1.0,
        Unary::Exp => y,
        Unary::Exp2 => y * std::f64::consts::LN_2,
        Unary::Expm1 => y + 1.0,
        Unary::Log => 1.0 / x,
        Unary::Log2 => 1.0 / (x * std::f64::consts::LN_2),
        Unary::Log10 => 1.0 / (x * std::f64::consts::LN_10),
        Unary::Log1p => 1.0 / (x + 1.0),
        Unary::Sqrt => 0.5 / y,
        Unary::Rsqrt => -0.5 * y * y * y,
        Unary::Square => 2.0 * x,
        Unary::Reciprocal => -y * y,
        Unary::Sigmoid => y * (1.0 - y),
        Unary::LogSigmoid => sigmoid(-x),
        Unary::Tanh => 1.0 - y * y,
        Unary::Sin => x.cos(),
        Unary::Cos => -x.sin(),
        Unary::Tan => 1.0 + y * y,
        Unary::Sinh => x.cosh(),
        Unary::Cosh => x.sinh(),
        Unary::Atan => 1.0 / (1.0 + x * x),
        Unary::Erf => ERF_SLOPE * (-x * x).exp(),
        Unary::Erfc => -ERF_SLOPE * (-x * x).exp(),
        Unary::Relu => f64::from(u8::from(x > 0.0)),
        Unary::Silu => sigmoid(x) * (1.0 + x * sigmoid(-x)),
        Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => 0.0,
        Unary::IsNan | Unary::IsInf | Unary::IsFinite | Unary::LogicalNot => 0.0,
    }
}

/// `1 / (1 + exp(-x))`, without overflow.
pub(super) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}
