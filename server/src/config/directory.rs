//! Flags of `trainyard tenants` and `trainyard keys`.

use clap::{Args, Subcommand};

use super::StoreFlags;

/// Flags of `trainyard tenants`.
#[derive(Args, Clone, Debug)]
pub struct TenantsFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands have theirs")]
    pub command: TenantsCommand,
}

/// What `trainyard tenants` does.
#[derive(Clone, Debug, Subcommand)]
pub enum TenantsCommand {
    /// List the organisations.
    List {
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Create an organisation: a tenant, which owns sessions, runs and checkpoints.
    Create {
        /// Its name.
        name: String,
        /// Let its admins manage all organisations.
        #[arg(long)]
        operator: bool,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Change what people call an organisation, or refuse or accept its keys and tokens; what is not given stays.
    Change {
        /// The organisation.
        name: String,
        /// What people call it.
        #[arg(long, value_name = "NAME", required_unless_present_any = ["disable", "enable"])]
        display_name: Option<String>,
        /// Refuse its keys and tokens, and end its sessions. Its objects stay.
        #[arg(long)]
        disable: bool,
        /// Accept its keys and tokens again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// List what an organisation is granted: each limit, its value, and whether the configuration file or the store sets it.
    Limits {
        /// The organisation.
        name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Set limits of an organisation, such as `max_runs=16`; every server enforces them within a second.
    SetLimits {
        /// The organisation.
        name: String,
        /// A limit and its value: weight (1 to 1000), max_runs, max_queued_tokens, tokens_per_minute, max_storage_bytes,
        /// max_queued_requests or max_queued_bytes.
        #[arg(value_name = "LIMIT=VALUE", required = true)]
        limits: Vec<String>,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Unset limits of an organisation, which are then as without them.
    UnsetLimits {
        /// The organisation.
        name: String,
        /// Names of limits, as `trainyard tenants limits` prints them.
        #[arg(value_name = "LIMIT", required = true)]
        limits: Vec<String>,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// List the users of an organisation.
    Users {
        /// The organisation.
        name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Add a user to an organisation.
    AddUser {
        /// The organisation.
        name: String,
        /// Names the user.
        email: String,
        /// What people call the user.
        #[arg(long, value_name = "NAME", default_value = "")]
        full_name: String,
        /// The most that the user's keys allow: admin, member or read-only.
        #[arg(long, default_value = "member")]
        role: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Give a user another role, or refuse or accept the user's keys.
    ChangeUser {
        /// The organisation.
        name: String,
        /// Names the user.
        email: String,
        /// The most that the user's keys allow: admin, member or read-only.
        #[arg(long)]
        role: Option<String>,
        /// Refuse the user's keys.
        #[arg(long)]
        disable: bool,
        /// Accept the user's keys again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// List the projects of an organisation.
    Projects {
        /// The organisation.
        name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Add a project to an organisation.
    AddProject {
        /// The organisation.
        name: String,
        /// The project, as sessions name it.
        project: String,
        /// What people call it.
        #[arg(long, value_name = "NAME", default_value = "")]
        full_name: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Remove a project from an organisation.
    RemoveProject {
        /// The organisation.
        name: String,
        /// The project, as sessions name it.
        project: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
}

/// Flags of `trainyard keys`.
#[derive(Args, Clone, Debug)]
pub struct KeysFlags {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands have theirs")]
    pub command: KeysCommand,
}

/// What `trainyard keys` does.
#[derive(Clone, Debug, Subcommand)]
pub enum KeysCommand {
    /// List the keys of an organisation.
    List {
        /// The organisation.
        organisation: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Create a key and print it, this once: its SHA-256 alone is stored.
    Create {
        /// The organisation.
        organisation: String,
        /// What people call the key.
        #[arg(long)]
        name: String,
        /// More about it.
        #[arg(long, default_value = "")]
        note: String,
        /// The email of the user whose it is; one of the organisation's programs when absent.
        #[arg(long, value_name = "EMAIL")]
        user: Option<String>,
        /// The most that it allows: admin, member or read-only.
        #[arg(long, default_value = "member")]
        role: String,
        /// Cut it to a scope: train, sample, checkpoints or admin; may be repeated.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// Let it expire after so many days.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Withdraw all keys that sign the service's tokens, and make another one, which signs at once. For when one may have
    /// become known: every server refuses every token that was made before within a second.
    RotateSigning {
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
    /// Revoke a key: every server refuses it from now on.
    Revoke {
        /// The organisation.
        organisation: String,
        /// The key's id, as `trainyard keys list` prints it.
        id: i64,
        #[command(flatten)]
        #[expect(missing_docs, reason = "the fields have theirs")]
        store: StoreFlags,
    },
}
