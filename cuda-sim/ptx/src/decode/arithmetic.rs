//! Instructions that compute only in registers.

use crate::instruction::{Combine, DISCARD, Operation};
use crate::parse::{Names, Raw, Result, Statement};
use crate::row::{LANES, row};
use crate::types::Type;
use crate::value::convert::{Conversion, common, pair};
use crate::value::float::Mode;
use crate::value::{bits, compare, double, float, half_precision, integer};

pub(crate) fn decode(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    match of.opcode() {
        "mov" => move_value(of, names),
        "cvt" => convert(of, names),
        "setp" => set_predicate(of, names),
        "set" => set(of, names),
        "selp" => select(of, names),
        "slct" => select_by_sign(of, names),
        "lop3" => logic(of, names),
        "testp" => test(of, names),
        _ => compute(of, names),
    }
}

/// One to four operands, all of one type.
fn compute(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let types = of.types();
    let ty = types.last().copied().ok_or_else(|| of.unknown())?;
    let name = of.opcode();
    let d = names.destination(of, of.operand(0)?)?;
    let mut source = |index: usize| -> Result<_> { names.source(of, of.operand(index)?) };
    let part = ["lo", "hi", "wide"].into_iter().find(|part| of.has(part)).unwrap_or("");
    match of.operands.len() {
        2 => {
            let f = unary(of, ty).ok_or_else(|| of.unknown())?;
            Ok(Operation::Unary { f, d, a: source(1)? })
        }
        3 => {
            let f = binary(of, part, ty).ok_or_else(|| of.unknown())?;
            Ok(Operation::Binary { f, d, a: source(1)?, b: source(2)? })
        }
        4 => {
            let f = match (name, types.as_slice()) {
                ("dp4a", [a, b]) => integer::dot4(*a, *b),
                _ => ternary(of, part, ty),
            };
            let f = f.ok_or_else(|| of.unknown())?;
            Ok(Operation::Ternary { f, d, a: source(1)?, b: source(2)?, c: source(3)? })
        }
        5 if name == "bfi" => {
            let f = bits::insert(ty).ok_or_else(|| of.unknown())?;
            Ok(Operation::Quaternary { f, d, sources: [source(1)?, source(2)?, source(3)?, source(4)?] })
        }
        _ => Err(of.unknown()),
    }
}

fn mode<'a>(of: &Statement<'a>) -> Mode<'a> {
    let known = ["rn", "rz", "rm", "rp", "approx", "full"];
    let rounding = of.parts[1..].iter().find(|part| known.contains(part)).copied().unwrap_or("");
    Mode { rounding, ftz: of.has("ftz"), sat: of.has("sat") }
}

fn unary(of: &Statement<'_>, ty: Type) -> Option<crate::row::Unary> {
    let name = of.opcode();
    match ty {
        Type::F32 => float::unary(name, mode(of)),
        Type::F64 => double::unary(name),
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => half_precision::unary(name, ty),
        _ if of.has("shiftamt") => bits::unary("bfind.shiftamt", ty),
        _ => bits::unary(name, ty).or_else(|| integer::unary(name, ty)),
    }
}

fn binary(of: &Statement<'_>, part: &str, ty: Type) -> Option<crate::row::Binary> {
    let name = of.opcode();
    let nan = of.has("NaN");
    match ty {
        Type::F32 if nan && name == "min" => float::binary("min.NaN", mode(of)),
        Type::F32 if nan && name == "max" => float::binary("max.NaN", mode(of)),
        Type::F32 => float::binary(name, mode(of)),
        Type::F64 => double::binary(name, mode(of).rounding),
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 if !nan && !of.has("ftz") && !of.has("sat") => {
            half_precision::binary(name, ty)
        }
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => None,
        Type::S32 if of.has("sat") && name == "add" => integer::binary("add.sat", part, ty),
        Type::S32 if of.has("sat") && name == "sub" => integer::binary("sub.sat", part, ty),
        // Carries need a register that the interpreter does not have.
        _ if of.has("cc") || of.has("sat") => None,
        _ => bits::binary(name, ty).or_else(|| integer::binary(name, part, ty)),
    }
}

fn ternary(of: &Statement<'_>, part: &str, ty: Type) -> Option<crate::row::Ternary> {
    let name = of.opcode();
    match ty {
        Type::F32 => float::ternary(name, mode(of)),
        Type::F64 => double::ternary(name, mode(of).rounding),
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 if of.has("relu") => {
            half_precision::ternary("fma.relu", ty)
        }
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => half_precision::ternary(name, ty),
        _ if of.has("cc") || of.has("sat") => None,
        _ if name == "shf" => {
            let direction = if of.has("l") { "l" } else { "r" };
            let kind = if of.has("wrap") { "wrap" } else { "clamp" };
            bits::ternary(&format!("shf.{direction}.{kind}"), ty)
        }
        // Permutations with a mode (`f4e` and the like) are rare.
        _ if name == "prmt" && of.parts.len() > 2 => None,
        _ => bits::ternary(name, ty).or_else(|| integer::ternary(name, part, ty)),
    }
}

fn move_value(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let bits = |count: usize| -> Result<u32> { Ok((of.ty()?.size() * 8 / count.max(1)) as u32) };
    match (of.operand(0)?, of.operand(1)?) {
        (raw @ Raw::List(items), source) => {
            let d = names.destinations(of, raw)?;
            Ok(Operation::Unpack { d, a: names.source(of, source)?, bits: bits(items.len())? })
        }
        (raw, list @ Raw::List(items)) => {
            let d = names.destination(of, raw)?;
            Ok(Operation::Pack { d, sources: names.sources(of, list)?, bits: bits(items.len())? })
        }
        (raw, source) => {
            let d = names.destination(of, raw)?;
            Ok(Operation::Unary { f: |a| *a, d, a: names.source(of, source)? })
        }
    }
}

