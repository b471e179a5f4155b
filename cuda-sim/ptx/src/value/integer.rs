//! Arithmetic of integer types.

use crate::row::{Binary, Row, Ternary, Unary, integers, row};
use crate::types::Type;

/// The upper half of a product, by type.
trait MulHigh: Sized {
    fn mul_high(self, other: Self) -> Self;
}

macro_rules! mul_high {
    ($($ty:ident as $wide:ident),*) => {$(
        impl MulHigh for $ty {
            fn mul_high(self, other: Self) -> Self {
                (($wide::from(self) * $wide::from(other)) >> Self::BITS) as Self
            }
        }
    )*};
}
mul_high!(u16 as u32, u32 as u64, u64 as u128, i16 as i32, i32 as i64, i64 as i128);

/// Division as the hardware does it: all ones for a divisor of 0.
trait Divide: Sized {
    fn divide(self, by: Self) -> Self;
    fn remainder(self, by: Self) -> Self;
    /// Absolute value and negation, wrapping.
    fn magnitude(self) -> Self;
    fn negate(self) -> Self;
    /// 1 for 0, 0 for anything else.
    fn logical_not(self) -> Self;
}

macro_rules! divide {
    ($($ty:ident, |$x:ident| $magnitude:expr);*) => {$(
        impl Divide for $ty {
            fn divide(self, by: Self) -> Self {
                if by == 0 { !0 } else { self.wrapping_div(by) }
            }
            fn remainder(self, by: Self) -> Self {
                if by == 0 { self } else { self.wrapping_rem(by) }
            }
            fn magnitude(self) -> Self {
                let $x = self;
                $magnitude
            }
            fn negate(self) -> Self {
                self.wrapping_neg()
            }
            fn logical_not(self) -> Self {
                Self::from(self == 0)
            }
        }
    )*};
}
divide!(
    u16, |x| x; u32, |x| x; u64, |x| x;
    i16, |x| x.wrapping_abs(); i32, |x| x.wrapping_abs(); i64, |x| x.wrapping_abs()
);

/// `abs`, `neg`, `not` and the like of one operand.
pub(crate) fn unary(name: &str, ty: Type) -> Option<Unary> {
    match (name, ty) {
        ("abs", _) => integers!(ty, |x| x.magnitude()),
        ("neg", _) => integers!(ty, |x| x.negate()),
        ("not", Type::Pred) => Some(row!(bool, |x| !x)),
        ("not", _) => integers!(ty, |x| !x),
        ("cnot", _) => integers!(ty, |x| x.logical_not()),
        _ => None,
    }
}

/// `add`, `sub`, the three kinds of `mul`, and the like of two operands.
pub(crate) fn binary(name: &str, part: &str, ty: Type) -> Option<Binary> {
    match (name, part) {
        ("add", _) => integers!(ty, |x, y| x.wrapping_add(y)),
        ("add.sat", _) => Some(row!(i32, |x, y| x.saturating_add(y))),
        ("sub", _) => integers!(ty, |x, y| x.wrapping_sub(y)),
        ("sub.sat", _) => Some(row!(i32, |x, y| x.saturating_sub(y))),
        ("mul", "lo") => integers!(ty, |x, y| x.wrapping_mul(y)),
        ("mul", "hi") => integers!(ty, |x, y| x.mul_high(y)),
        ("mul", "wide") => wide(ty),
        ("mul24", "lo") if ty.is_signed() => Some(row!(i32, |x, y| (x << 8 >> 8).wrapping_mul(y << 8 >> 8))),
        ("mul24", "lo") => Some(row!(u32, |x, y| (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff))),
        ("div", _) => integers!(ty, |x, y| x.divide(y)),
        ("rem", _) => integers!(ty, |x, y| x.remainder(y)),
        ("min", _) => integers!(ty, |x, y| x.min(y)),
        ("max", _) => integers!(ty, |x, y| x.max(y)),
        _ => None,
    }
}

fn wide(ty: Type) -> Option<Binary> {
    Some(match ty {
        Type::U16 => row!(u16, |x, y| u32::from(x) * u32::from(y)),
        Type::U32 => row!(u32, |x, y| u64::from(x) * u64::from(y)),
        Type::S16 => row!(i16, |x, y| i32::from(x) * i32::from(y)),
        Type::S32 => row!(i32, |x, y| i64::from(x) * i64::from(y)),
        _ => return None,
    })
}

/// `mad`, `sad` and the dot products of bytes.
pub(crate) fn ternary(name: &str, part: &str, ty: Type) -> Option<Ternary> {
    match (name, part) {
        ("mad", "lo") => integers!(ty, |x, y, z| x.wrapping_mul(y).wrapping_add(z)),
        ("mad", "hi") => integers!(ty, |x, y, z| x.mul_high(y).wrapping_add(z)),
        ("mad", "wide") => mad_wide(ty),
        ("mad24", "lo") if ty.is_signed() => {
            Some(row!(i32, |x, y, z| (x << 8 >> 8).wrapping_mul(y << 8 >> 8).wrapping_add(z)))
        }
        ("mad24", "lo") => Some(row!(u32, |x, y, z| (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff).wrapping_add(z))),
        ("sad", _) => integers!(ty, |x, y, z| x.max(y).wrapping_sub(x.min(y)).wrapping_add(z)),
        _ => None,
    }
}

/// The addend has twice the width of the factors.
fn mad_wide(ty: Type) -> Option<Ternary> {
    fn sum(product: &Row, c: &Row) -> Row {
        std::array::from_fn(|i| product[i].wrapping_add(c[i]))
    }
    Some(match ty {
        Type::U16 => |a, b, c| sum(&row!(u16, |x, y| u32::from(x) * u32::from(y))(a, b), c),
        Type::U32 => |a, b, c| sum(&row!(u32, |x, y| u64::from(x) * u64::from(y))(a, b), c),
        Type::S16 => |a, b, c| sum(&row!(i16, |x, y| i32::from(x) * i32::from(y))(a, b), c),
        Type::S32 => |a, b, c| sum(&row!(i32, |x, y| i64::from(x) * i64::from(y))(a, b), c),
        _ => return None,
    })
}

/// `dp4a`: the sum of four products of bytes and an addend.
pub(crate) fn dot4(a: Type, b: Type) -> Option<Ternary> {
    fn dot(x: u32, y: u32, z: u32, a: fn(u8) -> i32, b: fn(u8) -> i32) -> u32 {
        let pairs = x.to_le_bytes().into_iter().zip(y.to_le_bytes());
        let sum: i32 = pairs.map(|(x, y)| a(x) * b(y)).sum();
        z.wrapping_add(sum as u32)
    }
    fn signed(byte: u8) -> i32 {
        i32::from(byte as i8)
    }
    let all: Ternary = match (a, b) {
        (Type::U32, Type::U32) => row!(u32, |x, y, z| dot(x, y, z, i32::from, i32::from)),
        (Type::S32, Type::S32) => row!(u32, |x, y, z| dot(x, y, z, signed, signed)),
        (Type::U32, Type::S32) => row!(u32, |x, y, z| dot(x, y, z, i32::from, signed)),
        (Type::S32, Type::U32) => row!(u32, |x, y, z| dot(x, y, z, signed, i32::from)),
        _ => return None,
    };
    Some(all)
}
