//! The parts of a completion: what the model thinks, what it says, and the tools that it calls.
//!
//! Tool calls are those of Hermes and Qwen: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. A block that is not
//! a call is text like other text. Thoughts are between `<think>` and `</think>`, or begin with the prompt's end.

use minijinja::Value;
use serde::{Deserialize, Serialize};

use super::channels::ChannelParser;
use super::stop::partial_suffix;
use super::template::to_line;

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";
/// Marker that begins a tool call. Templates that contain it use this format.
pub(crate) const CALL: &str = "<tool_call>";
/// Marker that ends a tool call.
pub(crate) const CALL_END: &str = "</tool_call>";

/// A part of a completion, or the continuation of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text that is the answer.
    Text(String),
    /// Text of the thoughts before the answer.
    Reasoning(String),
    /// A whole call of a tool.
    ToolCall(ToolCall),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Name of the called function.
    pub name: String,
    /// Arguments: a JSON object, as text.
    pub arguments: String,
}

/// Parts to look for in a completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFormat {
    /// Whether to look for thoughts.
    pub reasoning: bool,
    /// Whether the prompt ends within thoughts.
    pub begins_in_reasoning: bool,
    /// Whether to look for tool calls.
    pub tool_calls: bool,
    /// Whether the reply is in channels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub channels: bool,
}

impl OutputFormat {
    /// Returns the format of the rest of a reply that was cut off: thoughts begin only at a reply's beginning.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { reasoning: false, begins_in_reasoning: false, channels: false, ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only white space so far; thoughts may begin.
    Start,
    /// Line feeds at the beginning of thoughts.
    ReasoningStart,
    Reasoning,
    /// White space after thoughts or between calls.
    Gap,
    Text,
    ToolCall,
}

/// Splits the text of one completion.
pub(crate) struct OutputParser {
    format: OutputFormat,
    state: State,
    /// Text that is not decided yet.
    held: String,
    /// White space before a call, which is text if the block is not one.
    before: String,
    /// Bytes of a call that were searched for its end without success.
    searched: usize,
    /// What splits the text in its place, if it is in channels.
    channels: Option<ChannelParser>,
}

impl OutputParser {
    pub(crate) fn new(format: OutputFormat) -> Self {
        let state = match format {
            OutputFormat { begins_in_reasoning: true, .. } => State::Reasoning,
            OutputFormat { reasoning: true, .. } => State::Start,
            _ => State::Text,
        };
        let channels = format.channels.then(|| ChannelParser::new(format.tool_calls));
        Self { format, state, held: String::new(), before: String::new(), searched: 0, channels }
    }

    /// Returns whether the text so far ends within thoughts.
    pub(crate) fn is_in_thoughts(&self) -> bool {
        let is_thought = matches!(self.state, State::ReasoningStart | State::Reasoning);
        self.channels.as_ref().map_or(is_thought, ChannelParser::is_in_thoughts)
    }

    /// Appends text and returns the parts that are now decided.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Part> {
        if let Some(channels) = &mut self.channels {
            return channels.push(text);
        }
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Ends the text and returns the remaining parts.
    pub(crate) fn finish(&mut self) -> Vec<Part> {
        if let Some(channels) = &mut self.channels {
            return channels.finish();
        }
        let mut parts = Vec::new();
        // A string of a block that is not JSON has no end, and may hold what are calls.
        while self.state == State::ToolCall && call(&self.held).is_none() && self.held.contains(CALL_END) {
            let (block, rest) = self.held.split_once(CALL_END).unwrap_or_default();
            let (block, rest) = (block.to_owned(), rest.to_owned());
            self.give_back(&block, &mut parts);
            self.held = rest;
            while self.step(&mut parts) {}
        }
        let rest = std::mem::take(&mut self.held);
        match self.state {
            // The end of a call may have been the stop.
            State::ToolCall => parts.push(call(&rest).unwrap_or_else(|| {
                let before = std::mem::take(&mut self.before);
                Part::Text(format!("{before}{CALL}{rest}"))
            })),
            _ if rest.is_empty() => {}
            State::ReasoningStart | State::Reasoning => parts.push(Part::Reasoning(rest)),
            State::Gap => {}
            State::Start | State::Text => parts.push(Part::Text(rest)),
        }
        parts
    }

    /// Converts a block that is not a call to text.
    fn give_back(&mut self, block: &str, parts: &mut Vec<Part>) {
        let before = std::mem::take(&mut self.before);
        parts.push(Part::Text(format!("{before}{CALL}{block}{CALL_END}")));
        self.state = State::Text;
        self.searched = 0;
    }

