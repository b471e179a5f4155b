//! Comparisons of three or more operands, `a < b < c`.
//!
//! The machine compares two of them with an instruction that keeps the second one for the next comparison. Two
//! additional instructions before it pay for the compared values ([`charge`]), so jump targets are moved.

use minijinja::machinery::{Instruction, Instructions};
use minijinja::{Environment, Error, State, Value};

use super::shared::charge;

/// Name of the function that pays; no variable of a template can have it.
const PAID: &str = "<<";

/// Registers the function that [`paid`] calls: it returns its arguments, the last one first.
pub(super) fn pay_for_chains(environment: &mut Environment<'static>) {
    environment.add_function(PAID, |state: &mut State<'_, '_>, a: Value, b: Value| {
        charge(state, &a)?;
        charge(state, &b)?;
        Ok::<_, Error>(Value::from(vec![b, a]))
    });
}

/// Returns instructions in which comparisons of three operands are paid for.
pub(super) fn paid<'source>(code: Instructions<'source>) -> Instructions<'source> {
    let all = || (0..).map_while(|at| code.get(at));
    if !all().any(is_link) {
        return code;
    }
    let mut paid = Instructions::new(code.name(), code.source());
    // Where each instruction is now, and the end.
    let mut places = Vec::new();
    for (at, instruction) in (0..).zip(all()) {
        let mut add = |instruction: Instruction<'source>| match (code.get_span(at), code.get_line(at)) {
            (Some(span), _) => paid.add_with_span(instruction, span),
            (None, Some(line)) => paid.add_with_line(instruction, u16::try_from(line).unwrap_or(u16::MAX)),
            (None, None) => paid.add(instruction),
        };
        let place = if is_link(instruction) {
            let place = add(Instruction::CallFunction(PAID, Some(2)));
            // The first item comes to lie on top.
            add(Instruction::UnpackList(2));
            add(instruction.clone());
            place
        } else {
            add(instruction.clone())
        };
        places.push(place);
    }
    let end = (0..).find(|&at| paid.get(at).is_none()).unwrap_or(0);
    places.push(end);
    for at in 0..end {
        if let Some(target) = paid.get_mut(at).and_then(target) {
            *target = places.get(*target as usize).copied().unwrap_or(end);
        }
    }
    paid
}

fn is_link(instruction: &Instruction<'_>) -> bool {
    matches!(instruction, Instruction::CompareAndPreserve(_))
}

/// Returns the jump target of an instruction.
fn target<'a>(instruction: &'a mut Instruction<'_>) -> Option<&'a mut u32> {
    match instruction {
        Instruction::Iterate(target)
        | Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::BuildMacro(_, target, _) => Some(target),
        _ => None,
    }
}
