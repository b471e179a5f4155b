//! The text between a recorded reply and the next one: the part that a request adds to a conversation whose tokens are
//! known.
//!
//! The conversation is rendered three times: up to the reply's beginning, up to its end, and as a whole. If each text
//! begins with the one before, the reply's tokens stay as they were sampled, and only what follows them is encoded.
//! Templates that rewrite or drop earlier messages can't be divided so.

use minijinja::Value as Ordered;
use time::OffsetDateTime;
use trainyard_gpu_runtime::tokenizer::TextTokenizer;

use super::conversation::{check_tools, continued, map, output_format, refused};
use super::history::{Said, member};
use super::output::{OutputFormat, OutputParser};
use super::template::{ChatTemplate, Conversation, TemplateError};
use super::texts::ModelText;
use crate::error::ChatError;

/// Content of a reply that stands for any other one, to find what follows it.
const STAND_IN: &str = "Zq7Rply0StandIn0ylpR7qZ";

/// A reply whose tokens are known.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Number of messages up to the reply, with it.
    pub messages: usize,
    /// The reply as it was returned.
    pub said: Said,
    /// Format by which the reply was parsed.
    pub format: OutputFormat,
    /// Last token that was sampled.
    pub last_token: Option<u32>,
}

/// Continuation of a recorded reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continued {
    /// Tokens from the reply's last token to the beginning of the next reply.
    pub tokens: Vec<u32>,
    /// The parts of which the next reply may consist.
    pub format: OutputFormat,
}

/// The reason why a request does not continue a recorded reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The messages differ from those of recorded conversations.
    HistoryDiffers,
    /// The thoughts of a reply differ from those that were returned.
    ThoughtsDiffer,
    /// The template does not render a part of the conversation.
    TemplateRefuses,
    /// The template renders the reply differently from how it was sampled, for example without its thoughts.
    ReplyIsRewritten,
    /// The template renders earlier messages differently when further ones follow.
    EarlierTextIsRewritten,
    /// The prompt is a text or tokens, which have no messages.
    NoMessages,
}

impl Branch {
    /// Returns the name of the reason in answers and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HistoryDiffers => "history_differs",
            Self::ThoughtsDiffer => "thoughts_differ",
            Self::TemplateRefuses => "template_refuses",
            Self::ReplyIsRewritten => "reply_is_rewritten",
            Self::EarlierTextIsRewritten => "earlier_text_is_rewritten",
            Self::NoMessages => "no_messages",
        }
    }
}

/// Returns what follows the last of these replies, which are the recorded ones of a conversation. `prefill` is the
/// assistant's last message, which the model continues. Thoughts that the client dropped are put back first.
///
/// # Errors
/// [`ChatError::Invalid`] if the template does not accept the conversation, or the model does not support tools.
pub fn continuation(
    text: &ModelText,
    conversation: &Conversation,
    prefill: Option<&str>,
    replies: &[Recorded],
    now: OffsetDateTime,
) -> Result<Result<Continued, Branch>, ChatError> {
    let template = text.template()?;
    check_tools(template, conversation)?;
    let Some(last) = replies.last() else { return Ok(Err(Branch::HistoryDiffers)) };
    let mut whole = conversation.clone();
    for reply in replies {
        if let Err(branch) = put_back_thoughts(&mut whole, reply) {
            return Ok(Err(branch));
        }
    }
    let mut prompt = template.render(&whole, now).map_err(refused)?;
    if let Some(prefill) = prefill {
        prompt = continued(prompt, prefill)?;
    }
    let divided = Division { text, template, whole: &whole, last, now }.after_reply(&prompt);
    let rest = match divided {
        Ok(rest) => rest,
        Err(branch) => return Ok(Err(branch)),
    };
    let format = output_format(template, &whole, &prompt, prefill);
    let anchor = last.last_token.and_then(|token| end_text(text, token));
    let anchor = anchor.or_else(|| text.end.as_ref().map(|end| end.text.as_str()));
    Ok(Ok(Continued { tokens: encode_behind(&text.tokenizer, anchor, &rest)?, format }))
}

/// Adds the thoughts of a reply to its message, unless the message has them.
fn put_back_thoughts(conversation: &mut Conversation, reply: &Recorded) -> Result<(), Branch> {
    let message = reply.messages.checked_sub(1).and_then(|at| conversation.messages.get_mut(at));
    let message = message.ok_or(Branch::HistoryDiffers)?;
    let sent = member(message, "reasoning_content");
    if let Some(sent) = sent.as_str().filter(|sent| !sent.is_empty()) {
        return if sent == reply.said.reasoning { Ok(()) } else { Err(Branch::ThoughtsDiffer) };
    }
    if !reply.said.reasoning.is_empty() {
        let kept = ["role", "content", "name", "tool_calls"].into_iter().map(|name| (name, member(message, name)));
        let thoughts = ("reasoning_content", Ordered::from(reply.said.reasoning.as_str()));
        *message = Ordered::from_pairs(kept.filter(|(_, value)| !value.is_undefined()).chain([thoughts]));
    }
    Ok(())
}

