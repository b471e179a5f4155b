//! Loads, stores, atomics, addresses and asynchronous copies.

use crate::instruction::{DISCARD, Operand, Operation, Space};
use crate::parse::{Names, Result, Statement};
use crate::types::Type;
use crate::value::atomic;

/// The space that a suffix names; generic without one.
fn space(of: &Statement<'_>) -> Result<Space> {
    for part in &of.parts[1..] {
        match *part {
            "global" => return Ok(Space::Global),
            "shared" | "shared::cta" => return Ok(Space::Shared),
            "local" => return Ok(Space::Local),
            "param" | "param::entry" => return Ok(Space::Param),
            "const" => return Ok(Space::Const),
            "shared::cluster" => return Err(of.unknown()),
            _ => {}
        }
    }
    Ok(Space::Generic)
}

pub(crate) fn load(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let d = names.destinations(of, of.operand(0)?)?;
    let address = names.address(of, of.operand(1)?)?;
    Ok(Operation::Load { space: space(of)?, ty: scalar(of, d.len())?, strong: strong(of), d, address })
}

pub(crate) fn store(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let address = names.address(of, of.operand(0)?)?;
    let sources = names.sources(of, of.operand(1)?)?;
    Ok(Operation::Store { space: space(of)?, ty: scalar(of, sources.len())?, strong: strong(of), sources, address })
}

fn strong(of: &Statement<'_>) -> bool {
    ["volatile", "relaxed", "acquire", "release"].iter().any(|suffix| of.has(suffix))
}

/// The type of each of the elements, which have at most 32 bytes together.
fn scalar(of: &Statement<'_>, elements: usize) -> Result<Type> {
    match of.ty()? {
        Type::B128 | Type::Pred => Err(of.unknown()),
        ty if ty.size() * elements > 32 => Err(of.unknown()),
        ty => Ok(ty),
    }
}

pub(crate) fn atomic(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let known = ["and", "or", "xor", "exch", "cas", "inc", "dec", "add", "min", "max"];
    let name = known.into_iter().find(|name| of.has(name)).ok_or_else(|| of.unknown())?;
    let ty = of.ty()?;
    let f = atomic::function(name, ty).ok_or_else(|| of.unknown())?;
    let first = usize::from(of.opcode() == "atom");
    let d = if first == 1 { names.destination(of, of.operand(0)?)? } else { DISCARD };
    let address = names.address(of, of.operand(first)?)?;
    let b = names.source(of, of.operand(first + 1)?)?;
    let c = if name == "cas" { names.source(of, of.operand(first + 2)?)? } else { Operand::Imm(0) };
    Ok(Operation::Atomic { space: space(of)?, size: ty.size(), f, d, address, b, c })
}

/// `cvta`, `cvta.to` and `isspacep`.
pub(crate) fn address(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let d = names.destination(of, of.operand(0)?)?;
    let a = names.source(of, of.operand(1)?)?;
    let space = space(of)?;
    Ok(match of.opcode() {
        "isspacep" => Operation::IsSpace { space, d, a },
        _ if of.has("to") => Operation::FromGeneric { space, d, a },
        _ => Operation::ToGeneric { space, d, a },
    })
}

/// `cp.async` with its groups.
pub(crate) fn async_copy(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    if of.parts.get(1) != Some(&"async") || of.has("mbarrier") || of.has("bulk") {
        return Err(of.unknown());
    }
    if of.has("commit_group") {
        return Ok(Operation::AsyncCommit);
    }
    if of.has("wait_all") {
        return Ok(Operation::AsyncWait { keep: 0 });
    }
    let immediate = |operand| match operand {
        Operand::Imm(value) => Ok(value as usize),
        _ => Err(of.error("a number is expected")),
    };
    if of.has("wait_group") {
        let keep = immediate(names.source(of, of.operand(0)?)?)?;
        return Ok(Operation::AsyncWait { keep });
    }
    let to = names.address(of, of.operand(0)?)?;
    let from = names.address(of, of.operand(1)?)?;
    let size = immediate(names.source(of, of.operand(2)?)?)?;
    let source_size = match of.operands.get(3) {
        Some(raw) => Some(names.source(of, raw)?),
        None => None,
    };
    if !matches!(size, 4 | 8 | 16) || of.operands.len() > 4 {
        return Err(of.unknown());
    }
    Ok(Operation::AsyncCopy { size, source_size, to, from })
}
