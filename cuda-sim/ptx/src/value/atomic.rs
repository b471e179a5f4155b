//! Functions of atomics on the old value of a location, and of `redux` on two lanes' values.

use crate::instruction::AtomicFn;
use crate::row::Value;
use crate::types::Type;
use crate::value::convert::{to_bf16, to_f16};
use crate::value::float::{maximum, minimum};
use half::{bf16, f16};

/// `f(old, b, c)` of `atom.<name>` and `red.<name>`.
pub(crate) fn function(name: &str, ty: Type) -> Option<AtomicFn> {
    Some(match (name, ty) {
        ("and", _) => |old, b, _| old & b,
        ("or", _) => |old, b, _| old | b,
        ("xor", _) => |old, b, _| old ^ b,
        ("exch", _) => |_, b, _| b,
        ("cas", _) if ty.size() == 2 => |old, b, c| if old as u16 == b as u16 { c } else { old },
        ("cas", _) if ty.size() == 4 => |old, b, c| if old as u32 == b as u32 { c } else { old },
        ("cas", _) => |old, b, c| if old == b { c } else { old },
        ("inc", Type::U32) => |old, b, _| if old as u32 >= b as u32 { 0 } else { old + 1 },
        ("dec", Type::U32) => |old, b, _| if old as u32 == 0 || old as u32 > b as u32 { b } else { old - 1 },
        ("add", Type::F32) => |old, b, _| (f32::take(old) + f32::take(b)).put(),
        ("add", Type::F64) => |old, b, _| (f64::take(old) + f64::take(b)).put(),
        ("add", Type::F16x2) => |old, b, _| pair(old, b, |x, y| to_f16(sum(f16::take(x), f16::take(y))).put()),
        ("add", Type::Bf16x2) => |old, b, _| pair(old, b, |x, y| to_bf16(sum(bf16::take(x), bf16::take(y))).put()),
        ("add", Type::F16) => |old, b, _| to_f16(sum(f16::take(old), f16::take(b))).put(),
        ("add", Type::Bf16) => |old, b, _| to_bf16(sum(bf16::take(old), bf16::take(b))).put(),
        ("add", _) => |old, b, _| old.wrapping_add(b),
        ("min", Type::U32) => |old, b, _| u64::from((old as u32).min(b as u32)),
        ("max", Type::U32) => |old, b, _| u64::from((old as u32).max(b as u32)),
        ("min", Type::S32) => |old, b, _| (old as i32).min(b as i32).put(),
        ("max", Type::S32) => |old, b, _| (old as i32).max(b as i32).put(),
        ("min", Type::U64) => |old, b, _| old.min(b),
        ("max", Type::U64) => |old, b, _| old.max(b),
        ("min", Type::S64) => |old, b, _| (old as i64).min(b as i64).put(),
        ("max", Type::S64) => |old, b, _| (old as i64).max(b as i64).put(),
        ("min", Type::F32) => |old, b, _| minimum(f32::take(old), f32::take(b)).put(),
        ("max", Type::F32) => |old, b, _| maximum(f32::take(old), f32::take(b)).put(),
        _ => return None,
    })
}

fn sum<T: Into<f64>>(x: T, y: T) -> f64 {
    x.into() + y.into()
}

fn pair(old: u64, b: u64, f: fn(u64, u64) -> u64) -> u64 {
    f(old, b) & 0xffff | f(old >> 16, b >> 16) << 16
}

/// The reduction of the instruction `redux.sync.<name>`.
pub(crate) fn reduction(name: &str, ty: Type) -> Option<fn(u64, u64) -> u64> {
    Some(match (name, ty) {
        ("add", Type::U32 | Type::S32) => |x, y| u64::from((x as u32).wrapping_add(y as u32)),
        ("min", Type::U32) => |x, y| u64::from((x as u32).min(y as u32)),
        ("max", Type::U32) => |x, y| u64::from((x as u32).max(y as u32)),
        ("min", Type::S32) => |x, y| (x as i32).min(y as i32).put(),
        ("max", Type::S32) => |x, y| (x as i32).max(y as i32).put(),
        ("and", Type::B32) => |x, y| x & y,
        ("or", Type::B32) => |x, y| x | y,
        ("xor", Type::B32) => |x, y| x ^ y,
        _ => return None,
    })
}
