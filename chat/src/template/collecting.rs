//! Macros that take further arguments, as `varargs` and `kwargs`.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, Tuple};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::operands;

/// Name of the function that makes a macro collect its further arguments; no variable of a template can have it.
pub(super) const COLLECT: &str = "+collect";
/// Further positional arguments of a macro, in a tuple.
pub(super) const VARARGS: &str = "varargs";
/// Further named arguments of a macro, in a map.
pub(super) const KWARGS: &str = "kwargs";

/// Registers the function that collects arguments, [`COLLECT`].
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_function(COLLECT, |inner: Value, varargs: bool, kwargs: bool| {
        let mut arguments: Vec<Value> = inner.get_attr("arguments")?.try_iter()?.collect();
        // The last two are what is collected.
        arguments.truncate(arguments.len().saturating_sub(2));
        Ok::<_, Error>(Value::from_object(Collecting { inner, arguments, varargs, kwargs }))
    });
}

/// A macro that mentions `varargs` or `kwargs`.
struct Collecting {
    /// The macro, which has both as further arguments.
    inner: Value,
    arguments: Vec<Value>,
    varargs: bool,
    kwargs: bool,
}

impl fmt::Debug for Collecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

impl Object for Collecting {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "caller"])
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "arguments" => Some(Value::from(self.arguments.clone())),
            "catch_varargs" => Some(Value::from(self.varargs)),
            "catch_kwargs" => Some(Value::from(self.kwargs)),
            name @ ("name" | "caller") => self.inner.get_attr(name).ok(),
            _ => None,
        }
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        state.consume_fuel(args.len() as u64)?;
        let mut positional = args.to_vec();
        let named = match positional.pop_if(|last| last.is_kwargs()) {
            Some(named) => Kwargs::try_from(named)?,
            None => Kwargs::from_iter(std::iter::empty::<(&str, Value)>()),
        };
        let further = positional.split_off(positional.len().min(self.arguments.len()));
        let takes_caller = self.inner.get_attr("caller")?.is_true();
        let (mut passed, mut others) = (Vec::new(), Vec::new());
        for name in named.args() {
            state.consume_fuel(1)?;
            // Python takes a second value of a positional argument as a further argument.
            let is_own = self.arguments.iter().skip(positional.len()).any(|own| own.as_str() == Some(name));
            let list = if is_own || (takes_caller && name == "caller") { &mut passed } else { &mut others };
            list.push((name.to_owned(), named.peek::<Value>(name)?));
        }
        if !self.varargs && !further.is_empty() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        if let (false, Some((name, _))) = (self.kwargs, others.first()) {
            return Err(Error::new(ErrorKind::TooManyArguments, format!("unknown keyword argument `{name}`")));
        }
        passed.push((VARARGS.to_owned(), Value::from(Tuple::from(further))));
        passed.push((KWARGS.to_owned(), Value::from_pairs(others)));
        positional.push(Value::from(Kwargs::from_iter(passed)));
        self.inner.call(state, &positional)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

/// Returns whether a value is a macro of this kind.
pub(super) fn is_collecting(value: &Value) -> bool {
    value.downcast_object_ref::<Collecting>().is_some_and(|macro_| operands::is_macro(&macro_.inner))
}
