//! Filters, tests and functions of Jinja2 that `minijinja` lacks, or supports without some of their arguments.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::fuel::BYTES_PER_FUEL;
use super::python_text::WIDEST;
use super::{cycler, operands, program, python_text, text_methods};

/// Characters beyond the length that `truncate` leaves, by default.
const LEEWAY: i64 = 5;

/// Registers the filters, tests and functions.
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("attr", attribute);
    environment.add_filter("center", center);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("dictsort", |map: &Value, args: Rest<ValueOrKwargs>| {
        filters::dictsort(map, named(args, &["case_sensitive", "by", "reverse"])?)
    });
    environment.add_filter("e", escape);
    environment.add_filter("escape", escape);
    environment.add_filter("forceescape", |value: &Value| Value::from_safe_string(escaped(&value.to_string())));
    environment.add_filter("float", float);
    environment.add_filter("format", format);
    environment.add_filter("indent", indent);
    environment.add_filter("int", int);
    environment
        .add_filter("list", |state: &State<'_, '_>, value: Value| filters::list(state, operands::iterable(value)?));
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", url_encoded);
    environment.add_filter("wordcount", |value: &Value| words(&value.to_string()));
    environment.add_test("callable", |value: &Value| {
        let is_function = value.kind() == ValueKind::Plain && value.as_object().is_some();
        value.is_undefined() || is_function || operands::is_macro(value)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_test("mapping", |value: &Value| value.kind() == ValueKind::Map && !operands::has_attributes(value));
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
    });
    environment.add_function("cycler", cycler::cycler);
    environment.add_function("dict", dictionary);
    environment.add_function("namespace", |first: Option<Value>, named: Kwargs| {
        let all = dictionary(first, named)?;
        minijinja::functions::namespace(Some(ValueOrKwargs::from(all)))
    });
}

/// Returns an attribute, which an item is not.
fn attribute(value: &Value, name: &str) -> Result<Value, Error> {
    let has_items = value.kind() == ValueKind::Map && !operands::has_attributes(value);
    if has_items { Ok(Value::UNDEFINED) } else { value.get_attr(name) }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Returns positional arguments by their names, with the named ones.
fn named(args: Rest<ValueOrKwargs>, names: &[&str]) -> Result<Kwargs, Error> {
    let mut positional = args.into_values();
    let given = match positional.pop_if(|last| last.is_kwargs()) {
        Some(given) => Kwargs::try_from(given)?,
        None => Kwargs::from_iter(std::iter::empty::<(&str, Value)>()),
    };
    if positional.len() > names.len() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let mut all: Vec<(String, Value)> = names.iter().map(|name| (*name).to_owned()).zip(positional).collect();
    for name in given.args() {
        all.push((name.to_owned(), given.peek(name)?));
    }
    Ok(Kwargs::from_iter(all))
}

fn pay(state: &State<'_, '_>, bytes: usize) -> Result<(), Error> {
    state.consume_fuel((bytes / BYTES_PER_FUEL) as u64)
}

fn center(state: &State<'_, '_>, value: &Value, width: Option<i64>) -> Result<Value, Error> {
    let width = width.unwrap_or(80);
    pay(state, usize::try_from(width).unwrap_or(0))?;
    let centred = text_methods::call(&value.to_string(), "center", &[Value::from(width)])?;
    Ok(centred.unwrap_or_default())
}

fn default(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let options = named(args, &["default_value", "boolean"])?;
    let other = if options.has("default_value") { options.get("default_value")? } else { Value::from("") };
    let boolean = options.get::<Option<Value>>("boolean")?.is_some_and(|flag| flag.is_true());
    options.assert_all_used()?;
    Ok(if value.is_undefined() || (boolean && !value.is_true()) { other } else { value.clone() })
}

/// Escapes for HTML what is not escaped yet.
fn escape(value: &Value) -> Value {
    if value.is_safe() { value.clone() } else { Value::from_safe_string(escaped(&value.to_string())) }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            other => out.push(other),
        }
    }
    out
}

/// Converts to a float; what is not a number becomes the default.
fn float(state: &State<'_, '_>, value: &Value, default: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let default = default.or(options.get("default")?).unwrap_or_else(|| Value::from(0.0));
    filters::float(state, &trimmed(value)?, Some(default), options)
}

/// Converts to an integer; what is not a number becomes the default.
fn int(
    state: &State<'_, '_>,
    value: &Value,
    default: Option<Value>,
    base: Option<u32>,
    options: Kwargs,
) -> Result<Value, Error> {
    let default = default.or(options.get("default")?).unwrap_or_else(|| Value::from(0));
    let (value, in_base) = (trimmed(value)?, base.or(options.peek("base")?).unwrap_or(10));
    let number = match value.as_str() {
        Some(text) if in_base == 10 => text.parse().ok(),
        Some(text) => widest(text, in_base),
        None => python_text::float(&value),
    };
    match number.filter(|number| number.abs() >= WIDEST) {
        // Of texts, Python tries the float too.
        Some(number) if number.is_infinite() && value.as_str().is_some_and(|text| !is_decimal(text)) => Ok(default),
        Some(_) => Err(invalid("int: integers above 128 bits are not supported")),
        None => filters::int(state, &value, Some(default), base, options),
    }
}

