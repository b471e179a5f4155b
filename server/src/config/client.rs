//! Flags of `trainyard auth` and `trainyard export`: the server and the key to call it with.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Flags of `trainyard auth`.
#[derive(Args, Clone, Debug)]
pub struct AuthFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands are documented")]
    pub command: AuthCommand,
}

/// The subcommands of `trainyard auth`.
#[derive(Clone, Debug, Subcommand)]
pub enum AuthCommand {
    /// Print the owner of a key or token, and what it allows.
    Whoami(ServerFlags),
    /// Print a token, which allows the same as the key for a short while.
    Token(ServerFlags),
}

/// Flags of `trainyard export`.
#[derive(Args, Clone, Debug)]
pub struct ExportFlags {
    /// Checkpoint: tinker://RUN/weights/NAME, tinker://RUN/sampler_weights/NAME or tinker://RUN/external_weights/NAME.
    #[arg(value_name = "CHECKPOINT")]
    pub path: String,
    /// Folder that is filled; it must be empty or not exist yet. The name of the checkpoint by default.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Merge an adapter into its base model: a Hugging Face folder with safetensors files, or an id in the hub's cache.
    /// DIR then contains the whole model, in the types of the base model.
    #[arg(long, value_name = "BASE")]
    pub merge: Option<PathBuf>,
    /// Write an adapter as `peft` loads it onto this base model, a Hugging Face folder or its config.json: parts of a fused module
    /// become one adapter of a higher rank.
    #[arg(long, value_name = "BASE", conflicts_with = "merge")]
    pub peft: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub server: ServerFlags,
}

/// The key that is sent where none is given: a server without keys accepts any.
const LOCAL_KEY: &str = "tml-local";

impl ServerFlags {
    /// Returns the key to send.
    pub fn key(&self) -> &str {
        self.given_key().unwrap_or(LOCAL_KEY)
    }

    /// Formats a refusal of a call.
    pub fn refusal(&self, url: &str, status: u16, detail: Option<&str>) -> String {
        const UNAUTHORIZED: u16 = 401;
        match self.given_key() {
            None if status == UNAUTHORIZED => {
                format!("{url}: the server needs an API key: pass --api-key, or set TINKER_API_KEY")
            }
            _ => format!("{url}: {status}: {}", detail.unwrap_or("without a reason")),
        }
    }

    fn given_key(&self) -> Option<&str> {
        self.api_key.as_deref().filter(|key| !key.is_empty())
    }
}

/// The server that is called, and the key to call it with.
#[derive(Args, Clone, Debug)]
pub struct ServerFlags {
    /// URL of the server.
    #[arg(long, env = "TINKER_BASE_URL", value_name = "URL", default_value = "http://127.0.0.1:8000")]
    pub url: String,
    /// The API key, or a token; not needed where the server has no keys. Prefer the variable, which others on the
    /// machine don't see.
    #[arg(long, env = "TINKER_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub api_key: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_only_needed_where_the_server_has_some() {
        let flags = |api_key: Option<&str>| ServerFlags { url: "u".to_owned(), api_key: api_key.map(str::to_owned) };
        assert_eq!(flags(Some("tml-a")).key(), "tml-a");
        for none in [None, Some("")] {
            assert_eq!(flags(none).key(), "tml-local");
            assert!(flags(none).refusal("u", 401, Some("not known")).contains("TINKER_API_KEY"));
        }
        assert_eq!(flags(None).refusal("u", 403, Some("no")), "u: 403: no");
        assert_eq!(flags(Some("tml-a")).refusal("u", 401, Some("not known")), "u: 401: not known");
    }
}
