//! Conversions of the operator `%` that `minijinja` lacks: `%r`, `%i`, `%u`, widths from arguments, and floats as integers.

use minijinja::{Error, ErrorKind, Value};

use super::python_text::{WIDEST, float, repr_of};

/// Returns a format and its arguments in which only conversions are left that `minijinja` has.
///
/// # Errors
///
/// An error if an argument for a width is missing, or is not a number.
pub(super) fn simplified(format: &str, values: Vec<Value>) -> Result<(String, Vec<Value>), Error> {
    let mut values = values.into_iter();
    let (mut text, mut taken) = (String::with_capacity(format.len()), Vec::new());
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        text.push_str(&rest[..=start]);
        rest = &rest[start + 1..];
        if rest.starts_with('(') {
            // A name has no place among the arguments.
            continue;
        }
        loop {
            let mut characters = rest.chars();
            let Some(character) = characters.next() else { break };
            rest = characters.as_str();
            match character {
                '#' | '0'..='9' | ' ' | '-' | '+' | '.' => text.push(character),
                'h' | 'l' | 'L' => {}
                '*' => {
                    let width = values.next().as_ref().and_then(Value::as_i64);
                    let width = width.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "* wants an integer"))?;
                    text.push_str(&width.to_string());
                }
                '%' => {
                    text.push('%');
                    break;
                }
                conversion => {
                    let (conversion, value) = converted(conversion, values.next())?;
                    text.push(conversion);
                    taken.extend(value);
                    break;
                }
            }
        }
    }
    text.push_str(rest);
    taken.extend(values);
    Ok((text, taken))
}

fn converted(conversion: char, value: Option<Value>) -> Result<(char, Option<Value>), Error> {
    let Some(value) = value else { return Ok((conversion, None)) };
    Ok(match (conversion, float(&value)) {
        ('d' | 'i' | 'u', Some(float)) if float.is_finite() && float.abs() >= WIDEST => {
            let text = "%d: integers above 128 bits are not supported";
            return Err(Error::new(ErrorKind::InvalidOperation, text));
        }
        ('d' | 'i' | 'u', Some(float)) if float.is_finite() => ('d', Some(Value::from(float as i128))),
        ('i' | 'u', _) => ('d', Some(value)),
        ('r', _) => ('s', Some(Value::from(repr_of(&value)?))),
        _ => (conversion, Some(value)),
    })
}
