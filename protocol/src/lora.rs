//! Adapters of low rank: their shape, start and scale.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::OpError;
use crate::limits::LORA_ALPHA;

/// Largest and smallest alpha that a run can have.
const ALPHAS: std::ops::RangeInclusive<f32> = 1e-3..=1e6;

/// A LoRA adapter's shape and start: `W x + (alpha / rank) B A x`, A from the seed, B zero
/// (Hu et al. 2021, arXiv:2106.09685).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoraSpec {
    /// Rank of the adapter, at least 1.
    pub rank: u32,
    /// Numerator of the scale, positive.
    #[serde(default = "LoraSpec::default_alpha", skip_serializing_if = "LoraSpec::is_default_alpha")]
    pub alpha: f32,
    /// Seed of A; chosen at submission when the client gave none, so that a replay repeats it.
    pub seed: u64,
    /// Whether the unembedding (`lm_head`) is adapted.
    pub train_unembed: bool,
    /// Whether the MLP projections are adapted.
    pub train_mlp: bool,
    /// Whether the attention projections are adapted.
    pub train_attn: bool,
    /// Whether adapters on latent attention are also on the projections from latents, `q_b_proj` and `kv_b_proj`. New runs, like
    /// the hosted service, adapt only the projections to latents and the output projection. Specs without the field, which older
    /// releases write, are of runs that adapt all.
    #[serde(default = "LoraSpec::former_latent_up", skip_serializing_if = "LoraSpec::is_former_latent_up")]
    pub latent_up: bool,
}

impl LoraSpec {
    /// The key of a run's `user_metadata` with the numerator of the scale.
    pub const ALPHA_KEY: &str = "trainyard.lora_alpha";
    /// The key of a run's `user_metadata` that divides alpha by the root of the rank in place of the rank.
    pub const RANK_STABILIZED_KEY: &str = "trainyard.rslora";

    /// An adapter on all layers, on those of latent attention where the hosted service has them, with the default scale.
    pub const fn on_all(rank: u32, seed: u64) -> Self {
        Self { rank, alpha: LORA_ALPHA, seed, train_unembed: true, train_mlp: true, train_attn: true, latent_up: false }
    }

    /// Factor of the product `B A`.
    pub fn scale(&self) -> f32 {
        self.alpha / self.rank as f32
    }

    /// Sets the scale that a run's metadata asks for. With rank stabilisation it is `alpha / sqrt(rank)` (Kalajdzievski 2023,
    /// arXiv:2312.03732): that of an adapter with `alpha * sqrt(rank)` in place of alpha.
    ///
    /// # Errors
    /// A user error that names the key: alpha is not a number in the range, or the other neither `true` nor `false`.
    pub fn scale_by_metadata(&mut self, user_metadata: &BTreeMap<String, String>) -> Result<(), OpError> {
        let text = |key: &str| user_metadata.get(key).map(String::as_str);
        if let Some(text) = text(Self::ALPHA_KEY) {
            self.alpha = text.parse().ok().filter(|alpha| ALPHAS.contains(alpha)).ok_or_else(|| {
                let (key, least, most) = (Self::ALPHA_KEY, ALPHAS.start(), ALPHAS.end());
                OpError::user(format!("user_metadata.{key}: {text:?} is not a number from {least} to {most}"))
            })?;
        }
        match text(Self::RANK_STABILIZED_KEY) {
            None | Some("false") => {}
            Some("true") => self.alpha *= (self.rank as f32).sqrt(),
            Some(other) => {
                let key = Self::RANK_STABILIZED_KEY;
                return Err(OpError::user(format!("user_metadata.{key}: {other:?} is neither \"true\" nor \"false\"")));
            }
        }
        Ok(())
    }

    /// Refuses metadata that ask for another scale than this one, which the values of the adapter belong to.
    ///
    /// # Errors
    /// A user error as of [`LoraSpec::scale_by_metadata`], or with both numerators.
    pub fn check_scale(&self, user_metadata: &BTreeMap<String, String>) -> Result<(), OpError> {
        let mut asked = Self::on_all(self.rank, self.seed);
        asked.scale_by_metadata(user_metadata)?;
        let Some(key) = scale_key(user_metadata).filter(|_| asked.alpha != self.alpha) else { return Ok(()) };
        let (asked, own) = (asked.alpha, self.alpha);
        Err(OpError::user(format!(
            "user_metadata.{key}: asks for alpha {asked}; the checkpoint's adapter has alpha {own}"
        )))
    }

