//! Values as Python's `str` and `repr` write them, where `minijinja` writes floats otherwise: `1e-05`, `1e+16`.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

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

/// Returns Python's `str` of a float, or of a list, a tuple or a map that contains one; `None` for values that
/// `minijinja` writes like Python. The caller must have paid for the value, so that it is finite.
///
/// # Errors
///
/// Fails if items can't be listed.
pub(super) fn other_text(value: &Value) -> Result<Option<String>, Error> {
    if let Some(float) = float(value) {
        return Ok(Some(float_repr(float)));
    }
    if !has_float(value)? {
        return Ok(None);
    }
    let mut text = String::new();
    repr(value, &mut text)?;
    Ok(Some(text))
}

/// Returns whether a list or a map contains a float at any depth.
fn has_float(value: &Value) -> Result<bool, Error> {
    match value.kind() {
        ValueKind::Number => Ok(float(value).is_some()),
        ValueKind::Seq | ValueKind::Map => {
            for item in value.try_iter()? {
                let inner = if value.kind() == ValueKind::Map { value.get_item(&item)? } else { item };
                if has_float(&inner)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
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
