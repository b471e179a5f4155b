//! One instruction as it is written: guard, opcode, operands.

use crate::parse::{Cursor, ParseError, Result};
use crate::types::Type;

/// An operand before names have a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Raw<'a> {
    /// A register, a number, a variable, a label.
    Word { text: &'a str, minus: bool },
    /// A negated predicate: `!%p1`.
    Not(&'a str),
    /// A list of operands: `{a, b, c}`.
    List(Vec<Raw<'a>>),
    /// A memory operand: `[base+offset]`.
    Address { base: &'a str, offset: i64 },
    /// A pair of destinations, separated by a bar.
    Pair(&'a str, &'a str),
}

#[derive(Debug, Clone)]
pub(crate) struct Statement<'a> {
    /// The register, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    /// `ld`, `global`, `v4`, `f32`.
    pub(crate) parts: Vec<&'a str>,
    pub(crate) operands: Vec<Raw<'a>>,
    pub(crate) line: u32,
    pub(crate) text: String,
}

impl<'a> Statement<'a> {
    /// Parses up to and with the semicolon.
    pub(crate) fn parse(cursor: &mut Cursor<'a>) -> Result<Self> {
        let (line, start) = (cursor.line(), cursor.at());
        let guard = if cursor.accept("@") {
            let negated = cursor.accept("!");
            Some((cursor.take(), negated))
        } else {
            None
        };
        let parts = cursor.take().split('.').collect();
        let mut operands = Vec::new();
        while cursor.peek() != ";" {
            if cursor.peek().is_empty() || cursor.peek() == "}" {
                return Err(cursor.error("`;` expected"));
            }
            operands.push(operand(cursor)?);
            if !cursor.accept(",") && cursor.peek() != ";" {
                return Err(cursor.error(format!("`,` or `;` expected, found `{}`", cursor.peek())));
            }
        }
        let text = cursor.source[start..cursor.at()].split_whitespace().collect::<Vec<_>>().join(" ");
        cursor.take();
        Ok(Self { guard, parts, operands, line, text })
    }

    pub(crate) fn opcode(&self) -> &'a str {
        self.parts[0]
    }

    /// Whether the opcode has this suffix.
    pub(crate) fn has(&self, suffix: &str) -> bool {
        self.parts[1..].contains(&suffix)
    }

    /// The types among the suffixes, in their order.
    pub(crate) fn types(&self) -> Vec<Type> {
        self.parts[1..].iter().filter_map(|part| Type::parse(part)).collect()
    }

    /// The last of the suffixes that is a type.
    pub(crate) fn ty(&self) -> Result<Type> {
        self.types().last().copied().ok_or_else(|| self.error("a type is missing"))
    }

    pub(crate) fn operand(&self, index: usize) -> Result<&Raw<'a>> {
        self.operands.get(index).ok_or_else(|| self.error(format!("operand {} is missing", index + 1)))
    }

    pub(crate) fn error(&self, message: impl std::fmt::Display) -> ParseError {
        ParseError { line: self.line, message: format!("`{}`: {message}", self.text) }
    }

    /// The error for instructions, types and variants that the interpreter does not support.
    pub(crate) fn unknown(&self) -> ParseError {
        self.error("this instruction is not simulated")
    }
}

fn operand<'a>(cursor: &mut Cursor<'a>) -> Result<Raw<'a>> {
    if cursor.accept("{") {
        let mut items = Vec::new();
        while !cursor.accept("}") {
            items.push(operand(cursor)?);
            cursor.accept(",");
        }
        return Ok(Raw::List(items));
    }
    if cursor.accept("[") {
        let base = cursor.take();
        let mut offset = 0i64;
        if cursor.accept("+") {
            let minus = cursor.accept("-");
            let value = cursor.number()? as i64;
            offset = if minus { value.wrapping_neg() } else { value };
        } else if cursor.accept("-") {
            offset = (cursor.number()? as i64).wrapping_neg();
        }
        cursor.expect("]")?;
        return Ok(Raw::Address { base, offset });
    }
    if cursor.accept("!") {
        return Ok(Raw::Not(cursor.take()));
    }
    let minus = cursor.accept("-");
    let text = cursor.take();
    if cursor.accept("|") {
        return Ok(Raw::Pair(text, cursor.take()));
    }
    Ok(Raw::Word { text, minus })
}
