//! One completion, from tokens to parts of text.

use std::sync::Arc;

use trainyard_protocol::{SampleProgress, StopReason, TopkLogprobs};

use super::channels;
use super::detokenizer::Detokenizer;
use super::output::{OutputFormat, OutputParser, Part};
use super::stop::{Filtered, StopFilter};
use super::texts::{EndToken, ModelText};

/// A new piece of a completion.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// More of the text, thoughts or calls.
    Part(Part),
    /// Tokens whose ids or log-probabilities were requested.
    Tokens(Vec<Token>),
    /// The completion has ended.
    End(End),
}

/// A token with its log-probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Id in the vocabulary of the model.
    pub id: u32,
    /// `None` for the first token of a prompt.
    pub logprob: Option<f32>,
    /// Candidates, most likely first.
    pub candidates: Vec<(u32, f32)>,
}

/// How a completion ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether the last part is a call of a tool, or text that follows one.
    pub calls_tools: bool,
    /// Whether the completion reached `max_tokens` or the context limit.
    pub too_long: bool,
    /// The stop string that was found.
    pub stop_string: Option<String>,
    /// Number of tokens of the thoughts, with the mark before them.
    pub reasoning_tokens: u64,
}

/// The state of one completion.
pub struct SequenceText {
    text: Arc<ModelText>,
    detokenizer: Detokenizer,
    stop: StopFilter,
    parser: OutputParser,
    /// Whether marks of channels are part of the text, although they are special tokens.
    channels: bool,
    /// Whether the request asks for ids or log-probabilities of tokens.
    tokens: bool,
    /// A token that ends the text without being part of it, whether or not it is a special token.
    end: Option<EndToken>,
    ended: bool,
    matched: Option<String>,
    calls_tools: bool,
    reasoning_tokens: u64,
}

impl SequenceText {
    /// Begins a completion that ends at the first of the strings `stop`. `tokens` asks for [`Piece::Tokens`].
    pub fn new(text: Arc<ModelText>, stop: Vec<String>, format: OutputFormat, tokens: bool) -> Self {
        Self {
            detokenizer: Detokenizer::new(Arc::clone(&text)),
            text,
            stop: StopFilter::new(stop),
            parser: OutputParser::new(format),
            channels: format.channels,
            tokens,
            end: None,
            ended: false,
            matched: None,
            calls_tools: false,
            reasoning_tokens: 0,
        }
    }

    /// Leaves this token out of the text.
    pub fn ending_at(self, end: Option<EndToken>) -> Self {
        Self { end, ..self }
    }

    /// Adds further tokens, and the pieces that they complete to `pieces`.
    pub fn push(&mut self, progress: &SampleProgress, pieces: &mut Vec<Piece>) {
        if self.tokens {
            pieces.push(Piece::Tokens((0..progress.tokens.len()).filter_map(|at| token(progress, at)).collect()));
        }
        for &token in &progress.tokens {
            if self.matched.is_some() {
                break;
            }
            if self.end.as_ref().is_none_or(|end| end.id != token) {
                let text = self.detokenizer.push(token);
                self.push_text(&text, pieces);
                self.push_mark(token, pieces);
            }
            self.reasoning_tokens += u64::from(self.parser.is_in_thoughts());
            if self.matched.is_none()
                && let Some(found) = self.text.tokenizer.special(token).and_then(|text| self.stop.in_special(text))
            {
                self.matched = Some(found);
            }
        }
        if let Some(reason) = progress.end {
            self.finish(reason, pieces);
        }
    }

    /// Ends the sequence, unless it has ended.
    pub fn finish(&mut self, reason: StopReason, pieces: &mut Vec<Piece>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        if self.matched.is_none() {
            let rest = self.detokenizer.finish();
            self.push_text(&rest, pieces);
        }
        if self.matched.is_none() {
            let rest = self.stop.finish();
            let parts = self.parser.push(&rest);
            self.push_parts(parts, pieces);
        }
        let parts = self.parser.finish();
        self.push_parts(parts, pieces);
        let too_long = reason == StopReason::Length && self.matched.is_none();
        let end = End {
            calls_tools: self.calls_tools,
            too_long,
            stop_string: self.matched.clone(),
            reasoning_tokens: self.reasoning_tokens,
        };
        pieces.push(Piece::End(end));
    }

