//! The header `tracestate` of W3C Trace Context.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::HeaderValue;

/// Maximum number of entries of a list.
const MOST: usize = 32;
/// Maximum number of characters of a key, or of the tenant in one.
const MAX_KEY: usize = 256;
const MAX_TENANT: usize = 241;
const MAX_SYSTEM: usize = 14;
const MAX_VALUE: usize = 256;

/// Joins the lists of all headers, without optional parts. `None` if the result is empty or malformed.
pub(super) fn parse<'a>(headers: impl Iterator<Item = &'a HeaderValue>) -> Option<Arc<str>> {
    let mut entries = Vec::new();
    let mut keys = BTreeSet::new();
    for header in headers {
        for entry in header.to_str().ok()?.split(',').map(|entry| entry.trim_matches([' ', '\t'])) {
            if entry.is_empty() {
                continue;
            }
            let (key, value) = entry.split_once('=')?;
            if !is_key(key) || !is_value(value) || !keys.insert(key) {
                return None;
            }
            entries.push(entry);
        }
    }
    (1..=MOST).contains(&entries.len()).then(|| entries.join(",").into())
}

fn is_key(key: &str) -> bool {
    let rest = |text: &str| text.bytes().all(|byte| is_lower(byte) || is_digit(byte) || b"_-*/".contains(&byte));
    let begins = |text: &str, digit: bool| text.bytes().next().is_some_and(|b| is_lower(b) || digit && is_digit(b));
    match key.split_once('@') {
        None => key.len() <= MAX_KEY && begins(key, false) && rest(key),
        Some((tenant, system)) => {
            tenant.len() <= MAX_TENANT
                && system.len() <= MAX_SYSTEM
                && begins(tenant, true)
                && begins(system, false)
                && rest(tenant)
                && rest(system)
        }
    }
}

fn is_value(value: &str) -> bool {
    (1..=MAX_VALUE).contains(&value.len()) && value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn parsed(headers: &[&str]) -> Option<String> {
        let headers: Vec<_> = headers.iter().map(|text| HeaderValue::from_str(text).unwrap()).collect();
        parse(headers.iter()).map(|list| list.to_string())
    }

    #[test]
    fn lists_are_joined_in_their_order() {
        assert_eq!(parsed(&["b=1,a=2"]).unwrap(), "b=1,a=2");
        assert_eq!(parsed(&["b=1 \t,, a=x y", "1t-*/_@sys=3"]).unwrap(), "b=1,a=x y,1t-*/_@sys=3");
        let most: Vec<_> = (0..32).map(|n| format!("k{n}=v")).collect();
        assert_eq!(parsed(&[&most.join(",")]).unwrap(), most.join(","));
    }

    #[test]
    fn what_the_standard_does_not_allow_is_dropped() {
        let many: Vec<_> = (0..33).map(|n| format!("k{n}=v")).collect();
        let long =
            [format!("a={}", "x".repeat(257)), format!("{}=x", "a".repeat(257)), format!("a@{}=x", "s".repeat(15))];
        let wrong = ["", "a", "A=1", "1=1", "a=", "a=1=2", "a=1,a=2", "a@=1", "@a=1", "a@1=1", "a b=1", "a=\tx"];
        for wrong in wrong.into_iter().chain([many.join(",").as_str()]).chain(long.iter().map(String::as_str)) {
            assert_eq!(parsed(&[wrong]), None, "{wrong}");
        }
    }
}
