//! JSON as Python writes it: with `NaN`, `Infinity` and `-Infinity`, which JSON does not have.

use serde_json::{Map, Value};

/// Words that stand for numbers, longest first.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Reads an object. Numbers that JSON does not have become `{"__float__": "Infinity"}`, as newer files spell them.
///
/// # Errors
/// If the text is not JSON apart from these.
pub(super) fn read(text: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::from_slice(text) {
        Ok(object) => Ok(object),
        Err(error) => spelled_out(text).map_or(Err(error), |text| serde_json::from_str(&text)),
    }
}

/// The text with words in place of values spelled out; `None` if there are none.
fn spelled_out(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let (mut out, mut rest, mut in_string, mut found) = (String::with_capacity(text.len()), text, false, false);
    while let Some(next) = rest.chars().next() {
        let word = WORDS.into_iter().find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = word {
            out.push_str(&format!("{{\"__float__\": \"{word}\"}}"));
            (rest, found) = (&rest[word.len()..], true);
            continue;
        }
        let len = match next {
            '\\' if in_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '"' => {
                in_string = !in_string;
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_python_are_read() {
        let text = r#"{"limit": [0.0, Infinity], "low": -Infinity, "Infinity": "a NaN \" Infinity \\", "é": NaN}"#;
        let float = |name: &str| json!({"__float__": name});
        let expected = json!({
            "limit": [0.0, float("Infinity")], "low": float("-Infinity"), "Infinity": "a NaN \" Infinity \\", "é": float("NaN"),
        });
        assert_eq!(Value::Object(read(text.as_bytes()).unwrap()), expected);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["{\"a\": Infinit}", "{\"a\": \"Infinity}", "[]", "", "{\"a\": \\Infinity}"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read(b"{\"a\": Infinity\xff}").is_err());
    }
}