    /// Refuses metadata about the scale of an adapter for a run without one.
    ///
    /// # Errors
    /// A user error that names the key.
    pub fn refuse_scale(user_metadata: &BTreeMap<String, String>) -> Result<(), OpError> {
        let Some(key) = scale_key(user_metadata) else { return Ok(()) };
        Err(OpError::user(format!("user_metadata.{key}: the model trains all parameters, without an adapter")))
    }

    fn default_alpha() -> f32 {
        LORA_ALPHA
    }

    fn is_default_alpha(alpha: &f32) -> bool {
        *alpha == LORA_ALPHA
    }

    /// Value of `latent_up` in specs from before the field.
    fn former_latent_up() -> bool {
        true
    }

    fn is_former_latent_up(latent_up: &bool) -> bool {
        *latent_up == Self::former_latent_up()
    }
}

/// The first key of metadata that is about the scale.
fn scale_key(user_metadata: &BTreeMap<String, String>) -> Option<&'static str> {
    [LoraSpec::ALPHA_KEY, LoraSpec::RANK_STABILIZED_KEY].into_iter().find(|key| user_metadata.contains_key(*key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn scaled(metadata: &[(&str, &str)]) -> Result<f32, String> {
        let mut spec = LoraSpec::on_all(16, 0);
        let metadata = metadata.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        spec.scale_by_metadata(&metadata).map(|()| spec.alpha).map_err(|error| error.message)
    }

    #[test]
    fn metadata_set_the_scale() {
        let (alpha, stabilized) = (LoraSpec::ALPHA_KEY, LoraSpec::RANK_STABILIZED_KEY);
        assert_eq!(scaled(&[]), Ok(LORA_ALPHA));
        assert_eq!(scaled(&[(alpha, "64")]), Ok(64.0));
        assert_eq!(scaled(&[(alpha, "0.5"), (stabilized, "false")]), Ok(0.5));
        assert_eq!(scaled(&[(stabilized, "true")]), Ok(128.0));
        assert_eq!(scaled(&[(alpha, "8"), (stabilized, "true")]), Ok(32.0));
    }

    #[test]
    fn wrong_scales_are_named() {
        let (alpha, stabilized) = (LoraSpec::ALPHA_KEY, LoraSpec::RANK_STABILIZED_KEY);
        for wrong in ["", "x", "0", "-1", "NaN", "inf", "1e7", "1e-4"] {
            let expected =
                format!("user_metadata.trainyard.lora_alpha: {wrong:?} is not a number from 0.001 to 1000000");
            assert_eq!(scaled(&[(alpha, wrong)]), Err(expected));
        }
        let refused = scaled(&[(stabilized, "yes")]);
        assert_eq!(refused, Err(r#"user_metadata.trainyard.rslora: "yes" is neither "true" nor "false""#.to_owned()));
        let metadata = BTreeMap::from([(stabilized.to_owned(), "true".to_owned())]);
        let refused = LoraSpec::refuse_scale(&metadata).unwrap_err().message;
        assert_eq!(refused, "user_metadata.trainyard.rslora: the model trains all parameters, without an adapter");
        assert_eq!(LoraSpec::refuse_scale(&BTreeMap::new()), Ok(()));
    }

    #[test]
    fn the_scale_of_a_checkpoint_cannot_be_changed() {
        let own = LoraSpec { alpha: 64.0, ..LoraSpec::on_all(4, 0) };
        let check = |key: &str, value: &str| {
            let metadata = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            own.check_scale(&metadata).map_err(|error| error.message)
        };
        assert_eq!(own.check_scale(&BTreeMap::new()), Ok(()));
        assert_eq!(check("other", "1"), Ok(()));
        assert_eq!(check(LoraSpec::ALPHA_KEY, "64"), Ok(()));
        assert_eq!(check(LoraSpec::RANK_STABILIZED_KEY, "true"), Ok(()));
        let refused = "user_metadata.trainyard.lora_alpha: asks for alpha 32; the checkpoint's adapter has alpha 64";
        assert_eq!(check(LoraSpec::ALPHA_KEY, "32"), Err(refused.to_owned()));
    }
}
