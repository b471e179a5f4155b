//! PTX text to tokens.

/// A word or a punctuation mark, and its line (from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: u32,
    /// Start of the token in the text.
    pub(crate) at: usize,
}

/// All tokens without comments; debug sections and `.loc`, `.file` and `.pragma` lines are left out.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &text[at..];
        let length = match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            b if b.is_ascii_whitespace() || !b.is_ascii() => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                line += newlines(&rest[..end]);
                at += end;
                continue;
            }
            b'.' if ignored_line(rest) => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'.' if rest.starts_with(".section") => {
                let end = rest.find("\n\t}").map_or(rest.len(), |end| end + 3);
                let end = rest.find("\n}").map_or(end, |other| end.min(other + 2));
                line += newlines(&rest[..end]);
                at += end;
                continue;
            }
            b'"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            b if is_word(b) => word_length(rest.as_bytes()),
            _ => 1,
        };
        found.push(Token { text: &text[at..at + length], line, at });
        at += length;
    }
    found
}

fn newlines(text: &str) -> u32 {
    text.bytes().filter(|b| *b == b'\n').count() as u32
}

fn ignored_line(rest: &str) -> bool {
    [".loc", ".file", ".pragma"]
        .iter()
        .any(|name| rest.strip_prefix(name).is_some_and(|after| after.starts_with(|c: char| c.is_ascii_whitespace())))
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'%')
}

/// Length of a word. Words may contain `::`, as in `shared::cta`; a single colon ends a label.
fn word_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while length < bytes.len() {
        if is_word(bytes[length]) {
            length += 1;
        } else if bytes[length..].starts_with(b"::") {
            length += 2;
        } else {
            break;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_lines() {
        let text = "L1: // x\nld.shared::cta.u32 /* a\nb */ %r1, [%rd2+-4];\n.loc 1 2 3\nret;";
        let found: Vec<_> = tokens(text).iter().map(|t| (t.text, t.line)).collect();
        let expected = [
            ("L1", 1),
            (":", 1),
            ("ld.shared::cta.u32", 2),
            ("%r1", 3),
            (",", 3),
            ("[", 3),
            ("%rd2", 3),
            ("+", 3),
            ("-", 3),
            ("4", 3),
            ("]", 3),
            (";", 3),
            ("ret", 5),
            (";", 5),
        ];
        assert_eq!(found, expected);
    }
}
