//! Flags of `trainyard tenants`, `trainyard keys` and `trainyard audit`.

use clap::{Args, Subcommand};

use super::StoreFlags;

/// Flags of `trainyard tenants`.
#[derive(Args, Clone, Debug)]
pub struct TenantsFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands are documented")]
    pub command: TenantsCommand,
}

/// The subcommands of `trainyard tenants`.
#[derive(Clone, Debug, Subcommand)]
pub enum TenantsCommand {
    /// List all organisations of the service.
    List {
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Create an organisation: a tenant, which owns sessions, runs and checkpoints.
    Create {
        /// Name of the organisation.
        name: String,
        /// Let the organisation's admins manage all organisations.
        #[arg(long)]
        operator: bool,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Change the display name of an organisation, or refuse or accept its keys and tokens; omitted settings stay.
    Change {
        /// Name of the organisation.
        name: String,
        /// Display name of the organisation.
        #[arg(long, value_name = "NAME", required_unless_present_any = ["disable", "enable"])]
        display_name: Option<String>,
        /// Refuse the organisation's keys and tokens, and end its sessions. Its objects stay.
        #[arg(long)]
        disable: bool,
        /// Accept the organisation's keys and tokens again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// List the limits of an organisation: each limit, its value, and whether the configuration file or the store sets
    /// it.
    Limits {
        /// Name of the organisation.
        name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Set limits of an organisation, such as `max_runs=16`; every server enforces them within a second.
    SetLimits {
        /// Name of the organisation.
        name: String,
        /// A limit and its value: weight (1 to 1000), max_runs, max_queued_tokens, tokens_per_minute,
        /// max_storage_bytes, max_queued_requests, max_queued_bytes, max_queued_samples, max_sessions or
        /// pixels_per_minute. Bytes may have a unit, such as 50GiB.
        #[arg(value_name = "LIMIT=VALUE", required = true)]
        limits: Vec<String>,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Unset limits of an organisation, so that the defaults apply.
    UnsetLimits {
        /// Name of the organisation.
        name: String,
        /// Names of limits, as `trainyard tenants limits` prints them.
        #[arg(value_name = "LIMIT", required = true)]
        limits: Vec<String>,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// List the users of an organisation.
    Users {
        /// Name of the organisation.
        name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Add a user to an organisation.
    AddUser {
        /// Name of the organisation.
        name: String,
        /// Email address of the user.
        email: String,
        /// Full name of the user.
        #[arg(long, value_name = "NAME", default_value = "")]
        full_name: String,
        /// Highest role of the user's keys: admin, member or read-only.
        #[arg(long, default_value = "member")]
        role: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Give a user another role, or refuse or accept the user's keys.
    ChangeUser {
        /// Name of the organisation.
        name: String,
        /// Email address of the user.
        email: String,
        /// Highest role of the user's keys: admin, member or read-only.
        #[arg(long)]
        role: Option<String>,
        /// Refuse the user's keys.
        #[arg(long)]
        disable: bool,
        /// Accept the user's keys again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// List the projects of an organisation.
    Projects {
        /// Name of the organisation.
        name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Add a project to an organisation.
    AddProject {
        /// Name of the organisation.
        name: String,
        /// Id of the project, as sessions use it.
        project: String,
        /// Display name of the project.
        #[arg(long, value_name = "NAME", default_value = "")]
        full_name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Remove a project from an organisation.
    RemoveProject {
        /// Name of the organisation.
        name: String,
        /// Id of the project, as sessions use it.
        project: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
}

/// Flags of `trainyard keys`.
#[derive(Args, Clone, Debug)]
pub struct KeysFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands are documented")]
    pub command: KeysCommand,
}

/// The subcommands of `trainyard keys`.
#[derive(Clone, Debug, Subcommand)]
pub enum KeysCommand {
    /// List the keys of an organisation.
    List {
        /// Name of the organisation.
        organisation: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Create a key and print it. It is shown only once: the store keeps only its SHA-256.
    Create {
        /// Name of the organisation.
        organisation: String,
        /// Display name of the key.
        #[arg(long)]
        name: String,
        /// A note about the key.
        #[arg(long, default_value = "")]
        note: String,
        /// Email of the key's user; by default, the key belongs to one of the organisation's programs.
        #[arg(long, value_name = "EMAIL")]
        user: Option<String>,
        /// Highest role that the key allows: admin, member or read-only. The role of its user by default, or member
        /// without one.
        #[arg(long)]
        role: Option<String>,
        /// Limit the key to a scope: train, sample, checkpoints or admin; may be repeated.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// Let the key expire after this many days.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Withdraw all keys that sign the service's tokens, and make a new one, which signs at once. Use it when a key
    /// may have leaked: within a second, every server refuses every token made before.
    RotateSigning {
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Revoke a key: every server refuses it from now on.
    Revoke {
        /// Name of the organisation.
        organisation: String,
        /// The key's id, as `trainyard keys list` prints it.
        id: i64,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
}

/// Flags of `trainyard audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands are documented")]
    pub command: AuditCommand,
}

/// The subcommands of `trainyard audit`.
#[derive(Clone, Debug, Subcommand)]
pub enum AuditCommand {
    /// Print the entries of all organisations from before a time, one JSON object on each line, oldest first.
    Export {
        /// Day or RFC 3339 time, such as 2026-01-01, before which entries are printed.
        #[arg(long, value_name = "TIME")]
        before: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
    /// Delete the entries of all organisations from before a time. Each log keeps an entry that records this.
    Prune {
        /// Day or RFC 3339 time, such as 2026-01-01, before which entries are deleted. Export them first.
        #[arg(long, value_name = "TIME")]
        before: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields are documented")]
        store: StoreFlags,
    },
}
