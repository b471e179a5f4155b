//! The filter `tojson` as chat templates expect it: Python's `json.dumps(value, ensure_ascii=False)`, not escaped for
//! HTML.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};

use super::fuel::BYTES_PER_FUEL;
use super::operands;
use super::python_text::{float, float_repr};

/// Maximum depth of a value that is written, with one stack frame per level.
const MAX_DEPTH: usize = 128;

/// Layout of a value in the form of Python's `json.dumps`.
struct Layout {
    /// Indentation per level; everything is on one line if `None`.
    indent: Option<String>,
    /// Separators between items, and between a name and its value.
    separators: [String; 2],
    /// Whether to escape characters that are not ASCII.
    ascii: bool,
    /// Whether to write members in the order of their keys.
    sorted: bool,
}

impl Layout {
    fn new(indent: Option<String>, separators: Option<[String; 2]>) -> Self {
        let comma = if indent.is_some() { "," } else { ", " };
        let separators = separators.unwrap_or_else(|| [comma, ": "].map(str::to_owned));
        Self { indent, separators, ascii: false, sorted: false }
    }
}

/// Options of the filter, in the order of `transformers`.
const OPTIONS: [&str; 4] = ["ensure_ascii", "indent", "separators", "sort_keys"];

/// Implements the filter `tojson`.
pub(super) fn tojson(state: &State<'_, '_>, value: &Value, options: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut positional = options.into_values();
    let named = match positional.pop_if(|last| last.is_kwargs()) {
        Some(named) => Kwargs::try_from(named)?,
        None => Kwargs::from_iter(std::iter::empty::<(&str, Value)>()),
    };
    if positional.len() > OPTIONS.len() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let mut positional = positional.into_iter();
    let mut given = [const { None }; OPTIONS.len()];
    for (option, name) in given.iter_mut().zip(OPTIONS) {
        let value = positional.next().or(named.get::<Option<Value>>(name)?);
        *option = value.filter(|value| !value.is_none() && !value.is_undefined());
    }
    named.assert_all_used()?;
    let [ascii, indent, separators, sorted] = given;
    let indent = indent.map(|indent| indent_of(state, &indent)).transpose()?;
    let separators = separators.map(|pair| separators_of(&pair)).transpose()?;
    let layout = Layout {
        ascii: ascii.is_some_and(|flag| flag.is_true()),
        sorted: sorted.is_some_and(|flag| flag.is_true()),
        ..Layout::new(indent, separators)
    };
    let mut text = String::new();
    write(value, &layout, &|items| state.consume_fuel(items), 0, &mut text)?;
    Ok(Value::from(text))
}

/// Returns the indentation for a number of spaces or a text.
fn indent_of(state: &State<'_, '_>, indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    let number = if indent.kind() == ValueKind::Bool { Some(i64::from(indent.is_true())) } else { indent.as_i64() };
    let number = number.ok_or_else(|| refused(format!("tojson: indent is {indent}, expected a number or a text")))?;
    let spaces = usize::try_from(number).unwrap_or(0);
    state.consume_fuel((spaces / BYTES_PER_FUEL) as u64)?;
    Ok(" ".repeat(spaces))
}

fn separators_of(pair: &Value) -> Result<[String; 2], Error> {
    let parts: Vec<Value> = match pair.as_str() {
        Some(text) => text.chars().map(|character| Value::from(character.to_string())).collect(),
        None => pair.try_iter()?.collect(),
    };
    match parts.iter().map(Value::as_str).collect::<Option<Vec<_>>>().as_deref() {
        Some([item, key]) => Ok([(*item).to_owned(), (*key).to_owned()]),
        _ => Err(refused(format!("tojson: separators is {pair}, expected two texts"))),
    }
}

/// A value on one line, as Python writes it.
///
/// # Errors
/// Fails if it is nested too deeply, or is not JSON.
pub(crate) fn to_line(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write(value, &Layout::new(None, None), &|_| Ok(()), 0, &mut text)?;
    Ok(text)
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Charges fuel for a number of items.
type Charge<'a> = &'a dyn Fn(u64) -> Result<(), Error>;

fn write(value: &Value, layout: &Layout, charge: Charge<'_>, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(refused(format!("tojson: more than {MAX_DEPTH} levels")));
    }
    if operands::is_namespace(value) {
        return Err(refused("tojson: a namespace is not JSON".to_owned()));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
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
            group(['[', ']'], items, layout, charge, depth, out)?;
        }
        ValueKind::Map => {
            let mut members = Vec::new();
            for key in value.try_iter()? {
                charge(1)?;
                charge((key.as_str().map_or(0, str::len) / BYTES_PER_FUEL) as u64)?;
                let member = value.get_item(&key)?;
                members.push((key, member));
            }
            if layout.sorted {
                check_order(&members)?;
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            let named = |(key, member)| Ok((Some(name(&key)?), member));
            let members = members.into_iter().map(named).collect::<Result<Vec<_>, Error>>()?;
            group(['{', '}'], members, layout, charge, depth, out)?;
        }
        kind => return Err(refused(format!("tojson: a {kind} is not JSON"))),
    }
    Ok(())
}

fn number(value: &Value) -> String {
    match float(value) {
        Some(float) if float.is_nan() => "NaN".to_owned(),
        Some(float) if float.is_infinite() => if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Some(float) => float_repr(float),
        None => value.to_string(),
    }
}

fn name(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::Number => Ok(number(key)),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        kind => Err(refused(format!("tojson: a {kind} can't be a key"))),
    }
}

/// Refuses keys that Python can't compare.
fn check_order(members: &[(Value, Value)]) -> Result<(), Error> {
    let class = |key: &Value| match key.kind() {
        ValueKind::Bool => ValueKind::Number,
        kind => kind,
    };
    match members.windows(2).find(|pair| class(&pair[0].0) != class(&pair[1].0)) {
        None => Ok(()),
        Some(pair) => {
            let [a, b] = [&pair[0].0, &pair[1].0].map(Value::kind);
            Err(refused(format!("tojson: sort_keys with a key that is a {a} and one that is a {b}")))
        }
    }
}

/// Writes an array, or an object if its parts have names.
fn group(
    [open, close]: [char; 2],
    parts: Vec<(Option<String>, Value)>,
    layout: &Layout,
    charge: Charge<'_>,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    let line = |level: usize, out: &mut String| {
        let Some(indent) = &layout.indent else { return Ok(()) };
        charge((indent.len().saturating_mul(level) / BYTES_PER_FUEL) as u64)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(indent.as_str(), level));
        Ok::<_, Error>(())
    };
    let [item, key] = &layout.separators;
    let separate = |separator: &str, out: &mut String| {
        charge((separator.len() / BYTES_PER_FUEL) as u64)?;
        out.push_str(separator);
        Ok::<_, Error>(())
    };
    out.push(open);
    let empty = parts.is_empty();
    for (index, (name, part)) in parts.into_iter().enumerate() {
        if index > 0 {
            separate(item, out)?;
        }
        line(depth + 1, out)?;
        if let Some(name) = name {
            string(&name, layout.ascii, out);
            separate(key, out)?;
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
