//! Values that contain the same value many times.
//!
//! A template pays fuel for the lists that it creates, by item. A list may contain another one a thousand times, and
//! that one a third: a few items then stand for billions. Everything that visits all of them, such as writing,
//! comparing or sorting, is paid for here in advance, by what the value stands for. Values within themselves are
//! refused as nested too deeply.

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, escape_formatter};

use super::fuel::BYTES_PER_FUEL;
use super::operands;
use super::python_text::other_text;

/// Maximum depth of a value that is visited.
const MAX_DEPTH: usize = 128;

/// Filters that write or compare their arguments: name, name of the guarded filter, and number of visits to each item.
static FILTERS: [(&str, &str, u64); 38] = [
    ("attr", "+attr", 1),
    ("capitalize", "+capitalize", 1),
    ("center", "+center", 1),
    ("dictsort", "+dictsort", 16),
    ("e", "+e", 1),
    ("escape", "+escape", 1),
    ("filesizeformat", "+filesizeformat", 1),
    ("float", "+float", 1),
    ("forceescape", "+forceescape", 1),
    ("format", "+format", 1),
    ("groupby", "+groupby", 16),
    ("indent", "+indent", 1),
    ("int", "+int", 1),
    ("join", "+join", 1),
    ("lines", "+lines", 1),
    ("lower", "+lower", 1),
    ("map", "+map", 1),
    ("max", "+max", 1),
    ("min", "+min", 1),
    ("pluralize", "+pluralize", 1),
    ("reject", "+reject", 1),
    ("rejectattr", "+rejectattr", 1),
    ("replace", "+replace", 1),
    ("round", "+round", 1),
    ("safe", "+safe", 1),
    ("select", "+select", 1),
    ("selectattr", "+selectattr", 1),
    ("sort", "+sort", 16),
    ("split", "+split", 1),
    ("string", "+string", 1),
    ("striptags", "+striptags", 1),
    ("title", "+title", 1),
    ("trim", "+trim", 1),
    ("truncate", "+truncate", 1),
    ("unique", "+unique", 16),
    ("upper", "+upper", 1),
    ("urlencode", "+urlencode", 3),
    ("wordcount", "+wordcount", 1),
];

/// Tests that compare their arguments: name, and name of the guarded test.
static TESTS: [(&str, &str); 20] = [
    ("!=", "+!="),
    ("<", "+<"),
    ("<=", "+<="),
    ("==", "+=="),
    (">", "+>"),
    (">=", "+>="),
    ("endingwith", "+endingwith"),
    ("eq", "+eq"),
    ("equalto", "+equalto"),
    ("ge", "+ge"),
    ("greaterthan", "+greaterthan"),
    ("gt", "+gt"),
    ("in", "+in"),
    ("le", "+le"),
    ("lessthan", "+lessthan"),
    ("lower", "+lower"),
    ("lt", "+lt"),
    ("ne", "+ne"),
    ("startingwith", "+startingwith"),
    ("upper", "+upper"),
];

/// The operators of an environment's templates, as functions that no variable of a template can name.
const CONCATENATE: &str = "~";
/// Name of the function that reads the attribute `arguments`.
const ARGUMENTS: &str = ".arguments";
const COMPARISONS: [&str; 7] = ["==", "!=", "<", "<=", ">", ">=", "in"];

/// Registers the functions that [`guarded`] calls.
pub(super) fn guard(environment: &mut Environment<'static>) {
    environment.set_formatter(|out, state, value| {
        charge(state, value)?;
        match other_text(value)? {
            Some(text) => escape_formatter(out, state, &Value::from(text)),
            None => escape_formatter(out, state, value),
        }
    });
    // Also where `map` calls it.
    environment.add_filter("string", |state: &State<'_, '_>, value: &Value| match other_text(value)? {
        Some(text) => Ok(Value::from(text)),
        None => minijinja::filters::string(state, value),
    });
    for (name, guarded, visits) in FILTERS {
        environment.add_filter(guarded, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let mut args = args.into_values();
            charge_filter(state, name, &args, visits)?;
            if let ("join" | "sort" | "unique" | "min" | "max" | "groupby", [items, ..]) = (name, &*args) {
                operands::iterable(items.clone())?;
            }
            match (name, args.as_mut_slice()) {
                ("join", [items]) => *items = with_texts(items)?,
                // Not where an attribute of the items is joined.
                ("join", [items, joiner]) if !joiner.is_kwargs() => *items = with_texts(items)?,
                _ => {}
            }
            state.apply_filter(name, &args)
        });
    }
    for (name, guarded) in TESTS {
        environment.add_test(guarded, move |state: &mut State<'_, '_>, args: Rest<Value>| {
            args.iter().try_for_each(|arg| charge(state, arg).map(drop))?;
            if let [a, b] = &**args {
                operands::check(name, a, b)?;
            }
            state.perform_test(name, &args)
        });
    }
    for name in COMPARISONS {
        environment.add_function(name, move |state: &mut State<'_, '_>, a: Value, b: Value| {
            charge(state, &a)?;
            charge(state, &b)?;
            operands::check(name, &a, &b)?;
            state.perform_test(name, &[a, b])
        });
    }
    environment.add_function(CONCATENATE, |state: &mut State<'_, '_>, a: Value, b: Value| {
        charge(state, &a)?;
        charge(state, &b)?;
        let mut text = |value: &Value| match (value.as_str(), other_text(value)?) {
            (Some(text), _) => Ok(text.to_owned()),
            (_, Some(text)) => Ok(text),
            _ => state.apply_filter("string", std::slice::from_ref(value)).map(|text| text.to_string()),
        };
        let (a, b) = (text(&a)?, text(&b)?);
        state.consume_fuel((a.len() + b.len()).div_ceil(BYTES_PER_FUEL) as u64)?;
        Ok(Value::from([a, b].concat()))
    });
    environment.add_function(ARGUMENTS, |value: Value| {
        let arguments = value.get_attr("arguments")?;
        // Those of a macro are a tuple in Python.
        Ok::<_, Error>(if operands::is_macro(&value) {
            Value::from(Tuple::from(arguments.try_iter()?.collect::<Vec<_>>()))
        } else {
            arguments
        })
    });
    // It writes all that there is.
    environment.remove_global("debug");
    // Python's has lines of 80 characters.
    environment.remove_filter("pprint");
}