/// Returns the text of a token that ends replies.
fn end_text(text: &ModelText, token: u32) -> Option<&str> {
    let of_model = text.end.as_ref().filter(|end| end.id == token).map(|end| end.text.as_str());
    text.tokenizer.special(token).or(of_model)
}

/// The place at which a conversation is divided.
struct Division<'a> {
    text: &'a ModelText,
    template: &'a ChatTemplate,
    whole: &'a Conversation,
    last: &'a Recorded,
    now: OffsetDateTime,
}

impl Division<'_> {
    /// Returns the text of the prompt behind the reply's sampled tokens.
    fn after_reply(&self, prompt: &str) -> Result<String, Branch> {
        let end = self.last.messages;
        let (before, reply) = self.whole.messages.split_at_checked(end - 1).ok_or(Branch::HistoryDiffers)?;
        let reply = reply.first().ok_or(Branch::HistoryDiffers)?;
        let start = self.render(before.to_vec(), true)?;
        let through = self.render([before, std::slice::from_ref(reply)].concat(), false)?;
        let rest = prompt.strip_prefix(&through).ok_or(Branch::EarlierTextIsRewritten)?;
        let body = through.strip_prefix(&start).ok_or(Branch::ReplyIsRewritten)?;
        if let Some(end) = self.last.last_token.and_then(|token| end_text(self.text, token))
            && body.contains(end)
        {
            // What was sampled has the end already. The reply's own text may contain it too.
            let ends = body.match_indices(end).map(|(at, end)| (at, at + end.len()));
            let mut divided = ends.filter_map(|(at, behind)| Some((body.get(..at)?, body.get(behind..)?)));
            let (_, tail) = divided.find(|(said, _)| self.is_reply(said)).ok_or(Branch::ReplyIsRewritten)?;
            return Ok(format!("{tail}{rest}"));
        }
        let closing = self.closing(before, &start)?;
        let said = body.strip_suffix(&closing).ok_or(Branch::ReplyIsRewritten)?;
        if !self.is_reply(said) {
            return Err(Branch::ReplyIsRewritten);
        }
        Ok(format!("{closing}{rest}"))
    }

    /// Returns whether a rendered text has the parts of the reply.
    fn is_reply(&self, text: &str) -> bool {
        let mut parser = OutputParser::new(self.last.format);
        let mut rendered = Said::default();
        let mut parts = parser.push(text);
        parts.extend(parser.finish());
        parts.iter().for_each(|part| rendered.add(part));
        rendered.is_like(&self.last.said)
    }

    /// Returns the text by which the template closes a reply.
    fn closing(&self, before: &[Ordered], start: &str) -> Result<String, Branch> {
        let stand_in = map([("role", Ordered::from("assistant")), ("content", Ordered::from(STAND_IN))]);
        let rendered = self.render([before, &[stand_in]].concat(), false)?;
        let body = rendered.strip_prefix(start).ok_or(Branch::ReplyIsRewritten)?;
        body.split_once(STAND_IN).map(|(_, closing)| closing.to_owned()).ok_or(Branch::ReplyIsRewritten)
    }

    fn render(&self, messages: Vec<Ordered>, add_generation_prompt: bool) -> Result<String, Branch> {
        let conversation = Conversation {
            messages,
            tools: self.whole.tools.clone(),
            variables: self.whole.variables.clone(),
            add_generation_prompt,
            images: Vec::new(),
        };
        let refuses = |_: TemplateError| Branch::TemplateRefuses;
        self.template.render(&conversation, self.now).map_err(refuses)
    }
}

/// Encodes a text as it would be behind a token: some tokenizers treat the beginning of a text differently.
fn encode_behind(tokenizer: &TextTokenizer, anchor: Option<&str>, rest: &str) -> Result<Vec<u32>, ChatError> {
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let encode = |text: &str| {
        let encoded = tokenizer.encode(text, false);
        encoded.map_err(|error| ChatError::Internal(format!("failed to encode a prompt: {error}")))
    };
    if let Some(anchor) = anchor {
        let tokens = encode(&format!("{anchor}{rest}"))?;
        if let Some((first, behind)) = tokens.split_first()
            && tokenizer.id(anchor) == Some(*first)
        {
            return Ok(behind.to_vec());
        }
    }
    encode(rest)
}

#[cfg(test)]
#[path = "continuation_tests.rs"]
mod tests;