    /// Adds a mark of channels, unless the text has ended before it.
    fn push_mark(&mut self, token: u32, pieces: &mut Vec<Piece>) {
        if self.channels && self.matched.is_none() {
            let special = self.text.tokenizer.special(token).filter(|special| channels::is_mark(special));
            let mark = special.map(str::to_owned).unwrap_or_default();
            self.push_text(&mark, pieces);
        }
    }

    fn push_text(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if text.is_empty() {
            return;
        }
        let Filtered { text, matched } = self.stop.push(text);
        self.matched = matched;
        let parts = self.parser.push(&text);
        self.push_parts(parts, pieces);
    }

    fn push_parts(&mut self, parts: Vec<Part>, pieces: &mut Vec<Piece>) {
        self.calls_tools |= parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        pieces.extend(parts.into_iter().map(Piece::Part));
    }
}

fn token(sequence: &SampleProgress, at: usize) -> Option<Token> {
    let (id, logprob) = (*sequence.tokens.get(at)?, sequence.logprobs.get(at).copied());
    let candidates = sequence.topk.as_ref().map(|topk| row(topk, at)).unwrap_or_default();
    Some(Token { id, logprob, candidates })
}

/// The candidates of a row, without its empty cells.
pub fn row(topk: &TopkLogprobs, at: usize) -> Vec<(u32, f32)> {
    let range = at.saturating_mul(topk.k)..at.saturating_add(1).saturating_mul(topk.k);
    let (ids, logprobs) = (topk.token_ids.get(range.clone()), topk.logprobs.get(range));
    let cells = ids.unwrap_or_default().iter().copied().zip(logprobs.unwrap_or_default().iter().copied());
    cells.filter(|(_, logprob)| *logprob > EMPTY).collect()
}

