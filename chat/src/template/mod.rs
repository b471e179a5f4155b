//! A model's own chat template, rendered as `transformers` renders it: Jinja with trimmed blocks, loop controls,
//! `generation` blocks, `raise_exception`, `strftime_now`, Python's methods and Python's `tojson`.
//!
//! A template is a program that came with the model. It gets limited fuel, which bounds its time, its memory and its
//! output, so that a bomb is an error.

mod chains;
mod collecting;
#[cfg(test)]
mod compatibility_tests;
mod copies;
mod cycler;
#[cfg(test)]
mod differential_tests;
mod filters;
mod fuel;
#[cfg(test)]
mod fuzz;
mod generation;
mod methods;
mod operands;
mod printf;
mod program;
mod python_json;
mod python_text;
mod scopes;
mod shared;
#[cfg(test)]
mod tests;
mod text_methods;
mod time;

use std::collections::BTreeMap;

use ::time::OffsetDateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, State, Value};

pub(crate) use self::python_json::to_line;
use super::sent_image::ChatImage;

/// Stack of a rendering, in bytes. Nested values, of which fuel pays for some hundred thousand levels, are dropped with
/// one stack frame per level.
const STACK: usize = 512 << 20;
/// Maximum depth of nested calls, such as those of macros.
const RECURSION: usize = 100;
/// Maximum length of a template, in bytes.
const MAX_SOURCE: usize = 1 << 20;

/// Names of the template for conversations, and of the one for conversations with tools, which some models have.
const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";

/// Error when rendering a conversation.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The template refused the conversation with this message.
    #[error("{0}")]
    Refused(String),
    /// Rendering takes too long, or its output is too large.
    #[error("the model's chat template exceeds its limits on time and output")]
    Exhausted,
    /// The template has an error.
    #[error("failed to render the model's chat template: {0}")]
    Failed(String),
}

/// A conversation as templates see it.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Maps with at least `role` and `content`.
    pub messages: Vec<Value>,
    /// The tools, as JSON schemas of functions.
    pub tools: Vec<Value>,
    /// Further variables of the template.
    pub variables: BTreeMap<String, Value>,
    /// Whether the prompt ends with the beginning of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Images in the order of their parts, which templates do not see.
    pub images: Vec<ChatImage>,
}

/// A compiled chat template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    sources: BTreeMap<String, String>,
    /// Special tokens by name, such as `bos_token`.
    tokens: BTreeMap<String, String>,
}

impl ChatTemplate {
    /// Compiles templates by name; one of them is `default`. All of them have the variables `tokens`.
    ///
    /// # Errors
    ///
    /// An error if a template does not compile or is too long.
    pub fn new(mut sources: BTreeMap<String, String>, tokens: BTreeMap<String, String>) -> Result<Self, TemplateError> {
        let mut environment = environment().map_err(failed)?;
        for (name, source) in &mut sources {
            if source.len() > MAX_SOURCE {
                return Err(TemplateError::Failed(format!("it is longer than {MAX_SOURCE} bytes")));
            }
            // As Jinja2 reads a source.
            *source = source.replace("\r\n", "\n").replace('\r', "\n");
            if let Some(other) = generation::without_generation(source).map_err(TemplateError::Failed)? {
                *source = other;
            }
            program::check(name, source, &syntax().map_err(failed)?).map_err(failed)?;
            environment.add_template_owned(name.clone(), source.clone()).map_err(failed)?;
        }
        if !sources.contains_key(DEFAULT) {
            return Err(TemplateError::Failed(format!("no template is called {DEFAULT:?}")));
        }
        Ok(Self { environment, sources, tokens })
    }

    /// Returns whether any of the templates contains this word: a variable, or a marker in its output.
    pub fn mentions(&self, word: &str) -> bool {
        self.sources.values().any(|source| source.contains(word))
    }

    /// Returns the text of a conversation.
    ///
    /// # Errors
    ///
    /// See [`TemplateError`].
    pub fn render(&self, conversation: &Conversation, now: OffsetDateTime) -> Result<String, TemplateError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("chat-template".to_owned()).stack_size(STACK);
            let render = move || self.render_here(conversation, now);
            let thread =
                thread.spawn_scoped(scope, render).map_err(|error| TemplateError::Failed(error.to_string()))?;
            thread.join().unwrap_or_else(|_| Err(TemplateError::Failed("it panicked".to_owned())))
        })
    }

    /// Renders like [`ChatTemplate::render`], on a thread that already has [`STACK`].
    fn render_here(&self, conversation: &Conversation, now: OffsetDateTime) -> Result<String, TemplateError> {
        let own = !conversation.tools.is_empty() && self.sources.contains_key(TOOL_USE);
        let name = if own { TOOL_USE } else { DEFAULT };
        let source = self.sources.get(name).map(String::as_str).unwrap_or_default();
        let mut context: BTreeMap<String, Value> =
            self.tokens.iter().map(|(name, token)| (name.clone(), Value::from(token.as_str()))).collect();
        context.extend(conversation.variables.clone());
        let tools = &conversation.tools;
        context.insert("messages".to_owned(), Value::from(conversation.messages.clone()));
        context.insert("tools".to_owned(), if tools.is_empty() { Value::from(()) } else { Value::from(tools.clone()) });
        context.insert("documents".to_owned(), Value::from(()));
        context.insert("add_generation_prompt".to_owned(), Value::from(conversation.add_generation_prompt));
        let clock = Value::from_function(move |state: &State<'_, '_>, format: &str| {
            // Each code may be a word.
            state.consume_fuel(format.len() as u64 / 8)?;
            time::strftime(now, format)
        });
        context.insert("strftime_now".to_owned(), clock);
        let syntax = syntax().map_err(failed)?;
        program::render(&self.environment, name, source, &syntax, Value::from(context)).map_err(of_rendering)
    }
}

/// Returns a syntax in which blocks are trimmed.
fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()
}

/// Returns the environment in which `transformers` renders templates.
fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(syntax()?);
    environment.set_fuel(Some(fuel::FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.set_debug(false);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(methods::call);
    minijinja_contrib::add_to_environment(&mut environment);
    filters::add(&mut environment);
    collecting::add(&mut environment);
    program::count_operators(&mut environment);
    chains::pay_for_chains(&mut environment);
    shared::guard(&mut environment);
    environment.add_filter("tojson", python_json::tojson);
    environment.add_function("raise_exception", methods::raise_exception);
    Ok(environment)
}

fn failed(error: Error) -> TemplateError {
    TemplateError::Failed(error.to_string())
}

fn of_rendering(error: Error) -> TemplateError {
    if error.kind() == ErrorKind::OutOfFuel {
        return TemplateError::Exhausted;
    }
    match error.detail().and_then(|detail| detail.strip_prefix(methods::RAISED)) {
        Some(message) => TemplateError::Refused(message.to_owned()),
        None => failed(error),
    }
}
