//! Methods of Python's strings that `minijinja` lacks, or supports without some of their arguments.

use minijinja::value::{Kwargs, Tuple, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::python_text;

/// Calls a method; returns `None` if it is not one of these.
///
/// # Errors
///
/// The same errors as in Python.
pub(super) fn call(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let made = match method {
        "split" | "rsplit" => split(text, method == "rsplit", args)?,
        "splitlines" => lines(text, args)?,
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            partition(text, non_empty(separator)?, method == "rpartition")
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "zfill" => {
            let (width,): (i64,) = from_args(args)?;
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let (sign, zeros) = (&text[..text.len() - digits.len()], "0".repeat(missing(text, width)));
            Value::from([sign, &zeros, digits].concat())
        }
        "ljust" | "rjust" | "center" => justified(text, method, args)?,
        "title" => Value::from(titled(text)),
        "casefold" => Value::from(text.to_lowercase().replace('ß', "ss").replace('ς', "σ")),
        "istitle" => Value::from(text.chars().any(is_cased) && titled(text) == text),
        "isdecimal" => Value::from(
            !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || (c > '\u{7f}' && c.is_numeric())),
        ),
        "isidentifier" => Value::from(is_identifier(text)),
        "isprintable" => Value::from(text.chars().all(python_text::is_printable)),
        "swapcase" => Value::from(text.chars().flat_map(swapped).collect::<String>()),
        "expandtabs" => {
            let (size,): (Option<i64>,) = from_args(args)?;
            Value::from(expanded(text, usize::try_from(size.unwrap_or(8)).unwrap_or(0)))
        }
        "index" | "rindex" => searched(text, method, args)?,
        "find" | "rfind" | "count" | "startswith" | "endswith" if args.len() > 1 => searched(text, method, args)?,
        _ => return Ok(None),
    };
    Ok(Some(made))
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn non_empty(separator: &str) -> Result<&str, Error> {
    if separator.is_empty() { Err(invalid("empty separator")) } else { Ok(separator) }
}

/// Returns the number of characters that a text lacks for a width.
fn missing(text: &str, width: i64) -> usize {
    usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count())
}

/// Returns whether Python treats a character as white space.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

fn split(text: &str, from_right: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator, most, named): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = separator.or(named.get("sep")?);
    let most = most.or(named.get("maxsplit")?).and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    named.assert_all_used()?;
    let mut parts: Vec<&str> = match separator {
        Some(separator) if from_right => text.rsplitn(most.saturating_add(1), non_empty(separator)?).collect(),
        Some(separator) => text.splitn(most.saturating_add(1), non_empty(separator)?).collect(),
        None => words(text, from_right, most),
    };
    if from_right {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

/// Returns the parts between white space, in the order of the search. After `most` parts, the rest is the last one.
fn words(text: &str, from_right: bool, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = if from_right { rest.trim_end_matches(is_space) } else { rest.trim_start_matches(is_space) };
        if rest.is_empty() {
            return parts;
        }
        let cut = if parts.len() == most {
            None
        } else if from_right {
            rest.char_indices().rfind(|(_, character)| is_space(*character)).map(|(at, c)| at + c.len_utf8())
        } else {
            rest.find(is_space)
        };
        let Some(cut) = cut else {
            parts.push(rest);
            return parts;
        };
        let (before, after) = rest.split_at(cut);
        let (part, remaining) = if from_right { (after, before) } else { (before, after) };
        parts.push(part);
        rest = remaining;
    }
}

fn lines(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (keep, named): (Option<bool>, Kwargs) = from_args(args)?;
    let keep = keep.or(named.get("keepends")?).unwrap_or(false);
    named.assert_all_used()?;
    Ok(split_lines(text, keep).into_iter().map(Value::from).collect())
}

/// Returns the lines of a text, with their ends if `keep` is set.
pub(super) fn split_lines(text: &str, keep: bool) -> Vec<&str> {
    let ends = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends).unwrap_or(rest.len());
        let after = &rest[end..];
        let after = after.strip_prefix("\r\n").unwrap_or_else(|| {
            let mut characters = after.chars();
            characters.next();
            characters.as_str()
        });
        let whole = &rest[..rest.len() - after.len()];
        lines.push(if keep { whole } else { &rest[..end] });
        rest = after;
    }
    lines
}

fn partition(text: &str, separator: &str, from_right: bool) -> Value {
    let found = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match found {
        Some((before, after)) => [before, separator, after],
        None if from_right => ["", "", text],
        None => [text, "", ""],
    };
    Value::from(Tuple::from(parts.map(Value::from)))
}

fn justified(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill): (i64, Option<&str>) = from_args(args)?;
    let fill = fill.unwrap_or(" ");
    if fill.chars().count() != 1 {
        return Err(invalid("the fill character must be exactly one character long"));
    }
    let lacking = missing(text, width);
    let left = match method {
        "ljust" => 0,
        "rjust" => lacking,
        // As CPython rounds it.
        _ => lacking / 2 + usize::from(lacking % 2 == 1 && width % 2 == 1),
    };
    Ok(Value::from([&fill.repeat(left), text, &fill.repeat(lacking - left)].concat()))
}

fn is_cased(character: char) -> bool {
    character.is_lowercase() || character.is_uppercase()
}

/// Returns a text in which each letter after something else is upper case, and the others are lower case.
fn titled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = false;
    for character in text.chars() {
        if within {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
        within = is_cased(character);
    }
    out
}

fn is_identifier(text: &str) -> bool {
    let starts = text.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_');
    starts && text.chars().all(|character| character.is_alphanumeric() || character == '_')
}

fn swapped(character: char) -> Vec<char> {
    match character {
        lower if lower.is_lowercase() => lower.to_uppercase().collect(),
        upper if upper.is_uppercase() => upper.to_lowercase().collect(),
        other => vec![other],
    }
}

/// Replaces each tab by spaces up to the next multiple of `size`.
fn expanded(text: &str, size: usize) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for character in text.chars() {
        if character == '\t' {
            let spaces = if size == 0 { 0 } else { size - column % size };
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
            continue;
        }
        column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
        out.push(character);
    }
    out
}

/// Calls methods that look for a text within a part of another, whose ends are counted in characters.
fn searched(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (wanted, start, end): (&Value, Option<i64>, Option<i64>) = from_args(args)?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let bound = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
    let (start, end) = (bound(start.unwrap_or(0)), bound(end.unwrap_or(length)));
    let byte = |at: i64| {
        let at = usize::try_from(at).unwrap_or(0);
        text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
    };
    let part = if start <= end { &text[byte(start)..byte(end)] } else { "" };
    let text_of =
        |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| invalid("expected a text to look for"));
    if matches!(method, "startswith" | "endswith") {
        let wanted = if wanted.is_tuple() { wanted.try_iter()?.collect() } else { vec![wanted.clone()] };
        let wanted = wanted.iter().map(text_of).collect::<Result<Vec<_>, _>>()?;
        let found = match method {
            "startswith" => wanted.iter().any(|text| part.starts_with(text)),
            _ => wanted.iter().any(|text| part.ends_with(text)),
        };
        return Ok(Value::from(found));
    }
    let wanted = text_of(wanted)?;
    if method == "count" {
        return Ok(Value::from(part.matches(&wanted).count()));
    }
    let found = if matches!(method, "find" | "index") { part.find(&wanted) } else { part.rfind(&wanted) };
    match found {
        Some(at) => Ok(Value::from(start + i64::try_from(part[..at].chars().count()).unwrap_or(0))),
        None if matches!(method, "index" | "rindex") => Err(invalid("substring not found")),
        None => Ok(Value::from(-1)),
    }
}
