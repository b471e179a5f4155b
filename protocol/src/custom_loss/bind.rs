//! Binds arguments to the parameters of an operation, as Python does.

use super::place::{Given, Place};
use super::signatures::Signature;
use super::{Argument, GraphError};

/// Returns one argument per parameter of the signature.
///
/// # Errors
/// The error names the parameter without an argument, or the argument without a parameter.
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
            // Functions of torch pass their defaults on explicitly.
            if argument == Argument::None {
                continue;
            }
            return Err(place.refused(format!(
                "unexpected or repeated argument {key:?}; the parameters are ({})",
                signature.parameters
            )));
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

/// Returns the remaining positional arguments; one list stands for its items.
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

/// Returns the position of the parameter of this name if it is still without an argument.
fn position(signature: &Signature, bound: &[Argument], key: &str) -> Option<usize> {
    let mut parameters = signature.parameters().zip(bound);
    parameters.position(|(parameter, argument)| parameter.is_called(key) && *argument == Argument::Absent)
}
