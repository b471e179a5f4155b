//! `cvt`: between integers, floats, and floats of half the width.

use half::{bf16, f16};

use crate::row::{Binary, Row, Unary, Value};
use crate::types::Type;
use crate::value::rounding::{flush, rectified, saturate};

/// An f32 that rounds to narrower types as `x` does: cut off, with the last bit set where something was. (`from_f64` of `half` drops the
/// lower half of an f64, and takes what is just above a tie for one.)
fn odd(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x {
        return near;
    }
    let bits = near.to_bits();
    let cut = if f64::from(near).abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(cut | 1)
}

/// Nearest bf16 of an f64, ties to even; NaN becomes 0x7fff.
pub(crate) fn to_bf16(x: f64) -> bf16 {
    if x.is_nan() { bf16::from_bits(0x7fff) } else { bf16::from_f32(odd(x)) }
}

/// Nearest f16 of an f64, ties to even; NaN becomes 0x7fff.
pub(crate) fn to_f16(x: f64) -> f16 {
    if x.is_nan() { f16::from_bits(0x7fff) } else { f16::from_f32(odd(x)) }
}

/// Nearest tf32: 10 bits of mantissa, ties away from zero, as `cvt.rna` rounds.
pub(crate) fn to_tf32(x: f32) -> f32 {
    if x.is_finite() { f32::from_bits(x.to_bits().wrapping_add(0x1000) & 0xffff_e000) } else { x }
}

/// Value on one side of a conversion, as one of two wide kinds.
enum Wide {
    Integer(i128),
    Float(f64),
}

/// A conversion with its modifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversion {
    to: Type,
    from: Type,
    /// Rounding to whole numbers.
    round: fn(f64) -> f64,
    /// Whether the result is a float with a whole value.
    whole: bool,
    ftz: bool,
    sat: bool,
    relu: bool,
}

impl Conversion {
    /// Makes a conversion from the types and suffixes; `None` if the interpreter does not support it.
    pub(crate) fn new(to: Type, from: Type, suffixes: &[&str]) -> Option<Self> {
        let modes = ["rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"];
        let mode = suffixes.iter().find(|suffix| modes.contains(suffix)).copied().unwrap_or("");
        let supported = |ty| !matches!(ty, Type::B128 | Type::Pred | Type::F16x2 | Type::Bf16x2);
        let directed = matches!(mode, "rz" | "rm" | "rp");
        if !supported(to) || !supported(from) || directed && !exact(to, from) {
            return None;
        }
        let has = |suffix| suffixes.contains(&suffix);
        let whole = is_float(to) && is_float(from) && mode.ends_with('i');
        Some(Self { to, from, round: rounding(mode)?, whole, ftz: has("ftz"), sat: has("sat"), relu: has("relu") })
    }

    /// Converts the bits of one lane.
    pub(crate) fn apply(&self, bits: u64) -> u64 {
        let value = match read(self.from, bits) {
            Wide::Float(x) if self.ftz && self.from == Type::F32 => Wide::Float(f64::from(flush(x as f32))),
            value => value,
        };
        match (value, is_float(self.to)) {
            (Wide::Float(x), true) => {
                let x = if self.whole { (self.round)(x) } else { x };
                let x = if self.relu { rectified(x) } else { x };
                write_float(self.to, x, self.sat, self.ftz)
            }
            (Wide::Integer(x), true) => match self.to {
                Type::F32 => (x as f32).put(),
                Type::F64 => (x as f64).put(),
                to => write_float(to, x as f64, false, false),
            },
            (Wide::Float(x), false) => write_integer(self.to, (self.round)(x) as i128, true),
            (Wide::Integer(x), false) => write_integer(self.to, x, self.sat),
        }
    }
}

/// Whether no directed rounding can occur: the target holds every value.
fn exact(to: Type, from: Type) -> bool {
    to == Type::F64 && from == Type::F32 || !is_float(to)
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::Bf16 | Type::Tf32 | Type::F32 | Type::F64)
}

