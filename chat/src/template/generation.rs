//! The tags `{% generation %}` and `{% endgeneration %}`, between which templates for training put the assistant's
//! text.
//!
//! `minijinja` does not know them. They render what is between them, in a scope of its own: that is the tag `with`
//! without variables, which stands for them here. Each word is padded to the length of the other, so that positions in
//! errors stay.

/// Tags, and the tags that replace them.
const TAGS: [(&str, &str); 2] = [("generation", "with      "), ("endgeneration", "endwith      ")];

/// A template in which `with` stands for `generation`; `None` where it has no such tags.
///
/// # Errors
/// Fails if the tags do not come in pairs.
pub(super) fn without_generation(source: &str) -> Result<Option<String>, String> {
    if !source.contains(TAGS[0].0) {
        return Ok(None);
    }
    let mut replaced = String::with_capacity(source.len());
    let mut open = 0_usize;
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let (text, from) = rest.split_at(start);
        replaced.push_str(text);
        let length = match from.as_bytes().get(1) {
            Some(b'#') => from[2..].find("#}").map_or(from.len(), |end| end + 4),
            Some(b'{') => 2 + code_length(&from[2..]),
            Some(b'%') => match tag(from) {
                Some((word, tag)) if word == TAGS[0].0 || word == TAGS[1].0 => {
                    open = if word == TAGS[0].0 { open + 1 } else { open.checked_sub(1).ok_or_else(unopened)? };
                    let (_, other) = TAGS[usize::from(word == TAGS[1].0)];
                    replaced.push_str(&tag.replacen(word, other, 1));
                    rest = &from[tag.len()..];
                    continue;
                }
                Some(("raw", tag)) => tag.len() + raw_length(&from[tag.len()..]),
                _ => 2 + code_length(&from[2..]),
            },
            _ => 1,
        };
        let (kept, after) = from.split_at(length);
        replaced.push_str(kept);
        rest = after;
    }
    replaced.push_str(rest);
    if open > 0 {
        return Err("{% generation %} without {% endgeneration %}".to_owned());
    }
    Ok(Some(replaced))
}

fn unopened() -> String {
    "{% endgeneration %} without {% generation %}".to_owned()
}

/// Returns the only word of a tag at the beginning of a text, and the whole tag.
fn tag(from: &str) -> Option<(&str, &str)> {
    let inside = from.strip_prefix("{%")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside).trim_start();
    let length = inside.find(|character: char| !character.is_ascii_alphanumeric() && character != '_')?;
    let (word, after) = inside.split_at(length);
    let after = after.trim_start();
    let after = after.strip_prefix(['-', '+']).unwrap_or(after).strip_prefix("%}")?;
    Some((word, &from[..from.len() - after.len()]))
}

/// Returns the length up to the end of the tag that ends a raw block, in bytes.
fn raw_length(from: &str) -> usize {
    let ends = from.match_indices("{%").find_map(|(start, _)| match tag(&from[start..]) {
        Some(("endraw", tag)) => Some(start + tag.len()),
        _ => None,
    });
    ends.unwrap_or(from.len())
}

/// Returns the length of an expression or a statement with its closing delimiter, in bytes. The delimiter may also
/// occur in strings and in brackets.
fn code_length(code: &str) -> usize {
    let bytes = code.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' => at = string_end(bytes, at),
            b'(' | b'[' | b'{' => depth += 1,
            b'}' | b'%' if depth == 0 && bytes.get(at + 1) == Some(&b'}') => return at + 2,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    code.len()
}

/// Returns the position of the quote that ends a string, which begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            _ if byte == bytes[start] => return at,
            _ => {}
        }
        at += 1;
    }
    at
}
