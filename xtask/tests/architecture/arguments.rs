//! Finds parameters of functions that are tuples: two arguments in the place of one.

use crate::lexer::{Token, tokens};
use crate::sources::ProductionFile;

/// Returns the places where a file has such parameters: line and name of the function.
pub(crate) fn tuples(file: &ProductionFile) -> Vec<(usize, String)> {
    let all = tokens(&file.text);
    let mut found = Vec::new();
    for (at, token) in all.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let Some(name) = all.get(at + 1).filter(|name| name.is_name()) else { continue };
        let open = after_generics(&all, at + 2);
        if all.get(open).is_some_and(|token| token.text == "(") && parameters(&all[open + 1..]).any(is_tuple) {
            found.push((token.line, name.text.to_owned()));
        }
    }
    found
}

/// Returns the index behind the generic parameters that begin at `at`, or `at` if none do.
fn after_generics(all: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in all.iter().enumerate().skip(at) {
        match token.text {
            "<" => depth += 1,
            ">" if all[index - 1].text != "-" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if index == at { at } else { index + 1 };
        }
    }
    all.len()
}

/// Splits what follows an opening parenthesis at the commas of its level.
fn parameters<'a, 't>(rest: &'a [Token<'t>]) -> impl Iterator<Item = &'a [Token<'t>]> {
    let end = end(rest);
    let mut start = 0;
    let mut parts = Vec::new();
    for comma in commas(&rest[..end]) {
        parts.push(&rest[start..comma]);
        start = comma + 1;
    }
    parts.push(&rest[start..end]);
    parts.into_iter()
}

/// Returns the index of the bracket that closes the one before these tokens.
fn end(rest: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in rest.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return index,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the indices of the commas outside brackets.
fn commas(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            ">" if !matches!(tokens[index - 1].text, "-" | "=") => depth -= 1,
            "," if depth == 0 => found.push(index),
            _ => {}
        }
    }
    found
}

/// Returns whether the pattern or the type of a parameter is a tuple of at least two parts.
fn is_tuple(parameter: &[Token<'_>]) -> bool {
    let colon = parameter.iter().position(|token| token.text == ":");
    let kind = colon.map_or(&parameter[parameter.len()..], |colon| &parameter[colon + 1..]);
    [parameter, kind].into_iter().any(|tokens| {
        let skipped = tokens.iter().take_while(|token| matches!(token.text, "&" | "mut")).count();
        let inner = tokens.get(skipped).filter(|token| token.text == "(").map(|_| &tokens[skipped + 1..]);
        inner.is_some_and(|inner| !commas(&inner[..end(inner)]).is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::tuples;
    use crate::sources::ProductionFile;

    fn found(text: &str) -> Vec<String> {
        let file = ProductionFile { path: "a.rs".to_owned(), module: Vec::new(), text: text.to_owned() };
        tuples(&file).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn tuples_in_the_place_of_arguments_are_found() {
        assert_eq!(found("fn a((x, y): (u32, u32)) {}"), ["a"]);
        assert_eq!(found("fn b(&self, of: &'a mut (u32, Vec<u8>), c: u8) {}"), ["b"]);
        assert_eq!(found("fn c<T: Into<(u8, u8)>>(z: T, (x, y): Pair) {}"), ["c"]);
        assert_eq!(found("fn e(a: u8) {}\nfn d(\n    a: u8,\n    b: (u8, u8),\n) {}"), ["d"]);
    }

    #[test]
    fn other_parameters_and_results_are_not() {
        for text in [
            "fn a(x: u32, y: &[(u32, u32)]) -> (u32, u32) { (x, y[0].1) }",
            "fn a(f: impl Fn((u8, u8)) -> (u8, u8), g: Vec<(u8, u8)>, unit: ()) {}",
            "fn a() { let f = |(x, y): (u8, u8)| x + y; }",
            "fn a(Path((x, y)): Path<(u8, u8)>, f: fn((u8, u8))) {}",
            "fn a(z: (Option<u8>)) {}",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