    /// Decides the beginning of the held text. Returns whether more may be decided.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Start => {
                let start = self.held.trim_start();
                if let Some(rest) = start.strip_prefix(THINK) {
                    self.held = rest.to_owned();
                    self.state = State::ReasoningStart;
                } else if THINK.starts_with(start) {
                    return false;
                } else {
                    self.state = State::Text;
                }
                true
            }
            State::ReasoningStart => {
                self.held = self.held.trim_start_matches('\n').to_owned();
                if self.held.is_empty() {
                    return false;
                }
                self.state = State::Reasoning;
                true
            }
            State::Reasoning => {
                let (thought, ended) = self.take_until(THINK_END);
                push_text(parts, thought, Part::Reasoning);
                self.state = if ended { State::Gap } else { State::Reasoning };
                ended
            }
            State::Gap => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return false;
                }
                self.state = State::Text;
                true
            }
            State::Text if !self.format.tool_calls => {
                push_text(parts, std::mem::take(&mut self.held), Part::Text);
                false
            }
            State::Text => {
                let (mut text, ended) = self.take_until(CALL);
                let end = text.trim_end().len();
                self.before = text.split_off(end);
                push_text(parts, text, Part::Text);
                if ended {
                    (self.state, self.searched) = (State::ToolCall, 0);
                } else {
                    // A call may follow.
                    self.held.insert_str(0, &std::mem::take(&mut self.before));
                }
                ended
            }
            State::ToolCall => self.end_call(parts),
        }
    }

    /// Takes a block with its end, which may also be in a string of its arguments.
    fn end_call(&mut self, parts: &mut Vec<Part>) -> bool {
        while let Some(at) = self.held.get(self.searched..).and_then(|rest| rest.find(CALL_END)) {
            let end = self.searched + at;
            let block = self.held.get(..end).unwrap_or_default().to_owned();
            let found = call(&block);
            if found.is_none() && ends_in_string(&block) {
                self.searched = end + CALL_END.len();
                continue;
            }
            self.held.drain(..end + CALL_END.len());
            match found {
                Some(call) => {
                    parts.push(call);
                    self.before.clear();
                    (self.state, self.searched) = (State::Gap, 0);
                }
                None => self.give_back(&block, parts),
            }
            return true;
        }
        // The end of what is held may be the beginning of the marker.
        let undecided = partial_suffix(&self.held, CALL_END);
        self.searched = self.searched.max(self.held.len() - undecided);
        false
    }

    /// Takes the text before a marker, and the marker. Without a marker, takes the text that can't be its beginning.
    fn take_until(&mut self, marker: &str) -> (String, bool) {
        if let Some((before, after)) = self.held.split_once(marker) {
            let text = before.to_owned();
            self.held = after.to_owned();
            return (text, true);
        }
        let undecided = self.held.len() - partial_suffix(&self.held, marker);
        let rest = self.held.split_off(undecided);
        (std::mem::replace(&mut self.held, rest), false)
    }
}

/// Returns whether the beginning of a JSON object ends within a string.
fn ends_in_string(block: &str) -> bool {
    if !block.trim_start().starts_with('{') {
        return false;
    }
    let (mut within, mut escaped) = (false, false);
    for byte in block.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if within => escaped = true,
            b'"' => within = !within,
            _ => {}
        }
    }
    within
}

fn push_text(parts: &mut Vec<Part>, text: String, part: fn(String) -> Part) {
    if !text.is_empty() {
        parts.push(part(text));
    }
}

