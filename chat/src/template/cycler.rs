//! The function `cycler` of Jinja2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Object, ObjectRepr, Rest, from_args};
use minijinja::{Error, ErrorKind, State, Value};

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    position: AtomicUsize,
}

/// Makes an object whose `next()` returns its items in turn.
pub(super) fn cycler(items: Rest<Value>) -> Result<Value, Error> {
    if items.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "cycler: expected at least one item"));
    }
    Ok(Value::from_object(Cycler { items: items.to_vec(), position: AtomicUsize::new(0) }))
}

impl Cycler {
    fn current(&self) -> Value {
        self.items.get(self.position.load(Ordering::Relaxed)).cloned().unwrap_or_default()
    }
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, name: &Value) -> Option<Value> {
        (name.as_str() == Some("current")).then(|| self.current())
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        let () = from_args(args)?;
        match method {
            "next" => {
                let item = self.current();
                self.position.store((self.position.load(Ordering::Relaxed) + 1) % self.items.len(), Ordering::Relaxed);
                Ok(item)
            }
            "reset" => {
                self.position.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}
