//! Bounds on what one call reads at once, and on what is retained. `docs/operators/budgets.md` lists them with those of
//! the other crates.

/// Maximum bytes of metadata that one page of a listing or a search reads; a single entry may have more.
pub const PAGE_BYTES: usize = 16 << 20;
/// Maximum number of entries that one search reads before it returns what it has found and where to continue.
pub const SEARCHED_ENTRIES: usize = 20_000;
/// Bytes of metadata after which a search returns what it has found and where to continue.
pub const SEARCHED_BYTES: usize = 64 << 20;
/// Connections that read a PostgreSQL database, unless [`Options::database_readers`](crate::Options::database_readers) is
/// set. A tenant holds at most half of them at a time.
pub const DATABASE_READERS: usize = 8;
/// Results that are acknowledged in one transaction.
pub const ACKNOWLEDGED_TOGETHER: usize = 256;
/// Requests that one transaction cancels, rejects or releases.
pub const CHANGED_TOGETHER: usize = 256;
/// Maximum number of requests of a session's timeline.
pub const TIMELINE_REQUESTS: i64 = 100_000;
/// Maximum number of entries of the audit log in one answer.
pub const AUDIT_ENTRIES: i64 = 10_000;

/// Sessions of a tenant that are open, or that ended within the retention time, unless its limit `max_sessions` is set.
pub const SESSIONS: u64 = 10_000;
/// Maximum number of training runs of a session.
pub const RUNS: u64 = 4_096;
/// Maximum number of sampling sessions of a session, beside those that its runs' saves create.
pub const SAMPLERS: u64 = 100_000;
/// Maximum number of projects of an organisation.
pub const PROJECTS: u64 = 100_000;
/// Maximum number of users of an organisation, with disabled ones.
pub const USERS: u64 = 100_000;
/// Maximum number of API keys of an organisation, revoked ones included.
pub const KEYS: u64 = 100_000;
/// Maximum number of pieces in which a file of an upload arrives.
pub const UPLOAD_PIECES: usize = 65_536;
/// Maximum number of agent sessions of a tenant that are open at once.
pub const AGENT_SESSIONS: u64 = 4_096;
/// Maximum number of turns of an agent session.
pub const AGENT_TURNS: u64 = 4_096;
/// Maximum number of tokens of an agent session that are sampled, and most tokens of prompts that its turns hold.
pub const AGENT_TOKENS: u64 = 1 << 22;

/// Maximum number of requests of a run whose metrics are kept, unless [`Options::metrics_rows`](crate::Options::metrics_rows)
/// is set. Beyond it, older ones are thinned out.
pub const METRICS_ROWS: u64 = 1_000_000;

/// Maximum number of rows of usage of single requests, unless [`Options::usage_rows`](crate::Options::usage_rows) is
/// set.
pub const USAGE_ROWS: u64 = 4_000_000;
