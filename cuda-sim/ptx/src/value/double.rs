//! f64 arithmetic, rounded to nearest.

use crate::row::{Binary, Ternary, Unary, row};

pub(crate) fn unary(name: &str) -> Option<Unary> {
    Some(match name {
        "neg" => row!(f64, |x| -x),
        "abs" => row!(f64, |x| x.abs()),
        "rcp" => row!(f64, |x| 1.0 / x),
        "sqrt" => row!(f64, |x| x.sqrt()),
        "rsqrt" => row!(f64, |x| 1.0 / x.sqrt()),
        _ => return None,
    })
}

pub(crate) fn binary(name: &str, rounding: &str) -> Option<Binary> {
    if !matches!(rounding, "" | "rn") {
        return None;
    }
    Some(match name {
        "add" => row!(f64, |x, y| x + y),
        "sub" => row!(f64, |x, y| x - y),
        "mul" => row!(f64, |x, y| x * y),
        "div" => row!(f64, |x, y| x / y),
        "min" => row!(f64, |x, y| x.min(y)),
        "max" => row!(f64, |x, y| x.max(y)),
        "copysign" => row!(f64, |x, y| y.copysign(x)),
        _ => return None,
    })
}

pub(crate) fn ternary(name: &str, rounding: &str) -> Option<Ternary> {
    match (name, rounding) {
        ("fma" | "mad", "" | "rn") => Some(row!(f64, |x, y, z| x.mul_add(y, z))),
        _ => None,
    }
}