fn rounding(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "" | "rn" | "rna" | "rni" => f64::round_ties_even,
        "rz" | "rzi" => f64::trunc,
        "rm" | "rmi" => f64::floor,
        "rp" | "rpi" => f64::ceil,
        _ => return None,
    })
}

fn read(ty: Type, bits: u64) -> Wide {
    match ty {
        Type::B8 | Type::U8 => Wide::Integer(i128::from(bits as u8)),
        Type::S8 => Wide::Integer(i128::from(bits as i8)),
        Type::B16 | Type::U16 => Wide::Integer(i128::from(bits as u16)),
        Type::S16 => Wide::Integer(i128::from(bits as i16)),
        Type::B32 | Type::U32 => Wide::Integer(i128::from(bits as u32)),
        Type::S32 => Wide::Integer(i128::from(bits as i32)),
        Type::S64 => Wide::Integer(i128::from(bits as i64)),
        Type::F16 => Wide::Float(f16::take(bits).to_f64()),
        Type::Bf16 => Wide::Float(bf16::take(bits).to_f64()),
        Type::F32 | Type::Tf32 => Wide::Float(f64::from(f32::take(bits))),
        Type::F64 => Wide::Float(f64::take(bits)),
        _ => Wide::Integer(i128::from(bits)),
    }
}

fn write_float(ty: Type, x: f64, sat: bool, ftz: bool) -> u64 {
    let x = if sat { f64::from(saturate(x as f32)) } else { x };
    match ty {
        Type::F16 => to_f16(x).put(),
        Type::Bf16 => to_bf16(x).put(),
        Type::Tf32 => to_tf32(x as f32).put(),
        Type::F64 => x.put(),
        _ if ftz => flush(x as f32).put(),
        _ => (x as f32).put(),
    }
}

/// Floats are clamped to the type's range, and NaN is 0; integers are cut off unless they saturate.
fn write_integer(ty: Type, x: i128, clamp: bool) -> u64 {
    let (low, high) = match ty {
        Type::S8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
        Type::S16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Type::S32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Type::S64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        _ => (0, (1i128 << (ty.size() * 8)) - 1),
    };
    let x = if clamp { x.clamp(low, high) } else { x };
    // Narrow types are extended to the register: a sign, or zeros.
    match ty {
        Type::S8 => i64::from(x as i8) as u64,
        Type::S16 => i64::from(x as i16) as u64,
        Type::S32 => i64::from(x as i32) as u64,
        Type::U8 | Type::B8 => u64::from(x as u8),
        Type::U16 | Type::B16 => u64::from(x as u16),
        Type::U32 | Type::B32 => u64::from(x as u32),
        _ => x as u64,
    }
}

/// Two floats to one register: the first operand becomes the upper half.
pub(crate) fn pair(to: Type, relu: bool) -> Option<Binary> {
    fn joined(a: &Row, b: &Row, f: fn(f32) -> u64) -> Row {
        std::array::from_fn(|i| f(f32::take(a[i])) << 16 | f(f32::take(b[i])))
    }
    Some(match (to, relu) {
        (Type::Bf16x2, false) => |a, b| joined(a, b, |x| to_bf16(f64::from(x)).put()),
        (Type::Bf16x2, true) => |a, b| joined(a, b, |x| to_bf16(rectified(f64::from(x))).put()),
        (Type::F16x2, false) => |a, b| joined(a, b, |x| to_f16(f64::from(x)).put()),
        (Type::F16x2, true) => |a, b| joined(a, b, |x| to_f16(rectified(f64::from(x))).put()),
        _ => return None,
    })
}

/// The conversions that kernels use most, as plain functions.
pub(crate) fn common(to: Type, from: Type) -> Option<Unary> {
    use crate::row::row;
    Some(match (to, from) {
        (Type::F32, Type::S32) => row!(i32, |x| x as f32),
        (Type::F32, Type::U32) => row!(u32, |x| x as f32),
        (Type::S64, Type::S32) => row!(i32, |x| i64::from(x)),
        (Type::U64, Type::U32) => row!(u32, |x| u64::from(x)),
        (Type::U32 | Type::S32, Type::U64 | Type::S64) => row!(u64, |x| x as u32),
        _ => return None,
    })
}
