//! Constants of rows of logits and of candidates.

/// Rows whose logits are computed at a time.
pub(crate) const LOGIT_ROWS: usize = 64;
/// Log-probability of an absent candidate, with token 0.
pub(super) const ABSENT: f32 = -99_999.0;
