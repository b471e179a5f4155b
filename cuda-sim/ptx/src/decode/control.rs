//! Barriers and what the lanes of a warp do together.

use crate::instruction::{DISCARD, Operand, Operation, ShuffleMode, VoteMode};
use crate::parse::{Names, Raw, Result, Statement};
use crate::value::atomic::reduction;

pub(crate) fn barrier(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    if of.has("cluster") {
        return Err(of.unknown());
    }
    if of.has("warp") {
        return Ok(Operation::WarpBarrier { mask: names.source(of, of.operand(0)?)? });
    }
    if of.has("red") {
        let count = of.has("popc");
        let mode = if of.has("and") { VoteMode::All } else { VoteMode::Any };
        if of.operands.len() != 3 {
            return Err(of.unknown());
        }
        let d = names.destination(of, of.operand(0)?)?;
        let id = names.source(of, of.operand(1)?)?;
        let a = names.source(of, of.operand(2)?)?;
        return Ok(Operation::BarrierReduce { id, mode, count, d, a });
    }
    let id = names.source(of, of.operand(0)?)?;
    let threads = match of.operands.get(1) {
        Some(raw) => Some(names.source(of, raw)?),
        None => None,
    };
    Ok(Operation::Barrier { id, threads, arrive_only: of.has("arrive") })
}

pub(crate) fn warp(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let (d, valid) = match of.operand(0)? {
        Raw::Pair(first, second) => (names.named(of, first)?, names.named(of, second)?),
        raw => (names.destination(of, raw)?, DISCARD),
    };
    let mut source = |index: usize| -> Result<_> { names.source(of, of.operand(index)?) };
    match of.opcode() {
        "activemask" => Ok(Operation::ActiveMask { d }),
        // The forms without `.sync` left the language with sm_70.
        _ if !of.has("sync") => Err(of.unknown()),
        "shfl" => {
            let modes = [
                ("up", ShuffleMode::Up),
                ("down", ShuffleMode::Down),
                ("bfly", ShuffleMode::Butterfly),
                ("idx", ShuffleMode::Index),
            ];
            let found = modes.into_iter().find(|(name, _)| of.has(name));
            let (_, mode) = found.ok_or_else(|| of.unknown())?;
            let (a, b, clamp, mask) = (source(1)?, source(2)?, source(3)?, source(4)?);
            Ok(Operation::Shuffle { mode, d, valid, a, b, clamp, mask })
        }
        "vote" => {
            let modes = [
                ("all", VoteMode::All),
                ("any", VoteMode::Any),
                ("uni", VoteMode::Uniform),
                ("ballot", VoteMode::Ballot),
            ];
            let found = modes.into_iter().find(|(name, _)| of.has(name));
            let (_, mode) = found.ok_or_else(|| of.unknown())?;
            Ok(Operation::Vote { mode, d, a: source(1)?, mask: source(2)? })
        }
        "match" => {
            let size = of.ty()?.size();
            let (a, mask): (Operand, Operand) = (source(1)?, source(2)?);
            Ok(match of.has("all") {
                true => Operation::MatchAll { size, d, valid, a, mask },
                false => Operation::MatchAny { size, d, a, mask },
            })
        }
        _ => {
            let name = of.parts.get(2).copied().unwrap_or("");
            let f = reduction(name, of.ty()?).ok_or_else(|| of.unknown())?;
            Ok(Operation::Reduce { f, d, a: source(1)?, mask: source(2)? })
        }
    }
}
