//! Evaluates licence expressions of SPDX.

/// Returns whether an expression can be satisfied with allowed licences. The old `/` means `OR`.
pub(crate) fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let satisfied = parser.any();
    satisfied && parser.words.is_empty()
}

/// Returns the first text of each element of a list in `deny.toml`, in order; empty if there is no such list.
pub(crate) fn listed<'a>(text: &'a str, list: &str) -> Vec<&'a str> {
    let start = format!("\n{list} = [");
    let Some((_, rest)) = text.split_once(&start) else { return Vec::new() };
    let elements = rest.split("\n]").next().unwrap_or_default();
    // A list on one line ends on it.
    let on_one_line = elements.lines().next().and_then(|line| line.strip_suffix(']'));
    match on_one_line {
        Some(line) => line.split('"').skip(1).step_by(2).collect(),
        None => elements.lines().filter_map(|line| line.split('"').nth(1)).collect(),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn any(&mut self) -> bool {
        let mut satisfied = self.all();
        while self.skip("OR") {
            satisfied |= self.all();
        }
        satisfied
    }

    /// Parses operands of `AND`, which binds closer than `OR`.
    fn all(&mut self) -> bool {
        let mut satisfied = self.one();
        while self.skip("AND") {
            satisfied &= self.one();
        }
        satisfied
    }

    fn one(&mut self) -> bool {
        if self.skip("(") {
            let satisfied = self.any();
            return self.skip(")") && satisfied;
        }
        let Some((licence, rest)) = self.words.split_first() else { return false };
        self.words = rest;
        if !self.skip("WITH") {
            return self.allowed.contains(licence);
        }
        let Some((exception, rest)) = self.words.split_first() else { return false };
        self.words = rest;
        self.allowed.contains(&format!("{licence} WITH {exception}").as_str())
    }

    fn skip(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn expressions_are_satisfied_by_allowed_licences() {
        let allowed = |expression| is_allowed(expression, &["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]);
        for expression in
            ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR MIT", "MIT AND Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        {
            assert!(allowed(expression), "{expression}");
        }
        assert!(allowed("(GPL-3.0 OR MIT) AND Apache-2.0"));
        assert!(allowed("GPL-3.0 AND X OR MIT"));
        for expression in
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT)", "MIT WITH X", "MIT MIT", "(MIT OR X) AND GPL-3.0"]
        {
            assert!(!allowed(expression), "{expression}");
        }
    }
}
