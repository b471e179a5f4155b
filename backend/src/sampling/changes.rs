//! Changes of logits before a token is sampled: biases and penalties. Definitions are at
//! [`SamplingControls`](trainyard_protocol::SamplingControls).

use std::collections::BTreeMap;

use trainyard_protocol::SamplingControls;

use super::mask::TokenMask;

/// Rules that change the logits of all sequences of a request.
#[derive(Debug)]
pub struct LogitRules {
    presence: f32,
    frequency: f32,
    repetition: f32,
    /// Biases by token, rising.
    bias: Vec<(u32, f32)>,
    /// Tokens of the prompt, rising, each once; empty where the repetition penalty is off.
    prompt: Vec<u32>,
}

impl LogitRules {
    /// The rules of a request, whose tokens are in the vocabulary; `None` when no logit changes. Tokens of `never` are not
    /// sampled.
    pub fn new(controls: &SamplingControls, prompt: &[u32], never: &[u32]) -> Option<Self> {
        if !controls.changes_logits() && never.is_empty() {
            return None;
        }
        let allowed = controls.logit_bias.iter().filter(|(token, _)| !never.contains(token)).copied();
        let mut bias: Vec<(u32, f32)> = allowed.chain(never.iter().map(|token| (*token, f32::NEG_INFINITY))).collect();
        bias.sort_by_key(|(token, _)| *token);
        let mut prompt = if controls.repetition_penalty == 1.0 { Vec::new() } else { prompt.to_vec() };
        prompt.sort_unstable();
        prompt.dedup();
        Some(Self {
            presence: controls.presence_penalty,
            frequency: controls.frequency_penalty,
            repetition: controls.repetition_penalty,
            bias,
            prompt,
        })
    }
}

/// How often each token was sampled.
pub type TokenCounts = BTreeMap<u32, u32>;

/// Changes to the logits of a sequence's next token.
#[derive(Clone, Copy, Debug)]
pub struct LogitChanges<'a> {
    /// Rules for biases and penalties.
    pub rules: Option<&'a LogitRules>,
    /// Counts of the tokens that the sequence has so far.
    pub counts: &'a TokenCounts,
    /// The only tokens that may be sampled.
    pub allowed: Option<&'a TokenMask>,
}

impl LogitChanges<'_> {
    /// Changes a row of logits.
    pub fn apply(&self, logits: &mut [f32]) {
        if let Some(rules) = self.rules {
            rules.apply(self.counts, logits);
        }
        if let Some(allowed) = self.allowed {
            allowed.apply(logits);
        }
    }
}

/// Changes to a logit by biases and penalties. The bias is added; a positive result is divided by `repetition`, others
/// are multiplied; `frequency`, then `presence` are subtracted. The default changes no bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogitEdit {
    /// Value added to the logit.
    pub bias: f32,
    /// Repetition penalty, which divides or multiplies the logit.
    pub repetition: f32,
    /// The frequency penalty times how often the token was sampled.
    pub frequency: f32,
    /// The presence penalty, of tokens that were sampled.
    pub presence: f32,
}

impl Default for LogitEdit {
    fn default() -> Self {
        Self { bias: -0.0, repetition: 1.0, frequency: 0.0, presence: 0.0 }
    }
}

impl LogitChanges<'_> {
    /// Edits that [`LogitChanges::apply`] makes to the logits of tokens before it masks them, by token.
    pub fn edits(&self) -> BTreeMap<u32, LogitEdit> {
        let mut edits: BTreeMap<u32, LogitEdit> = BTreeMap::new();
        let Some(rules) = self.rules else { return edits };
        for &(token, bias) in &rules.bias {
            edits.entry(token).or_default().bias += bias;
        }
        if rules.repetition != 1.0 {
            for token in rules.prompt.iter().chain(self.counts.keys()) {
                edits.entry(*token).or_default().repetition = rules.repetition;
            }
        }
        for (&token, &count) in self.counts {
            let edit = edits.entry(token).or_default();
            (edit.frequency, edit.presence) = (rules.frequency * count as f32, rules.presence);
        }
        edits
    }
}

impl LogitRules {
    fn apply(&self, counts: &TokenCounts, logits: &mut [f32]) {
        let mut change = |token: u32, f: &dyn Fn(f32) -> f32| {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit = f(*logit);
            }
        };
        for &(token, bias) in &self.bias {
            change(token, &|logit| logit + bias);
        }
        if self.repetition != 1.0 {
            let penalty = self.repetition;
            let penalised = |logit: f32| if logit > 0.0 { logit / penalty } else { logit * penalty };
            let only_sampled = counts.keys().filter(|token| self.prompt.binary_search(token).is_err());
            self.prompt.iter().chain(only_sampled).for_each(|&token| change(token, &penalised));
        }
        for (&token, &count) in counts {
            change(token, &|logit| logit - self.frequency * count as f32 - self.presence);
        }
    }
}
