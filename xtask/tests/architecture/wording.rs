//! Checks doc comments and messages for a few patterns that do not read as English, so that they do not come back.
//!
//! A doc comment starts with a noun phrase or a verb, not with a preposition, and says more than its item's name. Messages
//! say "is not a", "only" and "no longer".

use crate::sources::ProductionFile;

/// Prepositions that a doc comment does not start with.
const PREPOSITIONS: &[&str] = &[
    "Of", "In", "At", "To", "With", "Without", "By", "For", "From", "As", "On", "Beside", "Before", "After", "Since",
    "Between", "Among", "Within", "Under", "Over", "Through",
];

/// Phrases that no doc comment and no message contains.
const PHRASES: &[&str] = &[" any more", " of which was ", "has not ", "have not ", "is no ", "are no "];

/// Words that make one of [`PHRASES`] English when they follow it; so do participles in -ed.
const EXCEPTIONS: &[&str] = &["been", "begun", "come", "longer", "seen", "yet"];

/// Most words of a doc comment that says too little.
const FEW_WORDS: usize = 3;

/// Returns the places of a file that the rules forbid: line and text.
pub(crate) fn violations(file: &ProductionFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut comment: Option<(usize, String)> = None;
    for (at, line) in file.text.lines().enumerate() {
        match doc_text(line) {
            Some(text) => match &mut comment {
                Some((_, whole)) => *whole = format!("{whole} {text}"),
                None => comment = Some((at + 1, text.to_owned())),
            },
            None => {
                found.extend(comment.take().filter(|(_, text)| is_bad_comment(text)));
                found.extend(messages(line).filter(|text| has_phrase(text)).map(|text| (at + 1, text.to_owned())));
            }
        }
    }
    found.extend(comment.filter(|(_, text)| is_bad_comment(text)));
    found
}

/// Returns the text of a line that is a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

fn is_bad_comment(text: &str) -> bool {
    let structure = ["#", "```", "|", "-"].iter().any(|mark| text.starts_with(mark));
    let first = text.split([' ', ',', ':']).next().unwrap_or_default();
    let few = text.split_whitespace().count() <= FEW_WORDS;
    !structure && (PREPOSITIONS.contains(&first) || few || has_phrase(text))
}

fn has_phrase(text: &str) -> bool {
    PHRASES.iter().any(|phrase| {
        text.match_indices(phrase).any(|(at, _)| {
            let next = text[at + phrase.len()..].split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let word_starts = phrase.starts_with(' ') || !text[..at].ends_with(|c: char| c.is_alphanumeric());
            word_starts && !next.ends_with("ed") && !EXCEPTIONS.contains(&next)
        })
    })
}

/// Returns the string literals of a line of code.
fn messages(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    code.split('"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::sources::ProductionFile;

    fn found(text: &str) -> Vec<usize> {
        let file = ProductionFile { path: "a.rs".to_owned(), module: Vec::new(), text: text.to_owned() };
        violations(&file).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn bad_comments_and_messages_are_found() {
        assert_eq!(found("/// Of one lane, and\n/// of another one.\nfn a() {}\n"), [1]);
        assert_eq!(found("/// The rows.\nfn a() {}\n"), [1]);
        assert_eq!(found("//! The rows of a batch that is no longer there.\nfn a() {}\n"), [0; 0]);
        assert_eq!(found("/// Rows of a batch, which are no tokens.\n"), [1]);
        assert_eq!(found("fn a() {}\nlet x = \"its payload is no JSON object\";\n"), [2]);
        assert_eq!(found("let x = \"the key has not expired\"; // it is no key\n"), [0; 0]);
        assert_eq!(found("/// Rows of a batch that is not used any more.\n"), [1]);
        assert_eq!(found("/// # Errors\n/// - `a`: the value of a batch.\nfn a() {}\n"), [0; 0]);
    }
}
