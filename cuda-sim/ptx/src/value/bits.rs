//! Bits: logic, shifts, fields, permutations.

use crate::row::{Binary, LANES, Quaternary, Row, Ternary, Unary, row};
use crate::types::Type;

/// `popc`, `clz`, `brev` and `bfind`.
pub(crate) fn unary(name: &str, ty: Type) -> Option<Unary> {
    Some(match (name, ty.size()) {
        ("popc", 4) => row!(u32, |x| x.count_ones()),
        ("popc", 8) => row!(u64, |x| x.count_ones()),
        ("clz", 4) => row!(u32, |x| x.leading_zeros()),
        ("clz", 8) => row!(u64, |x| x.leading_zeros()),
        ("brev", 4) => row!(u32, |x| x.reverse_bits()),
        ("brev", 8) => row!(u64, |x| x.reverse_bits()),
        _ => return find(name, ty),
    })
}

/// The position of the highest bit that differs from the sign, or all ones; `shiftamt` counts from the top.
fn find(name: &str, ty: Type) -> Option<Unary> {
    fn highest(x: u64) -> u32 {
        if x == 0 { u32::MAX } else { 63 - x.leading_zeros() }
    }
    fn shift(x: u64, bits: u32) -> u32 {
        if x == 0 { u32::MAX } else { bits - 1 - highest(x) }
    }
    fn unsigned32(x: i32) -> u64 {
        u64::from((x ^ (x >> 31)) as u32)
    }
    fn unsigned64(x: i64) -> u64 {
        (x ^ (x >> 63)) as u64
    }
    Some(match (name, ty) {
        ("bfind", Type::U32) => row!(u32, |x| highest(u64::from(x))),
        ("bfind", Type::U64) => row!(u64, |x| highest(x)),
        ("bfind", Type::S32) => row!(i32, |x| highest(unsigned32(x))),
        ("bfind", Type::S64) => row!(i64, |x| highest(unsigned64(x))),
        ("bfind.shiftamt", Type::U32) => row!(u32, |x| shift(u64::from(x), 32)),
        ("bfind.shiftamt", Type::U64) => row!(u64, |x| shift(x, 64)),
        ("bfind.shiftamt", Type::S32) => row!(i32, |x| shift(unsigned32(x), 32)),
        ("bfind.shiftamt", Type::S64) => row!(i64, |x| shift(unsigned64(x), 64)),
        _ => return None,
    })
}

/// Logic and shifts. Amounts of shifts are 32 bits wide and clamped to the width.
pub(crate) fn binary(name: &str, ty: Type) -> Option<Binary> {
    Some(match (name, ty) {
        ("and", _) => |a, b| std::array::from_fn(|i| a[i] & b[i]),
        ("or", _) => |a, b| std::array::from_fn(|i| a[i] | b[i]),
        ("xor", _) => |a, b| std::array::from_fn(|i| a[i] ^ b[i]),
        ("shl", Type::B16) => |a, b| shifted(a, b, |x, by| (x as u16).checked_shl(by).unwrap_or(0).into()),
        ("shl", Type::B32) => |a, b| shifted(a, b, |x, by| (x as u32).checked_shl(by).unwrap_or(0).into()),
        ("shl", Type::B64) => |a, b| shifted(a, b, |x, by| x.checked_shl(by).unwrap_or(0)),
        ("shr", Type::B16 | Type::U16) => |a, b| shifted(a, b, |x, by| (x as u16).checked_shr(by).unwrap_or(0).into()),
        ("shr", Type::B32 | Type::U32) => |a, b| shifted(a, b, |x, by| (x as u32).checked_shr(by).unwrap_or(0).into()),
        ("shr", Type::B64 | Type::U64) => |a, b| shifted(a, b, |x, by| x.checked_shr(by).unwrap_or(0)),
        ("shr", Type::S16) => |a, b| shifted(a, b, |x, by| ((x as i16) >> by.min(15)) as u64),
        ("shr", Type::S32) => |a, b| shifted(a, b, |x, by| ((x as i32) >> by.min(31)) as u64),
        ("shr", Type::S64) => |a, b| shifted(a, b, |x, by| ((x as i64) >> by.min(63)) as u64),
        _ => return None,
    })
}

