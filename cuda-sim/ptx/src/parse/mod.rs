//! PTX text to a [`Module`].

mod cursor;
mod directives;
mod kernel;
mod operands;
mod statement;

pub use cursor::ParseError;
pub(crate) use cursor::{Cursor, Result};
pub(crate) use operands::Names;
pub(crate) use statement::{Raw, Statement};

use crate::module::Module;
use directives::{declaration, skip_statement};

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
