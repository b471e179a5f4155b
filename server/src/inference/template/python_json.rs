//! The filter `tojson` as chat templates expect it: Python's `json.dumps(value, ensure_ascii=False)`, not escaped for HTML.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::BYTES_PER_FUEL;

/// Levels of a value that is written, one stack frame each.
const MAX_DEPTH: usize = 128;

/// How Python's `json.dumps` lays out a value.
#[derive(Clone, Copy, Default)]
struct Layout {
    /// Spaces per level; all on one line when `None`.
    indent: Option<usize>,
    /// Escape what is not ASCII.
    ascii: bool,
    /// Write members in the order of their keys.
    sorted: bool,
}

/// The filter.
pub(super) fn tojson(
    state: &State<'_, '_>,
    value: &Value,
    indent: Option<usize>,
    options: Kwargs,
) -> Result<Value, Error> {
    let named = options.get::<Option<usize>>("indent")?;
    let flag = |name: &str| Ok::<_, Error>(options.get::<Option<bool>>(name)?.unwrap_or(false));
    let layout = Layout { indent: indent.or(named), ascii: flag("ensure_ascii")?, sorted: flag("sort_keys")? };
    options.assert_all_used()?;
    let mut text = String::new();
    write(value, layout, &|items| state.consume_fuel(items), 0, &mut text)?;
    Ok(Value::from(text))
}

/// A value on one line, as Python writes it.
///
/// # Errors
/// When it is nested too deeply, or no JSON.
pub(crate) fn to_line(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write(value, Layout::default(), &|_| Ok(()), 0, &mut text)?;
    Ok(text)
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Takes the price of so many items.
type Charge<'a> = &'a dyn Fn(u64) -> Result<(), Error>;

fn write(value: &Value, layout: Layout, charge: Charge<'_>, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(refused(format!("tojson: more than {MAX_DEPTH} levels")));
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&value.to_string()),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            charge((text.len() / BYTES_PER_FUEL) as u64)?;
            string(text, layout.ascii, out);
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()? {
                charge(1)?;
                items.push((None, item));
            }
            group(['[', ']'], items, (layout, charge), depth, out)?;
        }
        ValueKind::Map => {
            let mut members = Vec::new();
            for key in value.try_iter()? {
                charge(1)?;
                let name = match key.kind() {
                    ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
                        return Err(refused(format!("tojson: a {} is no name", key.kind())));
                    }
                    _ => key.as_str().map_or_else(|| key.to_string(), str::to_owned),
                };
                charge((name.len() / BYTES_PER_FUEL) as u64)?;
                members.push((Some(name), value.get_item(&key)?));
            }
            if layout.sorted {
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            group(['{', '}'], members, (layout, charge), depth, out)?;
        }
        kind => return Err(refused(format!("tojson: a {kind} is not JSON"))),
    }
    Ok(())
}

/// An array, or an object where parts have names.
fn group(
    [open, close]: [char; 2],
    parts: Vec<(Option<String>, Value)>,
    (layout, charge): (Layout, Charge<'_>),
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    let line = |level: usize, out: &mut String| {
        let Some(indent) = layout.indent else { return Ok(()) };
        let spaces = indent.min(16) * level;
        charge((spaces / BYTES_PER_FUEL) as u64)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', spaces));
        Ok::<_, Error>(())
    };
    out.push(open);
    let empty = parts.is_empty();
    for (index, (name, part)) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push_str(if layout.indent.is_some() { "," } else { ", " });
        }
        line(depth + 1, out)?;
        if let Some(name) = name {
            string(&name, layout.ascii, out);
            out.push_str(": ");
        }
        write(&part, layout, charge, depth + 1, out)?;
    }
    if !empty {
        line(depth, out)?;
    }
    out.push(close);
    Ok(())
}

fn string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other if ascii && !other.is_ascii() => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
