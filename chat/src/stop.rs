//! Stop strings in text that arrives in pieces: a possible beginning of a stop string is held back until it is decided.

/// Cuts one text at the first stop string in it.
pub(crate) struct StopFilter {
    strings: Vec<String>,
    /// The end of the text that may be the beginning of a stop string.
    held: String,
}

/// The result of filtering a piece of text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Filtered {
    /// Text before any stop string.
    pub(crate) text: String,
    /// The stop string that ended the text.
    pub(crate) matched: Option<String>,
}

impl StopFilter {
    /// The strings must not be empty.
    pub(crate) fn new(strings: Vec<String>) -> Self {
        Self { strings, held: String::new() }
    }

    /// Appends a piece of text.
    pub(crate) fn push(&mut self, piece: &str) -> Filtered {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let found = self.strings.iter().filter_map(|string| Some((text.find(string.as_str())?, string)));
        if let Some((at, string)) = found.min_by_key(|(at, _)| *at) {
            let matched = Some(string.clone());
            text.truncate(at);
            return Filtered { text, matched };
        }
        let longest = self.strings.iter().map(|string| partial_suffix(&text, string)).max().unwrap_or(0);
        self.held = text.split_off(text.len() - longest);
        Filtered { text, matched: None }
    }

    /// The stop string that a special token's text contains, if any.
    pub(crate) fn in_special(&self, token: &str) -> Option<String> {
        self.strings.iter().find(|string| token.contains(string.as_str())).cloned()
    }

    /// Ends the text and returns the part that was held back: it is not a stop string.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Number of bytes at the end of a text that begin `string` without completing it.
pub(crate) fn partial_suffix(text: &str, string: &str) -> usize {
    let starts = string.char_indices().map(|(at, _)| at).skip(1);
    let beginnings = starts.filter_map(|end| string.get(..end));
    beginnings.filter(|beginning| text.ends_with(beginning)).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that is emitted for pieces, and what stopped it.
    fn run(strings: &[&str], pieces: &[&str]) -> (Vec<String>, Option<String>) {
        let mut filter = StopFilter::new(strings.iter().map(|&string| string.to_owned()).collect());
        let mut emitted = Vec::new();
        for piece in pieces {
            let Filtered { text, matched } = filter.push(piece);
            emitted.push(text);
            if matched.is_some() {
                return (emitted, matched);
            }
        }
        emitted.push(filter.finish());
        (emitted, None)
    }

    #[test]
    fn what_may_stop_is_held_back_until_it_is_decided() {
        let (emitted, matched) = run(&["END", "\n\n"], &["a E", "N", "x \n", "y\n", "\nz"]);
        assert_eq!(emitted, ["a ", "", "ENx ", "\ny", ""]);
        assert_eq!(matched.as_deref(), Some("\n\n"));
        assert_eq!(run(&["END"], &["a EN"]), (vec!["a ".to_owned(), "EN".to_owned()], None));
        assert_eq!(run(&[], &["all"]), (vec!["all".to_owned(), String::new()], None));
    }

    #[test]
    fn the_first_match_cuts() {
        assert_eq!(run(&["b", "ab"], &["xab"]), (vec!["x".to_owned()], Some("ab".to_owned())));
        assert_eq!(run(&["é"], &["caf", "és"]), (vec!["caf".to_owned(), String::new()], Some("é".to_owned())));
    }

    proptest! {
        /// Filtering in pieces gives the same as filtering the whole.
        #[test]
        fn pieces_are_as_the_whole(
            pieces in prop::collection::vec("[ab]{0,3}", 0..8), strings in prop::collection::vec("[ab]{1,4}", 1..3),
        ) {
            let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
            let parts: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let whole = pieces.concat();
            let (emitted, matched) = run(&strings, &parts);
            // In pieces, a match that is complete first may be seen before one that begins first.
            let first = strings.iter().filter_map(|string| whole.find(string).map(|at| at + string.len())).min();
            prop_assert_eq!(matched.is_some(), first.is_some());
            if matched.is_none() {
                prop_assert_eq!(emitted.concat(), whole);
            } else {
                let text = emitted.concat();
                prop_assert!(whole.starts_with(&text));
                prop_assert!(strings.iter().all(|string| !text.contains(string)));
            }
        }
    }
}
