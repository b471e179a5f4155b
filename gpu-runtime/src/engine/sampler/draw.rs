//! Draws the next token of a sequence and computes what the request wants to know of it.

use trainyard_protocol::SamplingParams;

use super::ABSENT;
use crate::draw::{DrawScratch, draw, topk};
use crate::kernels::Cpu;
use crate::kernels::head::log_sum_exp;

/// The factor on logits whose log-softmax is reported: 1 / temperature, and 1 when greedy, where the
/// scaled distribution is a point.
pub(super) fn logprob_scale(temperature: f32) -> f32 {
    if temperature == 0.0 { 1.0 } else { 1.0 / temperature }
}

/// A token that is about to be drawn.
pub(super) struct Decoding<'a> {
    pub(super) logits: &'a [f32],
    pub(super) params: &'a SamplingParams,
    /// Candidates to report.
    pub(super) topk: usize,
    /// What picks the token, in [0, 1).
    pub(super) u: f64,
}

/// A drawn token.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) token: u32,
    pub(super) logprob: f32,
    pub(super) topk: Vec<(u32, f32)>,
}

impl Decoding<'_> {
    pub(super) fn draw(&self, cpu: &Cpu, scratch: &mut DrawScratch) -> Drawn {
        let p = self.params;
        let token = draw(self.logits, p.temperature, p.top_k, p.top_p, self.u, scratch);
        let scale = logprob_scale(p.temperature);
        let lse = log_sum_exp(cpu, self.logits, scale);
        let logprob = |logit: f32| logit * scale - lse;
        let mut topk: Vec<_> = topk(self.logits, self.topk).into_iter().map(|(id, l)| (id, logprob(l))).collect();
        topk.resize(self.topk, (0, ABSENT));
        Drawn { token, logprob: logprob(self.logits[token as usize]), topk }
    }
}