fn shifted(a: &Row, b: &Row, shift: fn(u64, u32) -> u64) -> Row {
    std::array::from_fn(|i| shift(a[i], b[i] as u32))
}

/// `bfe`, `prmt` and the funnel shifts.
pub(crate) fn ternary(name: &str, ty: Type) -> Option<Ternary> {
    Some(match (name, ty) {
        ("bfe", Type::U32) => |a, b, c| fields(a, b, c, 32, false),
        ("bfe", Type::U64) => |a, b, c| fields(a, b, c, 64, false),
        ("bfe", Type::S32) => |a, b, c| fields(a, b, c, 32, true),
        ("bfe", Type::S64) => |a, b, c| fields(a, b, c, 64, true),
        ("prmt", Type::B32) => row!(u32, |x, y, z| permute(x, y, z)),
        ("shf.l.wrap", Type::B32) => row!(u32, |x, y, z| (joined(x, y) << (z & 31) >> 32) as u32),
        ("shf.l.clamp", Type::B32) => row!(u32, |x, y, z| (joined(x, y) << z.min(32) >> 32) as u32),
        ("shf.r.wrap", Type::B32) => row!(u32, |x, y, z| (joined(x, y) >> (z & 31)) as u32),
        ("shf.r.clamp", Type::B32) => row!(u32, |x, y, z| (joined(x, y) >> z.min(32)) as u32),
        _ => return None,
    })
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn fields(a: &Row, position: &Row, length: &Row, bits: u32, signed: bool) -> Row {
    std::array::from_fn(|i| {
        let (position, length) = ((position[i] & 0xff) as u32, (length[i] & 0xff) as u32);
        if length == 0 {
            return 0;
        }
        let value = if bits == 32 { u128::from(a[i] as u32) } else { u128::from(a[i]) };
        // Bits beyond the value's repeat its sign.
        let negative = signed && value >> (bits - 1) & 1 == 1;
        let extended = if negative { value | (u128::MAX << bits) } else { value };
        let field = extended >> position.min(120);
        let length = length.min(bits);
        let top = field >> (length - 1) & 1 == 1;
        let field = field & ((1 << length) - 1);
        let result = if signed && top { field | (u128::MAX << length) } else { field };
        result as u64
    })
}

fn permute(x: u32, y: u32, selector: u32) -> u32 {
    let bytes = joined(x, y).to_le_bytes();
    let picked: [u8; 4] = std::array::from_fn(|i| {
        let nibble = selector >> (4 * i) & 15;
        let byte = bytes[(nibble & 7) as usize];
        if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    });
    u32::from_le_bytes(picked)
}

/// `bfi`: a field of `a` inserted in `b`.
pub(crate) fn insert(ty: Type) -> Option<Quaternary> {
    fn inserted(rows: [&Row; 4], bits: u32) -> Row {
        let [a, b, position, length] = rows;
        let mut out = [0; LANES];
        for (i, out) in out.iter_mut().enumerate() {
            let (position, length) = ((position[i] & 0xff) as u32, (length[i] & 0xff) as u32);
            let ones = 1u64.checked_shl(length).map_or(u64::MAX, |bit| bit - 1);
            let mask = if position >= bits { 0 } else { ones << position };
            let field = a[i].checked_shl(position).unwrap_or(0);
            *out = b[i] & !mask | field & mask;
        }
        out
    }
    match ty {
        Type::B32 => Some(|a, b, c, d| inserted([a, b, c, d], 32)),
        Type::B64 => Some(|a, b, c, d| inserted([a, b, c, d], 64)),
        _ => None,
    }
}