/// Returns the number above all of so many digits, if a text may have only digits.
fn widest(text: &str, base: u32) -> Option<f64> {
    has_only_digits(text).then(|| f64::from(base).powf(text.len() as f64))
}

/// Returns whether a text may be an integer of base 10.
fn is_decimal(text: &str) -> bool {
    has_only_digits(text) && text.bytes().any(|byte| byte.is_ascii_digit())
}

fn has_only_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'_'))
}

fn trimmed(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(value.as_str().map_or_else(|| value.clone(), |text| Value::from(text.trim())))
}

/// Formats a text by the operator `%`.
fn format(state: &State<'_, '_>, text: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut values = args.into_values();
    let values = match values.pop_if(|last| last.is_kwargs()) {
        Some(named) => {
            let named = Kwargs::try_from(named)?;
            let pairs = named.args().map(|name| Ok((name.to_owned(), named.get::<Value>(name)?)));
            Value::from_pairs(pairs.collect::<Result<Vec<_>, Error>>()?)
        }
        None => Value::from(minijinja::value::Tuple::from(values)),
    };
    program::remainder(state, &Value::from(text.to_string()), &values)
}

fn indent(state: &State<'_, '_>, text: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let options = named(args, &["width", "first", "blank"])?;
    let width: Option<Value> = options.get("width")?;
    let flag = |name| Ok::<_, Error>(options.get::<Option<Value>>(name)?.is_some_and(|flag| flag.is_true()));
    let (first, blank) = (flag("first")?, flag("blank")?);
    options.assert_all_used()?;
    let indentation = match &width {
        None => " ".repeat(4),
        Some(width) if width.as_str().is_some() => width.to_string(),
        Some(width) => {
            let spaces = width.as_i64().ok_or_else(|| invalid("indent: expected a number or a text as the width"))?;
            pay(state, usize::try_from(spaces).unwrap_or(0))?;
            " ".repeat(usize::try_from(spaces).unwrap_or(0))
        }
    };
    // So that a last line break begins a line.
    let text = format!("{text}\n");
    let lines = text_methods::split_lines(&text, false);
    pay(state, indentation.len().saturating_mul(lines.len()))?;
    let mut out = String::new();
    for (index, line) in lines.into_iter().enumerate() {
        out.push_str(if index > 0 { "\n" } else { "" });
        let indented = if index == 0 { first } else { blank || !line.is_empty() };
        out.push_str(if indented { &indentation } else { "" });
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn truncate(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let options = named(args, &["length", "killwords", "end", "leeway"])?;
    let number = |name, other| Ok::<_, Error>(options.get::<Option<i64>>(name)?.unwrap_or(other));
    let (length, leeway) = (number("length", 255)?, number("leeway", LEEWAY)?);
    let cuts_words = options.get::<Option<Value>>("killwords")?.is_some_and(|flag| flag.is_true());
    let end: Option<&str> = options.get("end")?;
    let end = end.unwrap_or("...");
    options.assert_all_used()?;
    let text = value.to_string();
    let count = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let kept = length - count(end);
    if kept < 0 || leeway < 0 {
        return Err(invalid(format!(
            "truncate: expected a length of at least {} and a leeway of at least 0",
            count(end)
        )));
    }
    if count(&text) <= length.saturating_add(leeway) {
        return Ok(Value::from(text));
    }
    let start: String = text.chars().take(usize::try_from(kept).unwrap_or(0)).collect();
    let whole_words = start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words);
    Ok(Value::from([if cuts_words { &start } else { whole_words }, end].concat()))
}

fn url_encoded(value: &Value) -> Result<String, Error> {
    let pairs = match value.kind() {
        ValueKind::Map => value.try_iter()?.map(|key| Ok((key.clone(), value.get_item(&key)?))).collect(),
        ValueKind::Seq | ValueKind::Iterable => value
            .try_iter()?
            .map(|pair| Ok((pair.get_item_by_index(0)?, pair.get_item_by_index(1)?)))
            .collect::<Result<Vec<_>, Error>>(),
        _ => return Ok(quoted(&value.to_string(), true)),
    };
    let part = |value: &Value| quoted(&value.to_string(), false).replace("%20", "+");
    Ok(pairs?.iter().map(|(key, value)| format!("{}={}", part(key), part(value))).collect::<Vec<_>>().join("&"))
}

fn quoted(text: &str, keeps_slashes: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            b'/' if keeps_slashes => out.push('/'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Counts runs of letters, digits and underscores.
fn words(text: &str) -> usize {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .count()
}

/// Makes a map from another one or from pairs, and from named arguments.
fn dictionary(first: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let first = match first {
        Some(pairs) if matches!(pairs.kind(), ValueKind::Seq | ValueKind::Iterable) => {
            let pair = |pair: Value| match pair.len() {
                Some(2) => Ok((pair.get_item_by_index(0)?, pair.get_item_by_index(1)?)),
                _ => Err(invalid("dict: expected pairs")),
            };
            Some(Value::from_pairs(pairs.try_iter()?.map(pair).collect::<Result<Vec<_>, Error>>()?))
        }
        other => other,
    };
    minijinja::functions::dict(first, named)
}
