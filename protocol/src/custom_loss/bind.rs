//! Arguments to the parameters of an operation, as Python does it.

use super::place::{Given, Place};
use super::signatures::Signature;
use super::{Argument, GraphError};

/// One argument per parameter of the signature.
///
/// # Errors
/// Names the parameter that has none, or the argument that has none.
pub(super) fn bind(place: &Place<'_>, signature: &Signature, given: Given) -> Result<Vec<Argument>, GraphError> {
    let mut positional = given.positional.into_iter();
    let mut bound = Vec::new();
    for parameter in signature.parameters() {
        bound.push(match parameter.is_variadic {
            true => variadic(&mut positional),
            false => positional.next().unwrap_or(Argument::Absent),
        });
    }
    if positional.next().is_some() {
        return Err(place.refused(format!("has more positional arguments than ({})", signature.parameters)));
    }
    for (key, argument) in given.named {
        let Some(at) = position(signature, &bound, &key) else {
            // Functions of torch pass their defaults on.
            if argument == Argument::None {
                continue;
            }
            return Err(
                place.refused(format!("has no argument {key:?}, or has it twice; it takes ({})", signature.parameters))
            );
        };
        if let Some(slot) = bound.get_mut(at) {
            *slot = argument;
        }
    }
    for (parameter, argument) in signature.parameters().zip(&bound) {
        if !parameter.is_optional && *argument == Argument::Absent {
            return Err(place.refused(format!("argument {:?} is missing", parameter.name())));
        }
    }
    Ok(bound)
}

/// The remaining positional arguments; one list stands for its items.
fn variadic(positional: &mut impl Iterator<Item = Argument>) -> Argument {
    let mut rest: Vec<_> = positional.collect();
    match rest.len() {
        0 => Argument::Absent,
        1 => match rest.remove(0) {
            list @ (Argument::List(_) | Argument::Tuple(_)) => list,
            single => Argument::List(vec![single]),
        },
        _ => Argument::List(rest),
    }
}

/// The parameter of this name that has no argument yet.
fn position(signature: &Signature, bound: &[Argument], key: &str) -> Option<usize> {
    let mut parameters = signature.parameters().zip(bound);
    parameters.position(|(parameter, argument)| parameter.is_called(key) && *argument == Argument::Absent)
}
