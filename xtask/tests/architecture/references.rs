//! Finds the names in a file, and the paths, written out from the crate's root.

use std::collections::{BTreeMap, BTreeSet};

use crate::lexer::{Token, tokens};

/// A path or name in a file, and its place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) line: usize,
    /// Path such as `trainyard_server::wire::json`, with aliases, `self`, `super` and `crate` replaced.
    pub(crate) path: String,
    pub(crate) kind: Kind,
}

/// What a file does with a path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Use,
    /// All names below the path are imported.
    Glob,
    /// Other files may import what is there from the file's module, under this name.
    Export(String),
}

/// A module that a file declares without a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    /// Whether the module is compiled only for tests.
    pub(crate) test: bool,
}

/// Production code of a file.
pub(crate) struct Source<'a> {
    tokens: Vec<Token<'a>>,
    declarations: Vec<Declaration>,
}

impl<'a> Source<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let (tokens, tests) = split_tests(tokens(text));
        let declared = |tokens: &[Token<'_>], test: bool| {
            let name = |window: &[Token<'_>]| window[1].text.to_owned();
            let modules = tokens.windows(3).filter(|w| w[0].text == "mod" && w[1].is_name() && w[2].text == ";");
            modules.map(|window| Declaration { name: name(window), test }).collect::<Vec<_>>()
        };
        let mut declarations = declared(&tokens, false);
        declarations.extend(declared(&tests, true));
        Self { tokens, declarations }
    }

    pub(crate) fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// Returns every name, keywords included.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Token<'a>> {
        self.tokens.iter().filter(|token| token.is_name())
    }

    /// Returns every path of two or more names, and every import. `module` is the file's module: the crate's library
    /// name, then the names of the modules.
    pub(crate) fn references(&self, module: &[&str]) -> BTreeSet<Reference> {
        let mut scope = Scope::new(module, &self.tokens);
        let mut found = BTreeSet::new();
        for pass in 0..2 {
            // Bindings are collected in the first pass, because an alias may be used above its import.
            found = walk(&self.tokens, &mut scope, pass == 0);
        }
        found
    }
}

/// Names that a file's imports and modules give to paths.
struct Scope {
    root: String,
    /// The file's module and the inline ones around the current token.
    module: Vec<String>,
    children: BTreeSet<String>,
    aliases: BTreeMap<String, Vec<String>>,
}