/// Converts items to texts where `minijinja` writes them differently than Python.
pub(super) fn with_texts(items: &Value) -> Result<Value, Error> {
    if !matches!(items.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(items.clone());
    }
    let text = |item: Value| Ok(other_text(&item)?.map_or(item, Value::from));
    items.try_iter()?.map(text).collect::<Result<Vec<_>, Error>>().map(Value::from)
}

/// Replaces operators, filters and tests with those of [`guard`], except comparisons of three operands.
pub(super) fn guarded(instructions: &mut Instructions<'_>) {
    for at in 0.. {
        let Some(instruction) = instructions.get_mut(at) else { break };
        let call = |name: &'static str| Instruction::CallFunction(name, Some(2));
        // The operators take two values from the stack and leave one.
        let other = match instruction {
            Instruction::StringConcat => call(CONCATENATE),
            Instruction::Eq => call("=="),
            Instruction::Ne => call("!="),
            Instruction::Lt => call("<"),
            Instruction::Lte => call("<="),
            Instruction::Gt => call(">"),
            Instruction::Gte => call(">="),
            Instruction::In => call("in"),
            Instruction::GetAttr("arguments") => Instruction::CallFunction(ARGUMENTS, Some(1)),
            Instruction::ApplyFilter(name, count, local) => match FILTERS.iter().find(|filter| filter.0 == *name) {
                Some((_, guarded, _)) => Instruction::ApplyFilter(guarded, *count, *local),
                None => continue,
            },
            Instruction::PerformTest(name, count, local) => match TESTS.iter().find(|test| test.0 == *name) {
                Some((_, guarded)) => Instruction::PerformTest(guarded, *count, *local),
                None => continue,
            },
            _ => continue,
        };
        *instruction = other;
    }
}

fn charge_filter(state: &State<'_, '_>, name: &str, args: &[Value], visits: u64) -> Result<(), Error> {
    let Some((value, options)) = args.split_first() else { return Ok(()) };
    let mut size = 0;
    for option in options {
        size += charge(state, option)?;
    }
    if matches!(name, "select" | "reject" | "selectattr" | "rejectattr") {
        // A part of each item is compared with the options; the items themselves are not visited.
        let items = value.len().unwrap_or(0) as u64;
        return state.consume_fuel(size.saturating_mul(items));
    }
    if let (Some(text), "split" | "lines") = (value.as_str(), name) {
        let separator = options.first().and_then(Value::as_str);
        state.consume_fuel(parts(text, separator))?;
    }
    size += charge(state, value)?;
    state.consume_fuel(size.saturating_mul(visits - 1))
}

/// Returns the number of parts that a text is split into.
pub(super) fn parts(text: &str, separator: Option<&str>) -> u64 {
    match separator {
        Some(separator) => text.matches(separator).count() as u64,
        None => text.bytes().filter(u8::is_ascii_whitespace).count() as u64,
    }
}

/// Charges fuel for everything that a value stands for, and returns the amount. The engine charges for texts by
/// themselves.
pub(super) fn charge(state: &State<'_, '_>, value: &Value) -> Result<u64, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => visit(state, value, 0),
        _ => Ok(0),
    }
}

fn visit(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<u64, Error> {
    let pay = |size: u64| state.consume_fuel(size).map(|()| size);
    let is_map = match value.kind() {
        ValueKind::String => return pay(1 + (value.as_str().map_or(0, str::len) / BYTES_PER_FUEL) as u64),
        ValueKind::Seq | ValueKind::Iterable => false,
        ValueKind::Map => true,
        _ => return pay(1),
    };
    if depth > MAX_DEPTH {
        let text = format!("a value is nested more than {MAX_DEPTH} levels deep");
        return Err(Error::new(ErrorKind::InvalidOperation, text));
    }
    let mut size = pay(1)?;
    for item in value.try_iter()? {
        size += visit(state, &item, depth + 1)?;
        if is_map {
            size += visit(state, &value.get_item(&item)?, depth + 1)?;
        }
    }
    Ok(size)
}