fn convert(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let [to, from] = of.types()[..] else { return Err(of.unknown()) };
    let d = names.destination(of, of.operand(0)?)?;
    let a = names.source(of, of.operand(1)?)?;
    if of.operands.len() == 3 {
        let f = pair(to, of.has("relu")).ok_or_else(|| of.unknown())?;
        return Ok(Operation::Binary { f, d, a, b: names.source(of, of.operand(2)?)? });
    }
    let plain = !of.has("sat") && ["rz", "rm", "rp"].iter().all(|mode| !of.has(mode));
    if let (true, Some(f)) = (plain, common(to, from)) {
        return Ok(Operation::Unary { f, d, a });
    }
    let conversion = Conversion::new(to, from, &of.parts[1..]).ok_or_else(|| of.unknown())?;
    Ok(Operation::Convert { conversion, d, a })
}

/// `setp.lt.and.s32 p|q, a, b, c`.
fn set_predicate(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let f = compare::comparison(of.parts.get(1).unwrap_or(&""), of.ty()?).ok_or_else(|| of.unknown())?;
    let (d, complement) = match of.operand(0)? {
        Raw::Pair(first, second) => (names.named(of, first)?, names.named(of, second)?),
        raw => (names.destination(of, raw)?, DISCARD),
    };
    let (a, b) = (names.source(of, of.operand(1)?)?, names.source(of, of.operand(2)?)?);
    let kind = [("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)];
    let combine = match kind.into_iter().find(|(name, _)| of.has(name)) {
        Some((_, combine)) => Some((combine, names.source(of, of.operand(3)?)?)),
        None => None,
    };
    Ok(Operation::SetPredicate { f, a, b, combine, d, complement })
}

/// `set.lt.u32.f32`: all ones or zero, or 1.0 and 0.0 for a float result.
fn set(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let [to, from] = of.types()[..] else { return Err(of.unknown()) };
    if of.operands.len() != 3 {
        return Err(of.unknown());
    }
    let f = compare::comparison(of.parts.get(1).unwrap_or(&""), from).ok_or_else(|| of.unknown())?;
    let d = names.destination(of, of.operand(0)?)?;
    let (a, b) = (names.source(of, of.operand(1)?)?, names.source(of, of.operand(2)?)?);
    let values = match to {
        Type::F32 => [0, u64::from(1.0f32.to_bits())],
        Type::U32 | Type::S32 => [0, u64::from(u32::MAX)],
        _ => return Err(of.unknown()),
    };
    Ok(Operation::Set { f, d, a, b, values })
}

fn select(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let d = names.destination(of, of.operand(0)?)?;
    let mut source = |index: usize| -> Result<_> { names.source(of, of.operand(index)?) };
    let f = |a: &[u64; LANES], b: &[u64; LANES], p: &[u64; LANES]| {
        std::array::from_fn(|i| if p[i] & 1 != 0 { a[i] } else { b[i] })
    };
    Ok(Operation::Ternary { f, d, a: source(1)?, b: source(2)?, c: source(3)? })
}

/// `slct`: the first where the third is not negative.
fn select_by_sign(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let d = names.destination(of, of.operand(0)?)?;
    let mut source = |index: usize| -> Result<_> { names.source(of, of.operand(index)?) };
    let f: crate::row::Ternary = match of.types()[..] {
        [_, Type::S32] => |a, b, c| std::array::from_fn(|i| if c[i] as i32 >= 0 { a[i] } else { b[i] }),
        [_, Type::F32] => {
            |a, b, c| std::array::from_fn(|i| if f32::from_bits(c[i] as u32) >= 0.0 { a[i] } else { b[i] })
        }
        _ => return Err(of.unknown()),
    };
    Ok(Operation::Ternary { f, d, a: source(1)?, b: source(2)?, c: source(3)? })
}

fn logic(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let d = names.destination(of, of.operand(0)?)?;
    let mut source = |index: usize| -> Result<_> { names.source(of, of.operand(index)?) };
    let crate::instruction::Operand::Imm(table) = source(4)? else { return Err(of.unknown()) };
    Ok(Operation::Logic { d, a: source(1)?, b: source(2)?, c: source(3)?, table: table as u8 })
}

/// `testp.finite.f32` and the like.
fn test(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let d = names.destination(of, of.operand(0)?)?;
    let a = names.source(of, of.operand(1)?)?;
    let f = match (of.parts.get(1).copied().unwrap_or(""), of.ty()?) {
        ("finite", Type::F32) => row!(f32, |x| x.is_finite()),
        ("infinite", Type::F32) => row!(f32, |x| x.is_infinite()),
        ("number", Type::F32) => row!(f32, |x| !x.is_nan()),
        ("notanumber", Type::F32) => row!(f32, |x| x.is_nan()),
        ("normal", Type::F32) => row!(f32, |x| x.is_normal()),
        ("subnormal", Type::F32) => row!(f32, |x| x.is_subnormal()),
        ("finite", Type::F64) => row!(f64, |x| x.is_finite()),
        ("infinite", Type::F64) => row!(f64, |x| x.is_infinite()),
        ("notanumber", Type::F64) => row!(f64, |x| x.is_nan()),
        _ => return Err(of.unknown()),
    };
    Ok(Operation::Unary { f, d, a })
}
