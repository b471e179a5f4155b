//! Budgets: what a request may make the server read, hold and send. Bounds on its content are in
//! `trainyard_protocol::limits`, `trainyard_protocol::custom_loss` and `trainyard_wire`, bounds on what a call reads from the
//! store in `trainyard_scheduler::budgets`, bounds on connections in `trainyard_http::listener`.
//!
//! `docs/operators/budgets.md` lists all of them, and a test compares the page with the constants.

use std::time::Duration;

/// Bytes of a body with tokens and tensors, before and after decompression.
pub(crate) const BODY_BYTES: usize = 256 << 20;
/// Bytes of a body with text: JSON takes many times as much in memory.
pub(crate) const TEXT_BODY_BYTES: usize = 16 << 20;
/// Bytes of any other body.
pub(crate) const SMALL_BODY_BYTES: usize = 4 << 20;
/// Bytes that all bodies take together, from before they are read until they are processed.
pub(crate) const BODY_MEMORY: usize = 512 << 20;
/// The time that a body waits for memory.
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(20);
/// The rate at which a body must arrive, in KiB per second.
pub(crate) const BODY_KIB_PER_SECOND: usize = 16;
/// Bytes of a body that submits work while a disk is almost full.
pub(crate) const WORK_WHILE_ALMOST_FULL: usize = 64 << 10;
/// Bytes of a body about sessions, which are stored for long, while a disk is almost full.
pub(crate) const SESSION_WHILE_ALMOST_FULL: usize = 4 << 10;

/// Bytes that all answers take together, until clients have read them.
pub(crate) const ANSWER_MEMORY: usize = 512 << 20;
/// The time that a poll is held open. Clients give up after 45 s.
pub(crate) const LONG_POLL: Duration = Duration::from_secs(30);
/// Entries in a page of a listing.
pub(crate) const LISTED_ENTRIES: u32 = 1_000;
/// Entries in a page of a search.
pub(crate) const FOUND_ENTRIES: u32 = 200;
/// Bytes of a page of trajectories.
pub(crate) const AGENT_PAGE_BYTES: usize = 16 << 20;
/// Turns of an agent session that sets no limit.
pub(crate) const AGENT_DEFAULT_TURNS: u64 = 256;
/// Time of an agent session that sets no limit.
pub(crate) const AGENT_DEFAULT_TIME: Duration = Duration::from_secs(3_600);
/// The longest time of an agent session.
pub(crate) const AGENT_TIME: Duration = Duration::from_secs(168 * 3_600);
/// Days in a report of usage.
pub(crate) const USAGE_DAYS: i64 = 14;

/// Bytes that images take together while they are decoded.
pub(crate) const IMAGE_MEMORY: u64 = 512 << 20;
/// Bytes of cached embeddings of images.
pub(crate) const IMAGE_CACHE: u64 = 256 << 20;
/// Unfinished samples of all tenants.
pub(crate) const QUEUED_SAMPLES: u64 = 16_384;

/// Bytes of the configuration of an uploaded adapter.
pub(crate) const UPLOADED_CONFIG_BYTES: u64 = 1 << 20;
/// Bytes of the tensors of an uploaded adapter.
pub(crate) const UPLOADED_TENSOR_BYTES: u64 = 64 << 30;
/// The time limit of an upload, after which it is deleted.
pub(crate) const UPLOAD_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// Bytes of a token.
pub(crate) const TOKEN_BYTES: usize = 8_192;
/// Wrong keys that an address may send before it has to wait.
pub(crate) const WRONG_KEYS: u32 = 20;
/// The longest time between two keys of an address that sends wrong ones.
pub(crate) const WRONG_KEYS_WAIT: Duration = Duration::from_secs(32);
/// Addresses whose wrong keys are counted.
pub(crate) const WRONG_KEYS_SOURCES: usize = 16_384;
/// Failures of authentication that are entered into audit logs in an hour.
pub(crate) const AUDITED_FAILURES: u32 = 100;

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