impl Scope {
    fn new(module: &[&str], tokens: &[Token<'_>]) -> Self {
        let children = tokens.windows(2).filter(|w| w[0].text == "mod" && w[1].is_name());
        Self {
            root: module[0].to_owned(),
            module: module.iter().map(|&name| name.to_owned()).collect(),
            children: children.map(|window| window[1].text.to_owned()).collect(),
            aliases: BTreeMap::new(),
        }
    }

    /// Returns the path from the root of its crate.
    fn resolve(&self, path: &[&str]) -> Vec<String> {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let Some((&first, rest)) = path.split_first() else { return Vec::new() };
        let mut base = match first {
            "crate" => vec![self.root.clone()],
            "self" => self.module.clone(),
            "super" => {
                let mut parent = self.module.clone();
                let ups = path.iter().take_while(|&&name| name == "super").count();
                parent.truncate(parent.len().saturating_sub(ups).max(1));
                parent.extend(own(&path[ups..]));
                return parent;
            }
            _ => match self.aliases.get(first) {
                Some(path) => path.clone(),
                None if self.children.contains(first) => [self.module.clone(), own(&[first])].concat(),
                None => own(&[first]),
            },
        };
        base.extend(own(rest));
        base
    }
}

fn walk(tokens: &[Token<'_>], scope: &mut Scope, collect: bool) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    let mut depth = 0_usize;
    let mut inline = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                    scope.module.pop();
                }
            }
            "mod" if tokens.get(at + 2).is_some_and(|t| t.text == "{") => {
                scope.module.push(tokens[at + 1].text.to_owned());
                inline.push(depth);
                at += 1;
            }
            // `impl Trait + use<'a>` is not an import.
            "use" if tokens.get(at + 1).is_some_and(|t| t.text != "<") => {
                let exported = is_public(&tokens[..at]);
                at += 1;
                let mut leaves = Vec::new();
                tree(tokens, &mut at, &mut Vec::new(), &mut leaves);
                for leaf in leaves {
                    let path = scope.resolve(&leaf.path);
                    if collect && !["_", "*"].contains(&leaf.binding) && path.len() > 1 {
                        scope.aliases.insert(leaf.binding.to_owned(), path.clone());
                    }
                    let kind = match leaf.binding {
                        "*" => Kind::Glob,
                        name if exported && inline.is_empty() => Kind::Export(name.to_owned()),
                        _ => Kind::Use,
                    };
                    found.insert(Reference { line: leaf.line, path: path.join("::"), kind });
                }
            }
            _ if token.is_name() => {
                let mut path = vec![token.text];
                while let [mark, next, ..] = &tokens[at + 1..]
                    && mark.text == "::"
                    && next.is_name()
                {
                    path.push(next.text);
                    at += 2;
                }
                if path.len() > 1 {
                    found.insert(Reference {
                        line: token.line,
                        path: scope.resolve(&path).join("::"),
                        kind: Kind::Use,
                    });
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns whether the item after these tokens is public, also within its crate only.
fn is_public(before: &[Token<'_>]) -> bool {
    let end = before.iter().rposition(|token| [";", "}", "{", "]"].contains(&token.text)).map_or(0, |at| at + 1);
    before[end..].first().is_some_and(|token| token.text == "pub")
}

struct Leaf<'a> {
    line: usize,
    path: Vec<&'a str>,
    binding: &'a str,
}

/// Reads a tree of imports up to the `;`, `,` or `}` that ends it.
fn tree<'a>(tokens: &[Token<'a>], at: &mut usize, prefix: &mut Vec<&'a str>, leaves: &mut Vec<Leaf<'a>>) {
    let start = prefix.len();
    while let Some(token) = tokens.get(*at) {
        match token.text {
            "::" => {}
            "{" => {
                *at += 1;
                while tokens.get(*at).is_some_and(|token| token.text != "}") {
                    let before = *at;
                    tree(tokens, at, prefix, leaves);
                    if *at == before || tokens.get(*at).is_some_and(|token| token.text == ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                break;
            }
            "*" => {
                leaves.push(Leaf { line: token.line, path: prefix.clone(), binding: "*" });
                *at += 1;
                break;
            }
            _ if token.is_name() => {
                // `a::{self}` is `a`.
                if token.text != "self" || prefix.is_empty() {
                    prefix.push(token.text);
                }
                if tokens.get(*at + 1).is_none_or(|next| next.text != "::") {
                    let alias = tokens.get(*at + 1..*at + 3).filter(|pair| pair[0].text == "as");
                    let own = prefix.last().copied().unwrap_or("_");
                    let binding = alias.map_or(own, |pair| pair[1].text);
                    leaves.push(Leaf { line: token.line, path: prefix.clone(), binding });
                    *at += if alias.is_some() { 3 } else { 1 };
                    break;
                }
            }
            _ => break,
        }
        *at += 1;
    }
    prefix.truncate(start);
}

/// Splits tokens into production code and items under `#[cfg(test)]`.
fn split_tests(tokens: Vec<Token<'_>>) -> (Vec<Token<'_>>, Vec<Token<'_>>) {
    let (mut production, mut tests) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let length = if is_test_attribute(rest) { item(rest) } else { 0 };
        if length == 0 {
            production.push(tokens[at]);
            at += 1;
        } else {
            tests.extend_from_slice(&rest[..length]);
            at += length;
        }
    }
    (production, tests)
}

/// Recognises `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let starts = |marks: &[&str]| tokens.len() >= marks.len() && marks.iter().zip(tokens).all(|(m, t)| *m == t.text);
    starts(&["#", "[", "cfg", "(", "test", ")", "]"]) || starts(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// Counts the tokens of an item with its attributes: up to its `;`, or to the end of its block.
fn item(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    let mut attribute = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "#" if depth == 0 => attribute = true,
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" if depth == 0 => return at,
            "}" | ")" | "]" => {
                depth -= 1;
                match token.text {
                    "}" if depth == 0 => return at + 1,
                    "]" if depth == 0 && attribute => attribute = false,
                    _ => {}
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::{Declaration, Source};

    fn paths(text: &str) -> Vec<String> {
        let source = Source::parse(text);
        source.references(&["app", "outer", "inner"]).into_iter().map(|reference| reference.path).collect()
    }

    #[test]
    fn trees_of_imports_are_written_out() {
        let text = "use crate::a::{\n    self,\n    b::{C, D as E},\n    f::*,\n};\nuse super::g;\nuse {h::I, ::j::K};";
        let expected = ["app::a", "app::a::b::C", "app::a::b::D", "app::a::f", "app::outer::g", "h::I", "j::K"];
        assert_eq!(paths(text), expected);
        let lines: Vec<_> = Source::parse(text).references(&["app"]).into_iter().map(|found| found.line).collect();
        assert_eq!(lines, [2, 3, 3, 4, 6, 7, 7]);
    }

    #[test]
    fn paths_in_code_are_found_through_aliases_and_modules() {
        assert_eq!(paths("fn f() { super::super::x::y(); }"), ["app::x::y"]);
        assert_eq!(
            paths("mod child; fn f() -> child::T { self::z::w() }"),
            ["app::outer::inner::child::T", "app::outer::inner::z::w"]
        );
        assert_eq!(paths("fn f(x: b::cpu::T) {}\nuse crate::backend as b;"), ["app::backend::cpu::T", "app::backend"]);
        assert_eq!(
            paths("mod deep { fn f() { super::g::h() } } fn k() { self::m::n() }"),
            ["app::outer::inner::g::h", "app::outer::inner::m::n"]
        );
        assert_eq!(paths("macro_rules! m { () => { $crate::a::b() } }"), ["app::a::b"]);
    }

    #[test]
    fn comments_literals_and_tests_do_not_count() {
        let text = "// use crate::a::B;\nconst S: &str = \"crate::a::B\";\n#[cfg(test)]\nmod tests { use crate::a::B; }\nuse c::D;";
        assert_eq!(paths(text), ["c::D"]);
        assert_eq!(paths("#[cfg(test)]\n#[path = \"x\"]\nuse crate::{a, b};\nfn f() { c::d() }"), ["c::d"]);
        let text = "mod a;\n#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod b;";
        let declared = |name: &str, test| Declaration { name: name.to_owned(), test };
        assert_eq!(Source::parse(text).declarations(), [declared("a", false), declared("b", true)]);
    }
}
