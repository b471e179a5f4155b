//! Arithmetic of f16 and bf16, single and in pairs. Sums and products go through f64, where they are exact, and are
//! rounded once.

use half::{bf16, f16};

use crate::row::{Binary, Row, Ternary, Unary, Value};
use crate::types::Type;
use crate::value::convert::{to_bf16, to_f16};
use crate::value::rounding::rectified;

/// A 16-bit float that arithmetic in f64 reads and writes.
pub(crate) trait Half: Value {
    fn wide(self) -> f64;
    fn narrow(x: f64) -> Self;
}

impl Half for f16 {
    fn wide(self) -> f64 {
        self.to_f64()
    }
    fn narrow(x: f64) -> Self {
        to_f16(x)
    }
}

impl Half for bf16 {
    fn wide(self) -> f64 {
        self.to_f64()
    }
    fn narrow(x: f64) -> Self {
        to_bf16(x)
    }
}

/// Applies a function to the low element, and to the high one where there is a pair.
fn map<H: Half, const N: usize>(rows: [&Row; N], pair: bool, f: fn([f64; N]) -> f64) -> Row {
    std::array::from_fn(|i| {
        let element = |shift: u32| H::narrow(f(rows.map(|row| H::take(row[i] >> shift).wide()))).put();
        if pair { element(0) | element(16) << 16 } else { element(0) }
    })
}

/// The function for the four types; each is a plain function, so that it can be kept in an instruction.
macro_rules! halves {
    ($ty:expr, [$($row:ident),+], $f:expr) => {
        Some(match $ty {
            Type::F16 => |$($row: &Row),+| map::<f16, _>([$($row),+], false, $f),
            Type::F16x2 => |$($row: &Row),+| map::<f16, _>([$($row),+], true, $f),
            Type::Bf16 => |$($row: &Row),+| map::<bf16, _>([$($row),+], false, $f),
            Type::Bf16x2 => |$($row: &Row),+| map::<bf16, _>([$($row),+], true, $f),
            _ => return None,
        })
    };
}

pub(crate) fn unary(name: &str, ty: Type) -> Option<Unary> {
    match name {
        "neg" => halves!(ty, [a], |[x]| -x),
        "abs" => halves!(ty, [a], |[x]| x.abs()),
        "ex2" => halves!(ty, [a], |[x]| x.exp2()),
        "tanh" => halves!(ty, [a], |[x]| x.tanh()),
        _ => None,
    }
}

pub(crate) fn binary(name: &str, ty: Type) -> Option<Binary> {
    match name {
        "add" => halves!(ty, [a, b], |[x, y]| x + y),
        "sub" => halves!(ty, [a, b], |[x, y]| x - y),
        "mul" => halves!(ty, [a, b], |[x, y]| x * y),
        "min" => halves!(ty, [a, b], |[x, y]| if x == y && x.is_sign_negative() { x } else { x.min(y) }),
        "max" => halves!(ty, [a, b], |[x, y]| if x == y && x.is_sign_negative() { y } else { x.max(y) }),
        _ => None,
    }
}

pub(crate) fn ternary(name: &str, ty: Type) -> Option<Ternary> {
    match name {
        "fma" => halves!(ty, [a, b, c], |[x, y, z]| x * y + z),
        "fma.relu" => halves!(ty, [a, b, c], |[x, y, z]| rectified(x * y + z)),
        _ => None,
    }
}
