//! Elementwise functions with settings.

use candle_core::cpu::erf::erf_f64;

use super::error::{Failure, Result};
use super::tape::Tape;
use super::tensor::{GraphTensor, Kind};
use super::unary::{map, sigmoid};
use super::value::Arguments;

pub(super) fn leaky_relu(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let slope = args.number_or(1, 0.01)?;
    map(tape, &args.floats(0)?, |x| if x > 0.0 { x } else { x * slope }, |x, _| if x > 0.0 { 1.0 } else { slope })
}

pub(super) fn elu(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let alpha = args.number_or(1, 1.0)?;
    let value = |x: f64| if x > 0.0 { x } else { alpha * x.exp_m1() };
    map(tape, &args.floats(0)?, value, |x, y| if x > 0.0 { 1.0 } else { y + alpha })
}

/// `log(1 + exp(beta x)) / beta`, linear where `beta x` is above the threshold.
pub(super) fn softplus(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let (beta, threshold) = (args.number_or(1, 1.0)?, args.number_or(2, 20.0)?);
    let value = |x: f64| if beta * x > threshold { x } else { (beta * x).exp().ln_1p() / beta };
    map(tape, &args.floats(0)?, value, |x, _| if beta * x > threshold { 1.0 } else { sigmoid(beta * x) })
}

pub(super) fn gelu(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
    let x = args.floats(0)?;
    match args.text_or(1, "none")? {
        "none" => {
            let cdf = |x: f64| 0.5 * (1.0 + erf_f64(x * FRAC_1_SQRT_2));
            let density = |x: f64| 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (-0.5 * x * x).exp();
            map(tape, &x, |x| x * cdf(x), |x, _| cdf(x) + x * density(x))
        }
        "tanh" => {
            let scale = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
            let inner = |x: f64| (scale * (x + 0.044_715 * x * x * x)).tanh();
            let slope = |x: f64| scale * (1.0 + 3.0 * 0.044_715 * x * x);
            let derivative = |x: f64, _| {
                let t = inner(x);
                0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope(x)
            };
            map(tape, &x, |x| 0.5 * x * (1.0 + inner(x)), derivative)
        }
        other => Err(Failure::new(format!("approximate must be \"none\" or \"tanh\", not {other:?}"))),
    }
}

/// Replaces NaN and infinities, which have no gradient then.
pub(super) fn nan_to_num(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let most = f64::from(f32::MAX);
    let (nan, high, low) = (args.number_or(1, 0.0)?, args.number_or(2, most)?, args.number_or(3, -most)?);
    let value = |x: f64| match x {
        x if x.is_nan() => nan,
        f64::INFINITY => high,
        f64::NEG_INFINITY => low,
        x => x,
    };
    let x = args.tensor(0)?;
    if x.kind() != Kind::Float {
        return Ok(x.clone());
    }
    map(tape, x, value, |x, _| f64::from(u8::from(x.is_finite())))
}

/// Clamps to `[low, high]`, without a gradient at and beyond the bounds.
pub(super) fn hardtanh(tape: &mut Tape, args: &Arguments) -> Result<GraphTensor> {
    let (low, high) = (args.number_or(1, -1.0)?, args.number_or(2, 1.0)?);
    let value = |x: f64| {
        if x < low {
            low
        } else if x > high {
            high
        } else {
            x
        }
    };
    map(tape, &args.floats(0)?, value, |x, _| f64::from(u8::from(x > low && x < high)))
}
