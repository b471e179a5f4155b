//! Declarations of variables and parameters.

use crate::module::Variable;
use crate::parse::{Cursor, Result};
use crate::types::Type;

/// A variable or a parameter as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    /// `.shared`, `.global`, `.const`, `.local` or `.param`.
    pub(crate) space: String,
    pub(crate) name: String,
    pub(crate) align: usize,
    pub(crate) size: usize,
    /// Whether it is an array `name[]`, whose size the launch sets.
    pub(crate) open: bool,
    initial: Vec<u8>,
}

impl Declaration {
    pub(crate) fn variable(self) -> Variable {
        Variable { name: self.name, initial: self.initial, size: self.size, constant: self.space == ".const" }
    }
}

/// Parses a declaration from the space to the semicolon.
pub(crate) fn declaration(cursor: &mut Cursor<'_>) -> Result<Declaration> {
    let declared = head(cursor)?;
    cursor.expect(";")?;
    Ok(declared)
}

/// Parses a declaration from the space to the token behind it: a semicolon, a comma or a parenthesis.
pub(crate) fn head(cursor: &mut Cursor<'_>) -> Result<Declaration> {
    let space = cursor.take().to_owned();
    let (mut align, mut ty, mut lanes) = (None, None, 1);
    while cursor.peek().starts_with('.') {
        match cursor.take() {
            ".align" => align = Some(cursor.number()? as usize),
            // A pointer's target, of no interest here.
            ".ptr" | ".global" | ".const" | ".local" | ".shared" => {}
            ".v2" => lanes = 2,
            ".v4" => lanes = 4,
            suffix => {
                let parsed = Type::parse(suffix.trim_start_matches('.'));
                ty = Some(parsed.ok_or_else(|| cursor.error(format!("type `{suffix}`")))?);
            }
        }
    }
    let ty = ty.ok_or_else(|| cursor.error("a declaration needs a type"))?;
    let name = cursor.take().to_owned();
    let (mut elements, mut open) = (1, false);
    while cursor.accept("[") {
        if cursor.accept("]") {
            open = true;
            elements = 0;
        } else {
            elements *= cursor.number()? as usize;
            cursor.expect("]")?;
        }
    }
    let initial = if cursor.accept("=") { initializer(cursor, ty)? } else { Vec::new() };
    if open && !initial.is_empty() {
        open = false;
        elements = initial.len() / ty.size();
    }
    let size = ty.size() * lanes * elements;
    Ok(Declaration { space, name, align: align.unwrap_or(ty.size() * lanes), size, open, initial })
}

fn initializer(cursor: &mut Cursor<'_>, ty: Type) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let braces = cursor.accept("{");
    loop {
        let minus = cursor.accept("-");
        let value = cursor.number()?;
        let value = if minus { value.wrapping_neg() } else { value };
        bytes.extend_from_slice(&value.to_le_bytes()[..ty.size().min(8)]);
        if !cursor.accept(",") {
            break;
        }
    }
    if braces {
        cursor.expect("}")?;
    }
    Ok(bytes)
}

/// Everything up to and with the next semicolon.
pub(crate) fn skip_statement(cursor: &mut Cursor<'_>) {
    while !cursor.peek().is_empty() && cursor.take() != ";" {}
}
