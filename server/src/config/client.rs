//! Flags of `trainyard auth`.

use clap::{Args, Subcommand};

/// Flags of `trainyard auth`.
#[derive(Args, Clone, Debug)]
pub struct AuthFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands have theirs")]
    pub command: AuthCommand,
}

/// What `trainyard auth` does.
#[derive(Clone, Debug, Subcommand)]
pub enum AuthCommand {
    /// Print whose a key or token is, and what it allows.
    Whoami(ServerFlags),
    /// Print a token, which allows what the key does for a short while.
    Token(ServerFlags),
}

/// Which server is called, and as whom.
#[derive(Args, Clone, Debug)]
pub struct ServerFlags {
    /// Where the server is.
    #[arg(long, env = "TINKER_BASE_URL", value_name = "URL", default_value = "http://127.0.0.1:8000")]
    pub url: String,
    /// The API key, or a token. In the variable others on the machine don't see it.
    #[arg(long, env = "TINKER_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub api_key: String,
}
