//! Values as Python's `str` and `repr` write them, where `minijinja` writes them differently: `1e-05`, `1e+16`,
//! `Undefined` and escaped characters in lists and maps.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::operands;

/// Magnitude from which integers do not fit into 128 bits with their sign: 2^127.
pub(super) const WIDEST: f64 = i128::MAX as f64;

/// Returns the float if a value is one.
pub(super) fn float(value: &Value) -> Option<f64> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    f64::try_from(value.clone()).ok()
}

/// Returns Python's `repr` of a float: the shortest digits that are read as the same number, with an exponent outside
/// 1e-4 to 1e16.
pub(super) fn float_repr(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    let digits = format!("{float:?}");
    let Some((mantissa, exponent)) = digits.split_once('e') else { return digits };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{mantissa}e-{exponent:0>2}"),
        None => format!("{mantissa}e+{exponent:0>2}"),
    }
}

/// Returns Python's `str` of a float, or of a list, a tuple or a map that contains what differs; `None` for values that
/// `minijinja` writes like Python. The caller must have paid for the value, so that it is finite.
///
/// # Errors
///
/// Fails if items can't be listed.
pub(super) fn other_text(value: &Value) -> Result<Option<String>, Error> {
    if let Some(float) = float(value) {
        return Ok(Some(float_repr(float)));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map) || !differs(value)? {
        return Ok(None);
    }
    repr_of(value).map(Some)
}

/// Returns whether a value is a float or another one that is written differently within a list, or contains one at any
/// depth.
fn differs(value: &Value) -> Result<bool, Error> {
    if operands::is_namespace(value) {
        // Its members would be in another order.
        return Err(Error::new(ErrorKind::InvalidOperation, "the text of a namespace is not supported"));
    }
    match value.kind() {
        ValueKind::Undefined => Ok(true),
        ValueKind::Number => Ok(float(value).is_some()),
        ValueKind::String => Ok(value.as_str().is_some_and(|text| !text.chars().all(is_plain))),
        ValueKind::Seq | ValueKind::Map => {
            for item in value.try_iter()? {
                let inner = if value.kind() == ValueKind::Map { value.get_item(&item)? } else { item.clone() };
                if differs(&inner)? || (value.kind() == ValueKind::Map && differs(&item)?) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn is_plain(character: char) -> bool {
    is_printable(character) || matches!(character, '\n' | '\r' | '\t')
}

/// Returns whether Python prints a character as it is.
pub(super) fn is_printable(character: char) -> bool {
    let mut encoded = [b'a', 0, 0, 0, 0];
    let length = 1 + character.encode_utf8(&mut encoded[1..]).len();
    // Behind a letter, marks that combine with it are not escaped.
    let text = std::str::from_utf8(&encoded[..length]).unwrap_or_default();
    matches!(character, '\'' | '"' | '\\') || text.escape_debug().eq(text.chars())
}

/// Returns Python's `repr` of a text.
fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if is_printable(character) => out.push(character),
            _ => out.push_str(&match u32::from(character) {
                code @ 0..=0xff => format!("\\x{code:02x}"),
                code @ 0x100..=0xffff => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push(quote);
    out
}

/// Returns Python's `repr` of a value, which must have been paid for.
///
/// # Errors
///
/// Fails if items can't be listed.
pub(super) fn repr_of(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    repr(value, &mut text)?;
    Ok(text)
}

fn repr(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Seq => {
            let [open, close] = if value.is_tuple() { ["(", ")"] } else { ["[", "]"] };
            out.push_str(open);
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                repr(&item, out)?;
            }
            out.push_str(if value.is_tuple() && value.len() == Some(1) { "," } else { "" });
            out.push_str(close);
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                repr(&key, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, out)?;
            }
            out.push('}');
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::String => out.push_str(&text_repr(value.as_str().unwrap_or_default())),
        _ => match float(value) {
            Some(float) => out.push_str(&float_repr(float)),
            None => out.push_str(&format!("{value:?}")),
        },
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::float_repr;

    #[test]
    fn floats_are_written_as_by_python() {
        for (float, expected) in [
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.234_567_890_123_456_8e20, "1.2345678901234568e+20"),
            (1e-300, "1e-300"),
            (1e100, "1e+100"),
            (-0.0, "-0.0"),
            (2.5, "2.5"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float_repr(float), expected);
        }
    }
}