/// Cells up to this value contain no candidate.
const EMPTY: f32 = -99_998.0;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::output::ToolCall;
    use super::super::testing::{EOS, byte_level};
    use super::*;

    fn sequence(text: &str, end: &[u32]) -> SampleProgress {
        let tokens: Vec<u32> = text.bytes().map(u32::from).chain(end.iter().copied()).collect();
        let logprobs = vec![-0.5; tokens.len()];
        SampleProgress { sequence: 0, first_index: 0, tokens, logprobs, topk: None, end: None }
    }

    fn pieces(stop: &[&str], format: OutputFormat, sequence: &SampleProgress, reason: StopReason) -> (String, End) {
        let stop = stop.iter().map(|&stop| stop.to_owned()).collect();
        let mut state = SequenceText::new(byte_level(), stop, format, false);
        let mut pieces = Vec::new();
        // Token by token.
        for at in 0..sequence.tokens.len() {
            state.push(&sequence.clone().starting_at(at).unwrap().ending_at(at + 1), &mut pieces);
        }
        state.finish(reason, &mut pieces);
        let mut text = String::new();
        for piece in &pieces {
            match piece {
                Piece::Part(Part::Text(more)) => text.push_str(more),
                Piece::Part(Part::ToolCall(ToolCall { name, arguments })) => {
                    text.push_str(&format!("[{name}{arguments}]"))
                }
                _ => {}
            }
        }
        match pieces.pop() {
            Some(Piece::End(end)) => (text, end),
            _ => unreachable!("the last piece is the end"),
        }
    }

    #[test]
    fn ends_are_told_apart() {
        let plain = OutputFormat::default();
        let ended =
            |stop: &[&str], text: &str, tail: &[u32], reason| pieces(stop, plain, &sequence(text, tail), reason);
        let end = End { calls_tools: false, too_long: false, stop_string: None, reasoning_tokens: 0 };
        assert_eq!(ended(&["xyz"], "héllo x", &[EOS], StopReason::Stop), ("héllo x".to_owned(), end.clone()));
        let long = End { too_long: true, ..end.clone() };
        assert_eq!(ended(&[], "hé", &[0xC3], StopReason::Length), ("hé\u{FFFD}".to_owned(), long));
        let stopped = End { stop_string: Some("lo".to_owned()), ..end.clone() };
        assert_eq!(ended(&["lo"], "hello", &[], StopReason::Stop), ("hel".to_owned(), stopped));
        let special = End { stop_string: Some("<|end|>".to_owned()), ..end };
        assert_eq!(ended(&["<|end|>"], "hello", &[EOS], StopReason::Stop), ("hello".to_owned(), special));
    }

    #[test]
    fn an_end_token_is_no_text() {
        let end = EndToken { id: u32::from(b'!'), text: "!".to_owned() };
        let mut state =
            SequenceText::new(byte_level(), Vec::new(), OutputFormat::default(), false).ending_at(Some(end));
        let mut pieces = Vec::new();
        state.push(&sequence("hello!", &[]), &mut pieces);
        state.finish(StopReason::Stop, &mut pieces);
        let said = |piece: &Piece| match piece {
            Piece::Part(Part::Text(text)) => text.clone(),
            _ => String::new(),
        };
        assert_eq!(pieces.iter().map(said).collect::<String>(), "hello");
        let end = End { calls_tools: false, too_long: false, stop_string: None, reasoning_tokens: 0 };
        assert_eq!(pieces.last(), Some(&Piece::End(end)));
    }

    #[test]
    fn calls_are_found() {
        let format = OutputFormat { tool_calls: true, ..OutputFormat::default() };
        let called = sequence("Yes.\n<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>", &[EOS]);
        let (text, end) = pieces(&[], format, &called, StopReason::Stop);
        assert_eq!((text.as_str(), end.calls_tools), ("Yes.[f{\"a\": 1}]", true));
    }

    #[test]
    fn the_tokens_of_thoughts_are_counted() {
        let format = OutputFormat { reasoning: true, ..OutputFormat::default() };
        // One token for each byte: `<think>` is known at its last one.
        let (text, end) = pieces(&[], format, &sequence("<think>so</think>\nYes", &[EOS]), StopReason::Stop);
        assert_eq!((text.as_str(), end.reasoning_tokens), ("Yes", ">so</think".len() as u64));
        let inside = OutputFormat { begins_in_reasoning: true, ..format };
        let (_, end) = pieces(&[], inside, &sequence("endless", &[]), StopReason::Length);
        assert_eq!(end.reasoning_tokens, 7);
        assert_eq!(pieces(&[], format, &sequence("plain", &[EOS]), StopReason::Stop).1.reasoning_tokens, 0);
    }

    #[test]
    fn tokens_come_with_their_candidates() {
        let topk = TopkLogprobs { k: 2, token_ids: vec![97, 98, 98, 0], logprobs: vec![-0.5, -1.0, -0.5, -99_999.0] };
        let sequence = SampleProgress { topk: Some(topk), ..sequence("ab", &[]) };
        let mut state = SequenceText::new(byte_level(), Vec::new(), OutputFormat::default(), true);
        let mut pieces = Vec::new();
        state.push(&sequence, &mut pieces);
        let expected = vec![
            Token { id: 97, logprob: Some(-0.5), candidates: vec![(97, -0.5), (98, -1.0)] },
            Token { id: 98, logprob: Some(-0.5), candidates: vec![(98, -0.5)] },
        ];
        assert_eq!(pieces.first(), Some(&Piece::Tokens(expected)));
    }

    #[test]
    fn special_tokens_that_divide_channels_are_part_of_the_text() {
        let format = OutputFormat { channels: true, ..OutputFormat::default() };
        let mut state = SequenceText::new(byte_level(), Vec::new(), format, false);
        let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let tokens = [bytes("<|channel|>analysis<|message|>so"), vec![EOS], bytes("A")].concat();
        let progress = SampleProgress { tokens, end: Some(StopReason::Stop), ..sequence("", &[]) };
        let mut pieces = Vec::new();
        state.push(&progress, &mut pieces);
        let mut texts = [String::new(), String::new()];
        for piece in &pieces {
            match piece {
                Piece::Part(Part::Reasoning(text)) => texts[0].push_str(text),
                Piece::Part(Part::Text(text)) => texts[1].push_str(text),
                _ => {}
            }
        }
        assert_eq!(texts, ["so", "A"]);
    }
}
