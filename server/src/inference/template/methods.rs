//! Python's methods of texts, lists and maps, paid for before they make or visit something large.

use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::BYTES_PER_FUEL;
use super::shared::{charge, parts};

/// Calls a method that `value` does not have by itself.
pub(super) fn call(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let mut size = charge(state, value)?;
    for arg in args {
        size += charge(state, arg)?;
    }
    if let Some(text) = value.as_str() {
        let bytes = made_bytes(text, method, args);
        state.consume_fuel(size.max(bytes.div_ceil(BYTES_PER_FUEL as u64)))?;
        if matches!(method, "split" | "splitlines") {
            state.consume_fuel(parts(text, args.first().and_then(Value::as_str)))?;
        }
    }
    unknown_method_callback(state, value, method, args)
}

/// The most bytes that a method of a text makes, beyond what it is given.
fn made_bytes(text: &str, method: &str, args: &[Value]) -> u64 {
    let given = |at: usize| args.get(at).and_then(Value::as_str).unwrap_or_default();
    let bytes = match method {
        "join" => args.first().and_then(Value::len).unwrap_or(0).saturating_mul(text.len()),
        "replace" => text.matches(given(0)).count().saturating_mul(given(1).len()),
        "format" => widths(text),
        // Some letters have longer forms.
        "upper" | "lower" | "title" | "capitalize" => text.len().saturating_mul(3),
        _ => 0,
    };
    bytes as u64
}

/// The sum of all numbers in a format: no field is wider.
fn widths(format: &str) -> usize {
    let numbers = format.split(|character: char| !character.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.fold(0, |sum: usize, digits| sum.saturating_add(digits.parse().unwrap_or(usize::MAX)))
}

/// Refuses the conversation with a text of the template's.
pub(super) fn raise_exception(state: &mut State<'_, '_>, message: Value) -> Result<Value, Error> {
    charge(state, &message)?;
    Err(Error::new(ErrorKind::InvalidOperation, format!("{}{message}", super::RAISED)))
}
