//! An `.entry`: parameters, then declarations, labels and instructions.

use std::collections::HashMap;

use crate::decode::decode;
use crate::instruction::{Instruction, Operation};
use crate::module::{Kernel, Param, Variable};
use crate::parse::directives::{Declaration, declaration, head, skip_statement};
use crate::parse::{Cursor, Names, ParseError, Raw, Result, Statement};

pub(crate) fn kernel(cursor: &mut Cursor<'_>, variables: &[Variable], shared: &[Declaration]) -> Result<Kernel> {
    cursor.expect(".entry")?;
    let name = cursor.take().to_owned();
    let mut names = Names::new(variables, shared);
    let params = params(cursor, &mut names)?;
    let max_threads = performance_directives(cursor)?;
    cursor.expect("{")?;
    let code = Body::default().parse(cursor, &mut names)?;
    // Dynamic shared memory begins at a multiple of the largest alignment of an access.
    let shared = names.shared.next_multiple_of(16);
    let local = names.local.next_multiple_of(16);
    Ok(Kernel {
        name,
        params,
        code,
        registers: names.registers,
        shared,
        local,
        max_threads,
        variables: vec![0; variables.len()],
    })
}

fn params(cursor: &mut Cursor<'_>, names: &mut Names<'_>) -> Result<Vec<Param>> {
    let mut params = Vec::new();
    let mut end = 0usize;
    if !cursor.accept("(") {
        return Ok(params);
    }
    while !cursor.accept(")") {
        let declared = head(cursor)?;
        let offset = end.next_multiple_of(declared.align.max(1));
        end = offset + declared.size;
        names.add_offset(&declared.name, offset);
        params.push(Param { offset, size: declared.size });
        if !cursor.accept(",") && cursor.peek() != ")" {
            return Err(cursor.error("`,` or `)` expected after a parameter"));
        }
    }
    Ok(params)
}

/// Parses the directives between parameters and body; returns the maximum number of threads of a block.
fn performance_directives(cursor: &mut Cursor<'_>) -> Result<usize> {
    let mut max_threads = 1024;
    while cursor.peek().starts_with('.') {
        let directive = cursor.take();
        let mut product = 1usize;
        while cursor.peek() != "{" && !cursor.peek().starts_with('.') {
            product = product.saturating_mul(cursor.number()? as usize);
            cursor.accept(",");
        }
        if matches!(directive, ".maxntid" | ".reqntid") {
            max_threads = product;
        }
    }
    Ok(max_threads)
}

#[derive(Default)]
struct Body {
    code: Vec<Instruction>,
    labels: HashMap<String, usize>,
    /// Branches whose labels are not known yet: the instruction's index, its line, the label.
    branches: Vec<(usize, u32, String)>,
}

impl Body {
    fn parse(mut self, cursor: &mut Cursor<'_>, names: &mut Names<'_>) -> Result<Vec<Instruction>> {
        loop {
            match cursor.peek() {
                "" => return Err(cursor.error("the kernel has no end")),
                "{" => {
                    cursor.take();
                    names.open_scope();
                }
                "}" => {
                    cursor.take();
                    if names.close_scope() {
                        return self.link();
                    }
                }
                ".reg" => registers(cursor, names)?,
                ".shared" | ".local" => names.add_variable(&declaration(cursor)?),
                directive if directive.starts_with('.') => skip_statement(cursor),
                label if cursor.peek_second() == ":" => {
                    cursor.take();
                    cursor.take();
                    self.labels.insert(label.to_owned(), self.code.len());
                }
                _ => self.instruction(cursor, names)?,
            }
        }
    }

    fn instruction(&mut self, cursor: &mut Cursor<'_>, names: &mut Names<'_>) -> Result<()> {
        let statement = Statement::parse(cursor)?;
        let guard = match statement.guard {
            Some((name, negated)) => Some((names.named(&statement, name)?, negated)),
            None => None,
        };
        let op = if statement.opcode() == "bra" {
            let Raw::Word { text, .. } = statement.operand(0)? else {
                return Err(statement.error("a label is expected"));
            };
            self.branches.push((self.code.len(), statement.line, (*text).to_owned()));
            Operation::Branch { target: 0 }
        } else {
            decode(&statement, names)?
        };
        self.code.push(Instruction { op, guard, line: statement.line, text: statement.text });
        Ok(())
    }

    /// Resolves labels, and ends the code with an exit.
    fn link(mut self) -> Result<Vec<Instruction>> {
        for (index, line, label) in self.branches {
            let found = self.labels.get(&label).copied();
            let target = found.ok_or_else(|| ParseError { line, message: format!("label `{label}`") })?;
            self.code[index].op = Operation::Branch { target };
        }
        let line = self.code.last().map_or(0, |last| last.line);
        self.code.push(Instruction { op: Operation::Exit, guard: None, line, text: "}".to_owned() });
        Ok(self.code)
    }
}

/// `.reg .b32 %r<8>, %x;`
fn registers(cursor: &mut Cursor<'_>, names: &mut Names<'_>) -> Result<()> {
    cursor.take();
    while cursor.peek().starts_with('.') {
        cursor.take();
    }
    loop {
        let name = cursor.take();
        if cursor.accept("<") {
            let count = cursor.number()?;
            cursor.expect(">")?;
            for index in 0..count {
                names.add_register(format!("{name}{index}"));
            }
        } else {
            names.add_register(name.to_owned());
        }
        if !cursor.accept(",") {
            break;
        }
    }
    cursor.expect(";")
}