/// Returns the call that a block describes, if it describes one.
fn call(block: &str) -> Option<Part> {
    let value: Value = serde_json::from_str(block.trim()).ok()?;
    let name = value.get_attr("name").ok()?.as_str()?.to_owned();
    let given = value.get_attr("arguments").ok()?;
    let given = if given.is_undefined() { value.get_attr("parameters").ok()? } else { given };
    let arguments = match given.as_str() {
        Some(text) => text.to_owned(),
        None if given.is_undefined() || given.is_none() => "{}".to_owned(),
        None => to_line(&given).ok()?,
    };
    Some(Part::ToolCall(ToolCall { name, arguments }))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: OutputFormat =
        OutputFormat { reasoning: true, begins_in_reasoning: false, tool_calls: true, channels: false };

    fn parsed(format: OutputFormat, pieces: &[&str]) -> Vec<Part> {
        let mut parser = OutputParser::new(format);
        let mut parts: Vec<Part> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
        parts.extend(parser.finish());
        joined(parts)
    }

    /// Merges neighbours of the same kind.
    pub(crate) fn joined(parts: Vec<Part>) -> Vec<Part> {
        let mut all: Vec<Part> = Vec::new();
        for part in parts {
            match (all.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) | (Some(Part::Reasoning(text)), Part::Reasoning(more)) => {
                    text.push_str(&more);
                }
                (_, part) => all.push(part),
            }
        }
        all
    }

    pub(crate) fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    pub(crate) fn thought(text: &str) -> Part {
        Part::Reasoning(text.to_owned())
    }

    fn called(name: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall { name: name.to_owned(), arguments: arguments.to_owned() })
    }

    const WHOLE: &str = "<think>\nLet me see <b>.\n</think>\n\nI look it up.\n<tool_call>\n{\"name\": \"f\", \"arguments\": \
        {\"z\": 1, \"a\": \"é\"}}\n</tool_call>\n<tool_call>{\"name\":\"g\",\"parameters\":{}}</tool_call>";

    fn expected() -> Vec<Part> {
        let f = called("f", "{\"z\": 1, \"a\": \"é\"}");
        vec![thought("Let me see <b>.\n"), text("I look it up."), f, called("g", "{}")]
    }

    #[test]
    fn thoughts_text_and_calls_are_told_apart() {
        assert_eq!(parsed(ALL, &[WHOLE]), expected());
        assert_eq!(parsed(ALL, &["no thoughts < here"]), [text("no thoughts < here")]);
        assert_eq!(parsed(OutputFormat::default(), &[WHOLE]), [text(WHOLE)]);
        let inside = OutputFormat { begins_in_reasoning: true, ..ALL };
        assert_eq!(parsed(inside, &["so", "</thi", "nk> yes \n"]), [thought("so"), text("yes \n")]);
        assert_eq!(parsed(inside, &["endless"]), [thought("endless")]);
    }

    #[test]
    fn what_is_no_call_is_text() {
        for block in [
            "a <tool_call>{oops}</tool_call> b",
            "a\n\n<tool_call>\nfunction: f\n</tool_call>\n\nb",
            "<tool_call></tool_call>",
            " <tool_call>{\"text\": \"x</tool_call> b",
            "a <tool_call>{\"name\": 3}</tool_call>",
            "a <tool_call> ",
            "a <tool_call>",
        ] {
            assert_eq!(parsed(ALL, &[block]), [text(block)]);
            let letters: Vec<String> = block.chars().map(String::from).collect();
            assert_eq!(parsed(ALL, &letters.iter().map(String::as_str).collect::<Vec<_>>()), [text(block)]);
        }
        let mixed = "a <tool_call>{oops}</tool_call>\n<tool_call>{\"name\": \"f\"}</tool_call>";
        assert_eq!(parsed(ALL, &[mixed]), [text("a <tool_call>{oops}</tool_call>"), called("f", "{}")]);
        let open = "<tool_call>{\"name: 1}</tool_call>\n<tool_call>{'name': \"f</tool_call> <tool_call>{}";
        assert_eq!(parsed(ALL, &[open]), [text(open)]);
        assert_eq!(parsed(ALL, &["<tool_call>{\"name\": \"f\"}"]), [called("f", "{}")]);
        assert_eq!(parsed(ALL, &["<tool_call>{\"name\": "]), [text("<tool_call>{\"name\": ")]);
        assert_eq!(parsed(ALL, &["a <tool_c"]), [text("a <tool_c")]);
    }

    #[test]
    fn the_end_of_a_call_may_be_in_its_strings() {
        let said = r#"{"text": "say </tool_call> twice: \\</tool_call>", "n": 1}"#;
        let whole = format!("Well.\n<tool_call>\n{{\"name\": \"f\", \"arguments\": {said}}}\n</tool_call> Done.");
        let expected = [text("Well."), called("f", said), text("Done.")];
        assert_eq!(parsed(ALL, &[&whole]), expected);
        let letters: Vec<String> = whole.chars().map(String::from).collect();
        assert_eq!(parsed(ALL, &letters.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        // The model may have been stopped at the marker.
        let cut = format!("<tool_call>{{\"name\": \"f\", \"arguments\": {said}}}");
        assert_eq!(parsed(ALL, &[&cut]), [called("f", said)]);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(cuts in prop::collection::vec(0usize..WHOLE.len(), 0..12)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&at| WHOLE.is_char_boundary(at)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([WHOLE.len()]) {
                pieces.push(WHOLE.get(start..cut).unwrap_or_default());
                start = cut;
            }
            prop_assert_eq!(parsed(ALL, &pieces), expected());
        }
    }
}
