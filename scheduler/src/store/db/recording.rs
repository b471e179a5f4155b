//! Records, for tests, the statements that a thread executes, with the values of their parameters.

use std::cell::RefCell;

use super::query::{Sql, sql_by};
use super::value::Value;

thread_local! {
    static RECORDED: RefCell<Option<Vec<Sql<'static>>>> = const { RefCell::new(None) };
}

/// Records the statements of this thread from now on.
pub(crate) fn start() {
    RECORDED.set(Some(Vec::new()));
}

/// Ends the recording and returns the statements.
pub(crate) fn finish() -> Vec<Sql<'static>> {
    RECORDED.take().unwrap_or_default()
}

impl Sql<'_> {
    pub(super) fn record(&self) {
        RECORDED.with_borrow_mut(|recorded| {
            if let Some(recorded) = recorded {
                let values = self.values.iter().map(owned).collect();
                recorded.push(Sql { values, ..sql_by(self.sqlite, self.postgres) });
            }
        });
    }

    /// Returns the same statement behind a prefix such as `EXPLAIN`.
    pub(crate) fn prefixed(&self, prefix: &str) -> Sql<'static> {
        let text = |text| &*Box::leak(format!("{prefix} {text}").into_boxed_str());
        let values = self.values.iter().map(owned).collect();
        Sql { values, ..sql_by(text(self.sqlite), text(self.postgres)) }
    }

    /// Returns the name at the beginning of the text, `-- name`.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.sqlite.strip_prefix("-- ")?.lines().next()
    }

    /// Returns the number of texts in the parameters that are lists.
    pub(crate) fn listed(&self) -> usize {
        let len = |value: &Value<'_>| match value {
            Value::Texts(texts) => texts.len(),
            _ => 0,
        };
        self.values.iter().map(len).sum()
    }

    /// Returns whether the statement only reads.
    pub(crate) fn reads(&self) -> bool {
        self.sqlite.lines().nth(1).is_some_and(|line| line.trim_start().starts_with("SELECT"))
    }
}

fn owned(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Text(text) => Value::OwnedText(text.map(str::to_owned)),
        Value::OwnedText(text) => Value::OwnedText(text.clone()),
        Value::Int(number) => Value::Int(*number),
        Value::Bool(truth) => Value::Bool(*truth),
        Value::Bytes(bytes) => Value::Bytes(bytes.map(|bytes| &*Box::leak(bytes.to_vec().into_boxed_slice()))),
        Value::Texts(texts) => Value::Texts(texts.clone()),
    }
}
