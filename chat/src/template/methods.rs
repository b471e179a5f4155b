//! Python's methods of strings, lists and maps, which consume fuel before they create or visit something large.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::fuel::BYTES_PER_FUEL;
use super::shared::{charge, parts, with_texts};
use super::text_methods;

/// Prefix of errors that a template raised.
pub(super) const RAISED: &str = "raised: ";

/// Calls a method that `value` does not have by itself.
pub(super) fn call(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let mut size = charge(state, value)?;
    for arg in args {
        size += charge(state, arg)?;
    }
    if let Some(text) = value.as_str() {
        let bytes = made_bytes(text, method, args);
        state.consume_fuel(size.max(bytes.div_ceil(BYTES_PER_FUEL as u64)))?;
        if matches!(method, "split" | "rsplit" | "splitlines") {
            state.consume_fuel(parts(text, args.first().and_then(Value::as_str)))?;
        }
        if let Some(made) = text_methods::call(text, method, args)? {
            return Ok(made);
        }
        if let ("join", [items]) = (method, args) {
            if let Some(other) = items.try_iter()?.find(|item| item.as_str().is_none()) {
                let text = format!("join: expected texts, found a {}", other.kind());
                return Err(Error::new(ErrorKind::InvalidOperation, text));
            }
            return unknown_method_callback(state, value, method, &[with_texts(items)?]);
        }
    }
    match (value.kind(), method, args) {
        (ValueKind::Seq | ValueKind::Map, "copy", []) => return Ok(value.clone()),
        (ValueKind::Seq, "index", [wanted]) => {
            let at = value.try_iter()?.position(|item| item == *wanted);
            return at
                .map(Value::from)
                .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "item is not in the list"));
        }
        _ => {}
    }
    unknown_method_callback(state, value, method, args)
}

/// Returns the maximum number of bytes that a method of a text creates, in addition to its input.
fn made_bytes(text: &str, method: &str, args: &[Value]) -> u64 {
    let given = |at: usize| args.get(at).and_then(Value::as_str).unwrap_or_default();
    let number = |at: usize| {
        let number = args.get(at).and_then(Value::as_i64).unwrap_or(0);
        usize::try_from(number).unwrap_or(0)
    };
    let bytes = match method {
        "join" => args.first().and_then(Value::len).unwrap_or(0).saturating_mul(text.len()),
        "replace" => text.matches(given(0)).count().saturating_mul(given(1).len()),
        "format" => widths(text),
        // Some letters have longer forms.
        "upper" | "lower" | "title" | "capitalize" | "swapcase" => text.len().saturating_mul(3),
        "zfill" | "ljust" | "rjust" | "center" => text.len().saturating_add(number(0).saturating_mul(4)),
        "expandtabs" => {
            let width = if args.is_empty() { 8 } else { number(0) };
            text.len().saturating_add(text.matches('\t').count().saturating_mul(width))
        }
        "rsplit" | "partition" | "rpartition" | "removeprefix" | "removesuffix" => text.len(),
        _ => 0,
    };
    bytes as u64
}

/// Returns the sum of all numbers behind the beginning of a format's first field: no field is wider.
pub(super) fn widths(format: &str) -> usize {
    let (_, fields) = format.split_at(format.find(['%', '{']).unwrap_or(format.len()));
    let numbers = fields.split(|character: char| !character.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.fold(0, |sum: usize, digits| sum.saturating_add(digits.parse().unwrap_or(usize::MAX)))
}

/// Refuses the conversation with a message from the template.
pub(super) fn raise_exception(state: &mut State<'_, '_>, message: Value) -> Result<Value, Error> {
    charge(state, &message)?;
    Err(Error::new(ErrorKind::InvalidOperation, format!("{}{message}", RAISED)))
}
