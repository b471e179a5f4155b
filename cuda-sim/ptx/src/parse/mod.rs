//! PTX text to a [`Module`].

mod directives;
mod kernel;
mod operands;
mod statement;

pub(crate) use operands::Names;
pub(crate) use statement::{Raw, Statement};

use thiserror::Error;

use crate::lexer::{Token, tokens};
use crate::module::Module;
use directives::{declaration, skip_statement};

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
    fn new(source: &'a str) -> Self {
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
        let value = operands::integer(word).ok_or_else(|| self.error(format!("number expected, found `{word}`")))?;
        self.next += 1;
        Ok(value)
    }
}

impl Module {
    /// Parses and decodes a PTX file.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with line and text of anything that is not PTX, or of an instruction that the interpreter does
    /// not support.
    pub fn parse(text: &str) -> std::result::Result<Self, ParseError> {
        let mut cursor = Cursor::new(text);
        let mut module = Self { kernels: Vec::new(), variables: Vec::new() };
        let mut shared = Vec::new();
        while !cursor.peek().is_empty() {
            match cursor.peek() {
                ".version" | ".address_size" => {
                    cursor.take();
                    cursor.take();
                }
                ".target" => {
                    cursor.take();
                    cursor.take();
                    while cursor.accept(",") {
                        cursor.take();
                    }
                }
                ".visible" | ".weak" | ".common" => {
                    cursor.take();
                }
                ".extern" if cursor.peek_second() != ".shared" => skip_statement(&mut cursor),
                ".extern" => {
                    cursor.take();
                }
                ".shared" | ".global" | ".const" => {
                    let declared = declaration(&mut cursor)?;
                    if declared.space == ".shared" {
                        shared.push(declared);
                    } else {
                        module.variables.push(declared.variable());
                    }
                }
                ".entry" => {
                    let kernel = kernel::kernel(&mut cursor, &module.variables, &shared)?;
                    module.kernels.push(kernel);
                }
                other => return Err(cursor.error(format!("`{other}` is not simulated"))),
            }
        }
        Ok(module)
    }
}
