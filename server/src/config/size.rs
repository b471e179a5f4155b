//! Sizes of memory and files: a number in the unit of the setting, or with a unit of its own, such as `12GiB`.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// The units, largest first, with their bytes.
const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", MIB), ("KiB", 1 << 10), ("B", BYTE)];
const BYTE: u64 = 1;
const MIB: u64 = 1 << 20;

/// Reads a number of MiB: `4096`, `4096MiB` or `4GiB`.
///
/// # Errors
/// A message that contains the text and what was expected.
pub fn mebibytes<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    parse(text, MIB)
}

/// Reads a number of bytes: `4096`, `4KiB` or `1.5GiB`.
///
/// # Errors
/// A message that contains the text and what was expected.
pub fn bytes<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    parse(text, BYTE)
}

/// Formats bytes in the largest unit of which they are a multiple: `4 GiB`; in bytes, such as `50000`, otherwise.
pub fn exact(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| *unit > BYTE && bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{} {name}", bytes / unit))
}

/// Formats bytes in the largest unit that gives at least 1, with one decimal place: `3.7 GiB`.
pub fn rounded(bytes: u64) -> String {
    let (name, unit) = UNITS.into_iter().find(|(_, unit)| bytes >= *unit).unwrap_or(("B", BYTE));
    if unit == BYTE { format!("{bytes} B") } else { format!("{:.1} {name}", bytes as f64 / unit as f64) }
}

/// Formats a budget in whole MiB, or from 10 GiB on in GiB with a decimal place.
pub fn budget(bytes: u64) -> String {
    if bytes < 10 << 30 { format!("{} MiB", bytes / MIB) } else { rounded(bytes) }
}

fn parse<T: TryFrom<u64>>(text: &str, of: u64) -> Result<T, String> {
    let name = if of == MIB { "MiB" } else { "bytes" };
    let refused = || {
        format!(
            "invalid size {text:?}: expected a number of {name}, or one with a unit (KiB, MiB, GiB or TiB), such as 12GiB"
        )
    };
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim().replace('_', ""), &text[split..]);
    let unit = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((_, bytes)) => *bytes,
        None if unit.is_empty() => of,
        None => return Err(refused()),
    };
    let bytes = decimal(&number).and_then(|(value, scale)| scaled(value, scale, unit)).ok_or_else(refused)?;
    if !bytes.is_multiple_of(of) {
        return Err(format!("invalid size {text:?}: expected a whole number of {name}"));
    }
    T::try_from(bytes / of).map_err(|_| refused())
}

/// Reads a decimal number as digits without the point, and the power of ten that divides them.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(fraction) || text.ends_with('.') {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some((format!("{whole}{fraction}").parse().ok()?, scale))
}

/// Multiplies a decimal number by a unit; `None` unless the result is a whole number of bytes.
fn scaled(value: u64, scale: u64, unit: u64) -> Option<u64> {
    let (all, scale) = (u128::from(value) * u128::from(unit), u128::from(scale));
    if all.is_multiple_of(scale) { u64::try_from(all / scale).ok() } else { None }
}

/// Reads a number of MiB in the file: a number, or a text as [`mebibytes`] reads it.
pub(super) fn mebibytes_of_file<'de, T: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    from.deserialize_any(Size { of: MIB, value: PhantomData }).map(Some)
}

/// Reads a number of bytes in the file: a number, or a text as [`bytes`] reads it.
pub(super) fn bytes_of_file<'de, T: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    from.deserialize_any(Size { of: BYTE, value: PhantomData }).map(Some)
}

struct Size<T> {
    of: u64,
    value: PhantomData<T>,
}

impl<T: TryFrom<u64>> Visitor<'_> for Size<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size: a number, or a text with a unit such as \"12GiB\"")
    }

    fn visit_i64<E: Error>(self, given: i64) -> Result<T, E> {
        let value = u64::try_from(given).ok().and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| E::invalid_value(Unexpected::Signed(given), &self))
    }

    fn visit_u64<E: Error>(self, given: u64) -> Result<T, E> {
        T::try_from(given).map_err(|_| E::invalid_value(Unexpected::Unsigned(given), &self))
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<T, E> {
        parse(given, self.of).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn sizes_have_the_unit_of_their_setting_or_their_own() {
        for (text, mib) in [
            ("4096", 4096),
            ("4_096", 4096),
            ("4096MiB", 4096),
            ("4GiB", 4096),
            ("4 gib", 4096),
            ("1.5GiB", 1536),
            ("0", 0),
        ] {
            assert_eq!(mebibytes::<usize>(text), Ok(mib), "{text}");
        }
        for (text, size) in [("50000", 50_000), ("4KiB", 4096), ("0.5MiB", 1 << 19), ("2TiB", 1 << 41), ("7B", 7)] {
            assert_eq!(bytes::<u64>(text), Ok(size), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_is_expected() {
        for text in [
            "",
            "GiB",
            "-1",
            "+1",
            "4GB",
            "4 G",
            "1..5GiB",
            ".5GiB",
            "1.GiB",
            "1e3",
            "99999999999999999999",
            "99999999TiB",
        ] {
            let refused = mebibytes::<usize>(text).unwrap_err();
            let expected = format!("invalid size {text:?}: expected a number of MiB, or one with a unit");
            assert!(refused.starts_with(&expected), "{refused}");
        }
        assert_eq!(mebibytes::<u64>("1.5MiB").unwrap_err(), "invalid size \"1.5MiB\": expected a whole number of MiB");
        assert!(bytes::<u64>("0.3").unwrap_err().contains("a number of bytes"));
        assert!(bytes::<u8>("1KiB").is_err());
    }

    #[test]
    fn sizes_are_shown_in_readable_units() {
        assert_eq!([0, 50_000, 3 << 10, 50 << 30, 1 << 40].map(exact), ["0", "50000", "3 KiB", "50 GiB", "1 TiB"]);
        assert_eq!([0, 1023, 1536, 7 << 29].map(rounded), ["0 B", "1023 B", "1.5 KiB", "3.5 GiB"]);
        assert_eq!([0, 3 << 19, 9 << 30, 21 << 29].map(budget), ["0 MiB", "1 MiB", "9216 MiB", "10.5 GiB"]);
        for bytes in [1_u64, 50_000, 3 << 10, 50 << 30] {
            assert_eq!(super::bytes(&exact(bytes)), Ok(bytes));
        }
    }
}
