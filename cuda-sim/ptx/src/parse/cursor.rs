//! The tokens of a PTX file, taken one after the other.

use thiserror::Error;

use crate::lexer::{Token, tokens};

/// Text that the simulator does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("PTX line {line}: {message}")]
pub struct ParseError {
    /// Line of the PTX file, counted from 1.
    pub line: u32,
    /// Description of the problem, with the instruction's text.
    pub message: String,
}

pub(crate) type Result<T> = std::result::Result<T, ParseError>;

/// The tokens that are left.
pub(crate) struct Cursor<'a> {
    pub(crate) source: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, tokens: tokens(source), next: 0 }
    }

    /// The next token's text; empty at the end.
    pub(crate) fn peek(&self) -> &'a str {
        self.tokens.get(self.next).map_or("", |token| token.text)
    }

    /// The token after the next one.
    pub(crate) fn peek_second(&self) -> &'a str {
        self.tokens.get(self.next + 1).map_or("", |token| token.text)
    }

    pub(crate) fn take(&mut self) -> &'a str {
        let text = self.peek();
        self.next += 1;
        text
    }

    /// Takes the next token if it is this one.
    pub(crate) fn accept(&mut self, text: &str) -> bool {
        let found = self.peek() == text;
        if found {
            self.next += 1;
        }
        found
    }

    pub(crate) fn expect(&mut self, text: &str) -> Result<()> {
        if self.accept(text) {
            return Ok(());
        }
        Err(self.error(format!("`{text}` expected, found `{}`", self.peek())))
    }

    pub(crate) fn line(&self) -> u32 {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    /// Start of the next token in the text.
    pub(crate) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.source.len(), |token| token.at)
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.line(), message: message.into() }
    }

    /// Takes an unsigned number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let word = self.peek();
        let value = integer(word).ok_or_else(|| self.error(format!("number expected, found `{word}`")))?;
        self.next += 1;
        Ok(value)
    }
}

/// An unsigned number: decimal, hexadecimal, octal or binary, with or without `U`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some(_) if digits.starts_with('0') => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}
