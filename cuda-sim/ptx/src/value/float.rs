//! f32 arithmetic.
//!
//! Approximate instructions return the correctly rounded f32 of the f64 result, which lies within every error that NVIDIA
//! documents for them. A kernel whose result depends on their last bits will differ on a GPU.

use crate::row::{Binary, Ternary, Unary, row};
use crate::value::rounding::{flush, fma_down, fma_up, fma_zero, saturate};

/// Mode that the suffixes of a float instruction select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mode<'a> {
    /// `rn`, `rz`, `rm`, `rp`, `approx`, `full`, or nothing.
    pub(crate) rounding: &'a str,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
}

/// The plain function, and those that flush and clamp.
macro_rules! modes {
    ($mode:expr, |$($x:ident),+| $e:expr) => {
        match ($mode.ftz, $mode.sat) {
            (false, false) => row!(f32, |$($x),+| $e),
            (true, false) => row!(f32, |$($x),+| { $(let $x = flush($x);)+ flush($e) }),
            (false, true) => row!(f32, |$($x),+| saturate($e)),
            (true, true) => row!(f32, |$($x),+| { $(let $x = flush($x);)+ saturate(flush($e)) }),
        }
    };
}

/// A function of f64, rounded to f32 once.
fn through(x: f32, f: fn(f64) -> f64) -> f32 {
    f(f64::from(x)) as f32
}

pub(crate) fn unary(name: &str, mode: Mode<'_>) -> Option<Unary> {
    let nearest = matches!(mode.rounding, "" | "rn" | "approx");
    Some(match name {
        "neg" => modes!(mode, |x| -x),
        "abs" => modes!(mode, |x| x.abs()),
        "rcp" if nearest => modes!(mode, |x| 1.0 / x),
        "sqrt" if nearest => modes!(mode, |x| x.sqrt()),
        "rsqrt" if nearest => modes!(mode, |x| through(x, |x| 1.0 / x.sqrt())),
        "sin" => modes!(mode, |x| through(x, f64::sin)),
        "cos" => modes!(mode, |x| through(x, f64::cos)),
        "lg2" => modes!(mode, |x| through(x, f64::log2)),
        "ex2" => modes!(mode, |x| through(x, f64::exp2)),
        "tanh" => modes!(mode, |x| through(x, f64::tanh)),
        _ => return None,
    })
}

pub(crate) fn binary(name: &str, mode: Mode<'_>) -> Option<Binary> {
    Some(match (name, mode.rounding) {
        ("add", "" | "rn") => modes!(mode, |x, y| x + y),
        ("add", "rz") => modes!(mode, |x, y| fma_zero(x, 1.0, y)),
        ("add", "rm") => modes!(mode, |x, y| fma_down(x, 1.0, y)),
        ("add", "rp") => modes!(mode, |x, y| fma_up(x, 1.0, y)),
        ("sub", "" | "rn") => modes!(mode, |x, y| x - y),
        ("sub", "rz") => modes!(mode, |x, y| fma_zero(x, 1.0, -y)),
        ("sub", "rm") => modes!(mode, |x, y| fma_down(x, 1.0, -y)),
        ("sub", "rp") => modes!(mode, |x, y| fma_up(x, 1.0, -y)),
        ("mul", "" | "rn") => modes!(mode, |x, y| x * y),
        ("mul", "rz") => modes!(mode, |x, y| fma_zero(x, y, 0.0)),
        ("mul", "rm") => modes!(mode, |x, y| fma_down(x, y, 0.0)),
        ("mul", "rp") => modes!(mode, |x, y| fma_up(x, y, 0.0)),
        ("div", "rn" | "full" | "approx") => modes!(mode, |x, y| x / y),
        ("min", "") => modes!(mode, |x, y| minimum(x, y)),
        ("max", "") => modes!(mode, |x, y| maximum(x, y)),
        ("min.NaN", "") => modes!(mode, |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { minimum(x, y) }),
        ("max.NaN", "") => modes!(mode, |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { maximum(x, y) }),
        // The magnitude of the second operand, the sign of the first.
        ("copysign", _) => modes!(mode, |x, y| y.copysign(x)),
        _ => return None,
    })
}

pub(crate) fn ternary(name: &str, mode: Mode<'_>) -> Option<Ternary> {
    Some(match (name, mode.rounding) {
        ("fma" | "mad", "" | "rn") => modes!(mode, |x, y, z| x.mul_add(y, z)),
        ("fma" | "mad", "rz") => modes!(mode, |x, y, z| fma_zero(x, y, z)),
        ("fma" | "mad", "rm") => modes!(mode, |x, y, z| fma_down(x, y, z)),
        ("fma" | "mad", "rp") => modes!(mode, |x, y, z| fma_up(x, y, z)),
        _ => return None,
    })
}

/// The number where one operand is NaN; -0 is below +0.
pub(crate) fn minimum(x: f32, y: f32) -> f32 {
    if x == y { f32::from_bits(x.to_bits() | y.to_bits()) } else { x.min(y) }
}

/// The number where one operand is NaN; +0 is above -0.
pub(crate) fn maximum(x: f32, y: f32) -> f32 {
    if x == y { f32::from_bits(x.to_bits() & y.to_bits()) } else { x.max(y) }
}
