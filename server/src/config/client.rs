//! Flags of `trainyard auth`.

use clap::{Args, Subcommand};

/// Flags of `trainyard auth`.
#[derive(Args, Clone, Debug)]
pub struct AuthFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands have theirs")]
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

/// The server that is called, and the key to call it with.
#[derive(Args, Clone, Debug)]
pub struct ServerFlags {
    /// URL of the server.
    #[arg(long, env = "TINKER_BASE_URL", value_name = "URL", default_value = "http://127.0.0.1:8000")]
    pub url: String,
    /// The API key, or a token. Prefer the variable, which others on the machine don't see.
    #[arg(long, env = "TINKER_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub api_key: String,
}
