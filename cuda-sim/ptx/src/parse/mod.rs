//! PTX text to a [`Module`].

mod cursor;
mod directives;
mod kernel;
mod module;
mod operands;
mod statement;

pub use cursor::ParseError;
pub(crate) use cursor::{Cursor, Result};
pub(crate) use operands::Names;
pub(crate) use statement::{Raw, Statement};
