//! The field `tool_choice` of conversations in the OpenAI API.

use minijinja::Value as Ordered;
use serde_json::Value;

use super::super::settings::unsupported;
use crate::error::ChatError;
use crate::forced_calls::{Demand, ForcedCalls};

/// Place of the name in the demand of a tool.
#[derive(Clone, Copy)]
pub(super) enum NameForm {
    /// `{"type": "function", "function": {"name": …}}`, in chat completions.
    Nested,
    /// `{"type": "function", "name": …}`, in responses.
    Flat,
}

/// Which tools a request lets the model call.
pub(super) struct ToolChoice<'a> {
    pub(super) choice: Option<&'a Value>,
    /// The field `parallel_tool_calls` of the request.
    pub(super) parallel: Option<bool>,
    pub(super) form: NameForm,
}

impl ToolChoice<'_> {
    /// Returns whether the model may call tools.
    pub(super) fn offers(&self) -> bool {
        self.choice.and_then(Value::as_str) != Some("none")
    }

    /// Returns the calls that the model must make.
    ///
    /// # Errors
    /// [`ChatError::Invalid`] if the choice has another form, or no tool fits it.
    pub(super) fn forced_calls(&self, tools: &[Ordered]) -> Result<Option<ForcedCalls>, ChatError> {
        let demand = match self.choice {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(choice)) if matches!(choice.as_str(), "auto" | "none") => return Ok(None),
            Some(Value::String(choice)) if choice == "required" => Demand::Any,
            Some(choice) => Demand::Named(self.name(choice)?),
        };
        // A named tool is called once, as by OpenAI.
        let several = demand == Demand::Any && self.parallel != Some(false);
        ForcedCalls::new(tools, demand, several).map(Some)
    }

    fn name<'b>(&self, choice: &'b Value) -> Result<&'b str, ChatError> {
        let (name, form) = match self.form {
            NameForm::Nested => (&choice["function"]["name"], r#"{"type": "function", "function": {"name": …}}"#),
            NameForm::Flat => (&choice["name"], r#"{"type": "function", "name": …}"#),
        };
        let name = name.as_str().filter(|_| choice["type"] == "function");
        name.ok_or_else(|| {
            let expected = format!("expected \"auto\", \"none\", \"required\" or {form}");
            ChatError::invalid(format!("tool_choice: {expected}, found {choice}"))
        })
    }

    /// Refuses a bound on calls that the model does not keep by itself.
    ///
    /// # Errors
    /// [`ChatError::Invalid`], which names the field.
    pub(super) fn check_parallel(&self, has_tools: bool) -> Result<(), ChatError> {
        let free = self.choice.is_none_or(|choice| choice.is_null() || choice == "auto");
        let one_call = self.parallel == Some(false) && free && has_tools;
        unsupported("parallel_tool_calls", one_call, "false is supported only when tool_choice requires a call")
    }
}
