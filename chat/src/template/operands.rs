//! Operands that `minijinja` accepts and Python refuses.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::collecting;

/// Returns whether a value is a macro, which otherwise looks like a map.
pub(super) fn is_macro(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Macro")) || collecting::is_collecting(value)
}

/// Returns whether a value is a namespace, which otherwise looks like a map.
pub(super) fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Returns whether a value that looks like a map has attributes and no items.
pub(super) fn has_attributes(value: &Value) -> bool {
    let is_loop = value.as_object().is_some_and(|object| object.type_name().ends_with("::Loop"));
    is_loop || is_namespace(value) || is_macro(value)
}

/// Refuses `none`, which `minijinja` treats as an empty list.
pub(super) fn iterable(value: Value) -> Result<Value, Error> {
    if value.is_none() { Err(Error::new(ErrorKind::InvalidOperation, "none is not iterable")) } else { Ok(value) }
}

/// Refuses operands that Python can't compare, or search.
pub(super) fn check(name: &str, a: &Value, b: &Value) -> Result<(), Error> {
    let class = |value: &Value| match value.kind() {
        ValueKind::Bool => ValueKind::Number,
        kind => kind,
    };
    let fits = match name {
        "<" | "<=" | ">" | ">=" | "lt" | "le" | "gt" | "ge" | "lessthan" | "greaterthan" => {
            class(a) == class(b)
                && matches!(class(a), ValueKind::Number | ValueKind::String | ValueKind::Seq)
                && a.is_tuple() == b.is_tuple()
        }
        "in" => b.kind() != ValueKind::String || a.kind() == ValueKind::String,
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let text = format!("{name} is not supported between a {} and a {}", a.kind(), b.kind());
    Err(Error::new(ErrorKind::InvalidOperation, text))
}
