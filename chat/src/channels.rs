//! The parts of a completion in channels, as gpt-oss writes them:
//! `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>`.
//!
//! `analysis` is what the model thinks; `final` is its answer, and so is `commentary` that is for nobody else. A message
//! `to=functions.NAME` is a call of a tool, whose arguments are a JSON object.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::output::{Part, ToolCall};
use super::stop::partial_suffix;

/// Mark before the name of a channel. Templates that contain it write in channels.
pub(crate) const CHANNEL: &str = "<|channel|>";
/// Ends the header of a message.
const MESSAGE: &str = "<|message|>";
/// Begins the header of another message.
const START: &str = "<|start|>";
/// Names the type of a call's arguments, in a header.
const CONSTRAIN: &str = "<|constrain|>";
/// Marks that end a message.
const ENDS: [&str; 3] = ["<|end|>", "<|return|>", "<|call|>"];
const MARKS: [&str; 7] = [CHANNEL, MESSAGE, START, CONSTRAIN, ENDS[0], ENDS[1], ENDS[2]];

/// Begins the recipient of a message, in its header.
const TO: &str = "to=";
/// Begins the recipient of a call.
const FUNCTIONS: &str = "functions.";

/// Returns whether a special token is a mark, which is then part of the text.
pub(crate) fn is_mark(special: &str) -> bool {
    MARKS.contains(&special)
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Text,
    /// A call of the tool of this name.
    Call(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The beginning of the reply: a mark, the recipient of a message, or text without either.
    Start,
    /// The header of a message, up to where it is known.
    Header(String),
    Body(Kind),
}

/// Splits the text of one completion that is in channels.
pub(crate) struct ChannelParser {
    /// Whether to look for tool calls. Otherwise they are text.
    tool_calls: bool,
    state: State,
    /// Text that is not decided yet.
    held: String,
}

impl ChannelParser {
    pub(crate) fn new(tool_calls: bool) -> Self {
        Self { tool_calls, state: State::Start, held: String::new() }
    }

    /// Returns whether the text so far ends within thoughts.
    pub(crate) fn is_in_thoughts(&self) -> bool {
        self.state == State::Body(Kind::Reasoning)
    }

    /// Appends text and returns the parts that are now decided.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Ends the text and returns the remaining parts.
    pub(crate) fn finish(&mut self) -> Vec<Part> {
        let (mut parts, rest) = (Vec::new(), std::mem::take(&mut self.held));
        match std::mem::replace(&mut self.state, State::Body(Kind::Text)) {
            State::Start => add(Kind::Text, rest, &mut parts),
            // A header that was cut off says nothing.
            State::Header(_) => {}
            State::Body(kind) => add(kind, rest, &mut parts),
        }
        parts
    }

    /// Decides the beginning of the held text. Returns whether more may be decided.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        if self.state == State::Start {
            let start = self.held.trim_start();
            if TO.starts_with(start) || MARKS.iter().any(|mark| mark.starts_with(start) && *mark != start) {
                return false;
            }
            self.state = if start.starts_with(TO) { State::Header(String::new()) } else { State::Body(Kind::Text) };
        }
        let Some((before, mark)) = self.take_mark() else {
            self.push_decided(parts);
            return false;
        };
        self.state = match std::mem::replace(&mut self.state, State::Start) {
            State::Header(header) => self.after_header(header + &before, mark, parts),
            State::Body(kind) => {
                add(kind, before, parts);
                after_body(mark)
            }
            State::Start => after_body(mark),
        };
        true
    }

    /// Takes the text before the next mark, and the mark.
    fn take_mark(&mut self) -> Option<(String, &'static str)> {
        let found = MARKS.iter().filter_map(|mark| Some((self.held.find(mark)?, *mark)));
        let (at, mark) = found.min()?;
        let after = self.held.split_off(at + mark.len());
        let mut before = std::mem::replace(&mut self.held, after);
        before.truncate(at);
        Some((before, mark))
    }

    /// Takes text that can't be the beginning of a mark. Headers and calls are decided as a whole.
    fn push_decided(&mut self, parts: &mut Vec<Part>) {
        let State::Body(kind @ (Kind::Reasoning | Kind::Text)) = &self.state else { return };
        let undecided = MARKS.iter().map(|mark| partial_suffix(&self.held, mark)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - undecided);
        add(kind.clone(), std::mem::replace(&mut self.held, rest), parts);
    }

    fn after_header(&self, header: String, mark: &'static str, parts: &mut Vec<Part>) -> State {
        match mark {
            MESSAGE => State::Body(self.kind(&header)),
            // The recipient may be before the channel.
            CHANNEL if !header.contains(CHANNEL) => State::Header(header + CHANNEL),
            CONSTRAIN => State::Header(header + " "),
            _ => {
                // A message without the end of its header: the channel's name is followed by its text.
                let body = header.rsplit(CHANNEL).next().unwrap_or_default();
                let name = body.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(body.len());
                add(self.kind(&header), body[name..].to_owned(), parts);
                after_body(mark)
            }
        }
    }

    /// What the message with this header is.
    fn kind(&self, header: &str) -> Kind {
        let words = || header.split(CHANNEL).flat_map(str::split_whitespace);
        let recipient = words().find_map(|word| word.strip_prefix(TO));
        match recipient.and_then(|recipient| recipient.strip_prefix(FUNCTIONS)) {
            Some(name) if self.tool_calls => Kind::Call(name.to_owned()),
            Some(_) => Kind::Text,
            None if header.rsplit(CHANNEL).next().is_some_and(|name| name.trim_start().starts_with("analysis")) => {
                Kind::Reasoning
            }
            None => Kind::Text,
        }
    }
}

