//! `/hf`: flags and the table `[hub]` of the file.

use clap::Args;
use serde::Deserialize;

use super::ConfigError;

const PUBLIC: &str = "https://huggingface.co";
/// The value that sets no upstream.
const NONE: &str = "none";

/// Flags about the path `/hf`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Files for clients: /hf")]
pub struct HubFlags {
    /// Hub to which /hf redirects requests for files that this server does not have, such as data sets; `none` to
    /// answer 404 [default: https://huggingface.co, with --hf-require-key none].
    #[arg(long, env = "TRAINYARD_HF_UPSTREAM", value_name = "URL")]
    pub hf_upstream: Option<String>,
    /// Require an API key on /hf too: clients send it as HF_TOKEN.
    #[arg(long, env = "TRAINYARD_HF_REQUIRE_KEY")]
    pub hf_require_key: bool,
    /// Offer the weights of the served models on /hf too, as the files that they are loaded from, for merging and
    /// exporting.
    #[arg(long, env = "TRAINYARD_HF_WEIGHTS")]
    pub hf_weights: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileHub {
    upstream: Option<String>,
    require_key: bool,
    weights: bool,
}

/// The settings of `/hf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubConfig {
    /// The hub to which requests for other repositories are redirected, without a slash at the end.
    pub upstream: Option<String>,
    /// Whether only callers with a key are served.
    pub require_key: bool,
    /// Whether the weights of the models that this process loads are offered.
    pub weights: bool,
}

impl HubConfig {
    pub(super) fn resolve(flags: HubFlags, file: FileHub) -> Result<Self, ConfigError> {
        let require_key = flags.hf_require_key || file.require_key;
        // Clients repeat their token, which is a key then, when they are redirected to the public hub.
        let default = if require_key { NONE } else { PUBLIC };
        let upstream = flags.hf_upstream.or(file.upstream).unwrap_or_else(|| default.to_owned());
        let upstream = match upstream.trim_end_matches('/') {
            NONE => None,
            url if url.starts_with("https://") || url.starts_with("http://") => Some(url.to_owned()),
            _ => return Err(ConfigError::HubUpstream(upstream)),
        };
        Ok(Self { upstream, require_key, weights: flags.hf_weights || file.weights })
    }
}
