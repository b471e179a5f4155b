//! A whole file: directives, variables and kernels.

use crate::module::Module;
use crate::parse::directives::{declaration, skip_statement};
use crate::parse::{Cursor, ParseError, kernel};

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