/// The state behind a mark that does not belong to a header.
fn after_body(mark: &'static str) -> State {
    match mark {
        CHANNEL => State::Header(CHANNEL.to_owned()),
        START => State::Header(String::new()),
        _ => State::Body(Kind::Text),
    }
}

/// Adds a text as what it is. Only a JSON object makes a call.
fn add(kind: Kind, text: String, parts: &mut Vec<Part>) {
    let is_object = || serde_json::from_str::<Value>(text.trim()).is_ok_and(|value| value.kind() == ValueKind::Map);
    match kind {
        Kind::Call(name) if is_object() => {
            parts.push(Part::ToolCall(ToolCall { name, arguments: text.trim().to_owned() }));
        }
        _ if text.is_empty() => {}
        Kind::Reasoning => parts.push(Part::Reasoning(text)),
        Kind::Text | Kind::Call(_) => parts.push(Part::Text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::{joined, text, thought};

    /// The parts of a text that comes in pieces of so many characters, with neighbours of a kind in one.
    fn parsed(text: &str, tool_calls: bool, size: usize) -> Vec<Part> {
        let mut parser = ChannelParser::new(tool_calls);
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
        let mut parts: Vec<Part> = pieces.flat_map(|piece| parser.push(&piece)).collect();
        parts.extend(parser.finish());
        joined(parts)
    }

    #[test]
    fn thoughts_answers_and_calls_are_told_apart() {
        let call = Part::ToolCall(ToolCall { name: "f".to_owned(), arguments: "{\"a\": \"<\"}".to_owned() });
        let cases = [
            (
                "<|channel|>analysis<|message|>So <b.<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>",
                vec![thought("So <b."), text("A")],
            ),
            ("<|channel|>analysis so\n<|channel|>final<|message|>A", vec![thought(" so\n"), text("A")]),
            (
                "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f \
                 <|constrain|>json<|message|>{\"a\": \"<\"}<|call|>",
                vec![text("I look."), call.clone()],
            ),
            (" to=functions.f<|channel|>commentary json<|message|> {\"a\": \"<\"}\n<|call|>", vec![call.clone()]),
            (
                "<|channel|>analysis<|message|>x<|end|><|start|>assistant to=functions.f<|channel|>commentary<|message|>\
                 {\"a\": \"<\"}",
                vec![thought("x"), call],
            ),
            ("<|channel|>commentary to=functions.f<|message|>{\"a\":<|call|>", vec![text("{\"a\":")]),
            ("no channel <| here", vec![text("no channel <| here")]),
            ("today", vec![text("today")]),
            ("<|channel|>ana", vec![]),
            ("<|channel|>analysis<|message|>endless", vec![thought("endless")]),
            ("<|channel|>final<|message|>a <|mess", vec![text("a <|mess")]),
            ("", vec![]),
        ];
        for (given, expected) in cases {
            for size in [1, 2, 7, 1000] {
                assert_eq!(parsed(given, true, size), expected, "{given} in pieces of {size}");
            }
        }
    }

    #[test]
    fn thoughts_are_known_as_such_while_they_come() {
        let mut parser = ChannelParser::new(true);
        for (text, is_thought) in [
            ("<|channel|>analysis", false),
            ("<|message|>", true),
            ("so", true),
            ("<|end|>", false),
            ("<|start|>assistant<|channel|>final<|message|>A", false),
        ] {
            parser.push(text);
            assert_eq!(parser.is_in_thoughts(), is_thought, "{text}");
        }
    }

    #[test]
    fn calls_are_text_where_none_are_expected() {
        let given = "<|channel|>commentary to=functions.f<|message|>{}<|call|>";
        assert_eq!(parsed(given, false, 1000), [text("{}")]);
    }
}
