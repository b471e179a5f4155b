//! Compiles templates to instructions in which `+` and `%` are metered.
//!
//! `minijinja` joins lists lazily and copies them once they are nested deeply, which fuel does not count: doubling a
//! list some thirty times would take all memory. Therefore `+` is a call of [`add`], which pays for each item before it
//! copies the item.

use std::collections::BTreeMap;

use minijinja::formatting::{FormatStyle, format};
use minijinja::machinery::{CodeGenerator, Instruction, eval, make_string_output, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

use super::fuel::BYTES_PER_FUEL;
use super::{chains, methods, printf, python_text, scopes, shared};

/// The name of [`add`]; no variable of a template can have it.
const ADD: &str = "+";

/// Name of [`remainder`]; no variable of a template can have it.
const REMAINDER: &str = "%";
/// Cost of compiling the remainder of two numbers.
const COMPILED: u64 = 16;

/// Registers `+` and `%` as functions of an environment, and removes the filter that joins lists lazily.
pub(super) fn count_operators(environment: &mut Environment<'static>) {
    environment.add_function(ADD, add);
    environment.add_function(REMAINDER, remainder);
    environment.add_filter("sum", sum);
    environment.remove_filter("chain");
}

/// Checks that a template can be compiled.
///
/// # Errors
///
/// An error that names what is not supported.
pub(super) fn check(name: &str, source: &str, syntax: &SyntaxConfig) -> Result<(), Error> {
    scopes::rewritten(source, &parse(source, name, syntax.clone())?).map(drop)
}

/// Compiles a template and renders it.
///
/// # Errors
///
/// An error if the template does not compile or fails.
pub(super) fn render<'a>(
    environment: &'a Environment<'a>,
    name: &'a str,
    source: &'a str,
    syntax: &SyntaxConfig,
    context: Value,
) -> Result<String, Error> {
    let tree = scopes::rewritten(source, &parse(source, name, syntax.clone())?)?;
    let mut code = CodeGenerator::new(name, source);
    code.compile_stmt(&tree);
    let (mut instructions, _) = code.finish();
    let mut at = 0;
    while let Some(instruction) = instructions.get_mut(at) {
        // All take two values from the stack and leave one.
        match instruction {
            Instruction::Add => *instruction = Instruction::CallFunction(ADD, Some(2)),
            Instruction::Rem => *instruction = Instruction::CallFunction(REMAINDER, Some(2)),
            _ => {}
        }
        at += 1;
    }
    shared::guarded(&mut instructions);
    let instructions = chains::paid(instructions);
    let mut text = String::new();
    let blocks = BTreeMap::new();
    eval(environment, &instructions, context, &blocks, &mut make_string_output(&mut text), AutoEscape::None)?;
    Ok(text)
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && !value.is_tuple()
}

/// Computes `a + b`, which is paid for before the result is created.
fn add(state: &State<'_, '_>, a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        state.consume_fuel((a.len() + b.len()).div_ceil(BYTES_PER_FUEL) as u64)?;
        return Ok(Value::from([a, b].concat()));
    }
    if is_list(a) && is_list(b) {
        let mut items = Vec::new();
        for item in a.try_iter()?.chain(b.try_iter()?) {
            state.consume_fuel(1)?;
            items.push(item);
        }
        return Ok(Value::from(items));
    }
    if a.is_tuple() && b.is_tuple() {
        state.consume_fuel((a.len().unwrap_or(0) + b.len().unwrap_or(0)) as u64)?;
    }
    // The operator itself is within this filter alone. It skips what is undefined, which is no operand.
    if b.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "the right side of + is undefined"));
    }
    let none = Kwargs::from_iter(std::iter::empty::<(&str, Value)>());
    minijinja::filters::sum(state, Value::from(vec![b.clone()]), None, Some(a.clone()), none)
}

/// Computes `a % b`: formats a text, or returns a remainder.
pub(super) fn remainder(state: &State<'_, '_>, a: &Value, b: &Value) -> Result<Value, Error> {
    let Some(text) = a.as_str() else {
        state.consume_fuel(COMPILED)?;
        // No filter is the operator, but an expression of another program is.
        let context = Value::from_pairs([("a", a.clone()), ("b", b.clone())]);
        return state.env().compile_expression("a % b")?.eval(context);
    };
    let mut size = shared::charge(state, b)?;
    let values = if b.is_tuple() { b.try_iter()?.collect() } else { vec![b.clone()] };
    size += values.iter().filter_map(Value::as_str).map(|text| (text.len() / BYTES_PER_FUEL) as u64).sum::<u64>();
    // A field of a map may be written many times.
    let fields = text.matches('%').count() as u64;
    let bytes = text.len().saturating_add(methods::widths(text)) as u64;
    state.consume_fuel(size.saturating_mul(fields).saturating_add(bytes / BYTES_PER_FUEL as u64))?;
    let is_map = text.contains("%(");
    if is_map {
        return format(FormatStyle::Printf, text, &values).map(Value::from);
    }
    let (text, values) = printf::simplified(text, values)?;
    // A width may come from an argument.
    state.consume_fuel((methods::widths(&text) / BYTES_PER_FUEL) as u64)?;
    let shown = |value: Value| match value.kind() {
        ValueKind::Seq | ValueKind::Map => Ok(python_text::other_text(&value)?.map_or(value, Value::from)),
        _ => Ok::<_, Error>(value),
    };
    let values = values.into_iter().map(shown).collect::<Result<Vec<_>, Error>>()?;
    format(FormatStyle::Printf, &text, &values).map(Value::from)
}

/// Implements the filter `sum` for numbers.
fn sum(
    state: &State<'_, '_>,
    values: Value,
    attribute: Option<&str>,
    start: Option<Value>,
    options: Kwargs,
) -> Result<Value, Error> {
    let named = options.peek::<Option<Value>>("start")?;
    if let (None, Some(list)) = (attribute, start.as_ref().or(named.as_ref()).filter(|start| is_list(start))) {
        return values.try_iter()?.try_fold(list.clone(), |all, item| add(state, &all, &item));
    }
    if let Some(start) = start.as_ref().or(named.as_ref()).filter(|start| !start.is_number()) {
        let text = format!("sum: expected a number as the start, found a {}", start.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, text));
    }
    minijinja::filters::sum(state, values, attribute, start, options)
}
