//! Splits Rust source into tokens without comments and literals: enough to find names and paths.

/// A name or a punctuation mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// A name without `r#`, `::`, or a single character.
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_name(&self) -> bool {
        self.text.starts_with(starts_name)
    }
}

/// Returns the tokens of a file. Comments, strings, characters, lifetimes and numbers are left out.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut cursor = Cursor { rest: source, line: 1 };
    let mut found = Vec::new();
    while !cursor.rest.is_empty() {
        if let Some(length) = ignored(cursor.rest) {
            cursor.take(length);
            continue;
        }
        let text = cursor.rest.strip_prefix("r#").unwrap_or(cursor.rest);
        cursor.rest = text;
        let length = match text {
            _ if text.starts_with(starts_name) => name(text),
            _ if text.starts_with("::") => 2,
            _ => text.chars().next().map_or(0, char::len_utf8),
        };
        found.push(Token { text: &text[..length], line: cursor.line });
        cursor.take(length);
    }
    found
}

struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl Cursor<'_> {
    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
    }
}

/// Returns the length in bytes of the ignored text at the start, or `None` if a token starts there.
fn ignored(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first.is_whitespace() {
        return Some(first.len_utf8());
    }
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    if first.is_ascii_digit() {
        return Some(name(text));
    }
    literal(text)
}

/// Returns the length of a block comment, including nested ones.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Returns the length of a string, a character or a lifetime with any prefix.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let after = text.strip_prefix(prefix);
        after.is_some_and(|rest| rest.trim_start_matches('#').starts_with('"') || rest.starts_with('\''))
    })?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let close = format!("\"{}", "#".repeat(hashes));
        let end = body[hashes + 1..].find(&close)?;
        return Some(prefix.len() + hashes + 1 + end + close.len());
    }
    match body.chars().next()? {
        '"' => Some(prefix.len() + quoted(body, '"')?),
        '\'' => Some(prefix.len() + quote_or_lifetime(body)?),
        _ => None,
    }
}

/// Returns the number of bytes up to the closing quote, inclusive.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn quote_or_lifetime(text: &str) -> Option<usize> {
    let mut after = text.chars().skip(1);
    let (first, second) = (after.next()?, after.next());
    if first == '\\' || second == Some('\'') { quoted(text, '\'') } else { Some(1 + name(&text[1..])) }
}

fn name(text: &str) -> usize {
    text.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(text.len())
}

fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::tokens;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn names_and_marks_are_found_and_literals_are_not() {
        assert_eq!(texts("use a::{b as c};"), ["use", "a", "::", "{", "b", "as", "c", "}", ";"]);
        assert_eq!(texts("// x\n/* y /* z */ w */ a /// v"), ["a"]);
        assert_eq!(texts(r##"f("a\"b", r#"c"d"#, b'x', '\'', b"e", r"g")"##), ["f", "(", ",", ",", ",", ",", ",", ")"]);
        assert_eq!(texts("<'a, 'static> 'b' 0x1f 1.5e3 r#type"), ["<", ",", ">", ".", "type"]);
    }

    #[test]
    fn lines_count_through_comments_and_strings() {
        let lines: Vec<_> = tokens("a /*\n\n*/ b \"\n\" c\nd").into_iter().map(|t| (t.text, t.line)).collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("c", 4), ("d", 5)]);
    }
}
