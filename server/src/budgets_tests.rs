//! The table of all budgets, which `docs/operators/budgets.md` repeats.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use trainyard_chat::settings::{MAX_COMPLETIONS, MAX_LOGPROBS};
use trainyard_http::listener::{CONNECTIONS, ConnectionLimits, HEADER_TIME};
use trainyard_protocol::custom_loss::{MAX_ARGUMENTS, MAX_GRAPH_BYTES, MAX_NODES};
use trainyard_protocol::limits::{
    MAX_CANDIDATES, MAX_CHUNKS, MAX_DATUMS, MAX_IDEMPOTENCY_KEY_BYTES, MAX_IMAGE_PIXELS, MAX_IMAGES, MAX_LOGIT_BIASES,
    MAX_LOSS_INPUTS, MAX_LOSS_SETTINGS, MAX_METADATA_BYTES, MAX_METADATA_ENTRIES, MAX_NUM_SAMPLES, MAX_PARTS,
    MAX_SCHEMA_BYTES, MAX_SCHEMA_VALUES, MAX_STOP_STRINGS, MAX_STOP_TOKENS, MAX_TAG_BYTES, MAX_TAGS, MAX_TARGETS,
    MAX_TEXT_BYTES, MAX_TOPK_LOGPROBS,
};
use trainyard_scheduler::budgets::{
    ACKNOWLEDGED_TOGETHER, AGENT_SESSIONS, AGENT_TOKENS, AGENT_TURNS, CHANGED_TOGETHER, DATABASE_READERS, KEYS,
    METRICS_ROWS, PAGE_BYTES, PROJECTS, RUNS, SAMPLERS, SEARCHED_BYTES, SEARCHED_ENTRIES, SESSIONS, UPLOAD_PIECES,
    USAGE_ROWS, USERS,
};
use trainyard_scheduler::{MAX_CUSTOM_LOSSES, MAX_OPEN_UPLOADS, MAX_STORED_SAMPLES, TrainingLimits};
use trainyard_wire::images::ImageLimits;
use trainyard_wire::json::MAX_VALUES;
use trainyard_wire::lists::{MAX_CONTENT_PARTS, MAX_MESSAGES, MAX_RETRIEVED, MAX_TOOLS};

use super::*;
use crate::bodies::BodyLimits;
use crate::state::Limits;

/// The page for operators.
const PAGE: &str = include_str!("../../docs/operators/budgets.md");

/// Elements of custom losses in one pass, a constant of the engine: it yields between passes of one request.
const LOSS_ELEMENTS: usize = 1 << 25;
const ENGINE: &str = "../gpu-runtime/src/loss/custom/tape.rs";

enum Amount {
    Bytes(u64),
    Count(u64),
    Time(Duration),
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Bytes(bytes) => {
                let shift = [30, 20, 10, 0].into_iter().find(|shift| bytes % (1 << shift) == 0).unwrap_or(0);
                let unit = match shift {
                    30 => "GiB",
                    20 => "MiB",
                    10 => "KiB",
                    _ => "bytes",
                };
                write!(f, "{} {unit}", bytes >> shift)
            }
            Self::Count(count) => {
                let digits = count.to_string();
                let grouped: Vec<&str> =
                    digits.as_bytes().rchunks(3).rev().map(|some| std::str::from_utf8(some).unwrap()).collect();
                f.write_str(&grouped.join(","))
            }
            Self::Time(time) if time.as_secs() % 3_600 == 0 => write!(f, "{} h", time.as_secs() / 3_600),
            Self::Time(time) => write!(f, "{} s", time.as_secs()),
        }
    }
}

fn bytes(amount: impl TryInto<u64>) -> Amount {
    Amount::Bytes(amount.try_into().ok().unwrap())
}

fn count(amount: impl TryInto<u64>) -> Amount {
    Amount::Count(amount.try_into().ok().unwrap())
}

/// Every budget: its name and its default, as the page has them.
fn budgets() -> Vec<(&'static str, Amount)> {
    let (training, images) = (TrainingLimits::default(), ImageLimits::default());
    vec![
        // Bytes in.
        ("connections in all", count(CONNECTIONS)),
        ("header of a request", Amount::Time(HEADER_TIME)),
        ("body with tokens and tensors", bytes(BODY_BYTES)),
        ("body with text", bytes(TEXT_BODY_BYTES)),
        ("any other body", bytes(SMALL_BODY_BYTES)),
        ("rate of a body per second", bytes(BODY_KIB_PER_SECOND << 10)),
        ("memory of bodies", bytes(BODY_MEMORY)),
        ("wait of a body for memory", Amount::Time(BODY_WAIT)),
        ("work while a disk is almost full", bytes(WORK_WHILE_ALMOST_FULL)),
        ("session while a disk is almost full", bytes(SESSION_WHILE_ALMOST_FULL)),
        ("configuration of an uploaded adapter", bytes(UPLOADED_CONFIG_BYTES)),
        ("tensors of an uploaded adapter", bytes(UPLOADED_TENSOR_BYTES)),
        ("time of an upload", Amount::Time(UPLOAD_LIFETIME)),
        ("open uploads", count(MAX_OPEN_UPLOADS)),
        ("pieces of an uploaded file", count(UPLOAD_PIECES)),
        // Content of a body.
        ("values of a JSON body without tensors", count(MAX_VALUES)),
        ("entries of metadata", count(MAX_METADATA_ENTRIES)),
        ("metadata", bytes(MAX_METADATA_BYTES)),
        ("tags", count(MAX_TAGS)),
        ("texts of all tags", bytes(MAX_TAG_BYTES)),
        ("tag, name, version or reason", bytes(MAX_TEXT_BYTES)),
        ("idempotency key", bytes(MAX_IDEMPOTENCY_KEY_BYTES)),
        ("ids of acknowledged results", count(MAX_RETRIEVED)),
        ("messages of a conversation", count(MAX_MESSAGES)),
        ("items of a conversation", count(MAX_MESSAGES)),
        ("parts of a message", count(MAX_CONTENT_PARTS)),
        ("tools", count(MAX_TOOLS)),
        ("datums of a training request", count(MAX_DATUMS)),
        ("chunks of an input", count(MAX_CHUNKS)),
        ("chunks, inputs and spans of a training request", count(MAX_PARTS)),
        ("targets of a position", count(MAX_TARGETS)),
        ("inputs of a loss", count(MAX_LOSS_INPUTS)),
        ("settings of a loss", count(MAX_LOSS_SETTINGS)),
        ("images", count(MAX_IMAGES)),
        ("file of an image", bytes(images.image.bytes)),
        ("pixels of an image", count(images.image.pixels)),
        ("side of an image", count(images.image.side)),
        ("ratio of an image's sides", count(images.image.aspect_ratio)),
        ("pixels of the different images", count(MAX_IMAGE_PIXELS)),
        // Work of a request.
        ("samples of a request", count(MAX_NUM_SAMPLES)),
        ("completions of a request", count(MAX_COMPLETIONS)),
        ("candidates of a position", count(MAX_TOPK_LOGPROBS)),
        ("candidates of a completion's token", count(MAX_LOGPROBS)),
        ("candidates of a sample", count(MAX_CANDIDATES)),
        ("stop strings", count(MAX_STOP_STRINGS)),
        ("stop tokens", count(MAX_STOP_TOKENS)),
        ("tokens of a logit bias", count(MAX_LOGIT_BIASES)),
        ("JSON schema", bytes(MAX_SCHEMA_BYTES)),
        ("values of a JSON schema", count(MAX_SCHEMA_VALUES)),
        ("graph of a custom loss", bytes(MAX_GRAPH_BYTES)),
        ("nodes of a custom loss", count(MAX_NODES)),
        ("arguments of a custom loss", count(MAX_ARGUMENTS)),
        ("elements of custom losses in a pass", count(LOSS_ELEMENTS)),
        ("custom losses of a session", count(MAX_CUSTOM_LOSSES)),
        // Waiting work.
        ("unfinished requests of a run", count(training.run_requests.get())),
        ("payloads of a run's unfinished requests", bytes(training.run_bytes.get())),
        ("unfinished training requests", count(training.requests.get())),
        ("payloads of unfinished training requests", bytes(training.bytes.get())),
        ("gap in a run's order", count(training.seq_gap.get())),
        ("images that are being decoded", bytes(IMAGE_MEMORY)),
        ("cached embeddings of images", bytes(IMAGE_CACHE)),
        ("unfinished samples", count(QUEUED_SAMPLES)),
        ("stored samples of a run", count(MAX_STORED_SAMPLES)),
        ("requests of a run with metrics", count(METRICS_ROWS)),
        ("sessions that are open, or that ended within the retention time", count(SESSIONS)),
        ("training runs of a session", count(RUNS)),
        ("sampling sessions of a session", count(SAMPLERS)),
        ("open agent sessions", count(AGENT_SESSIONS)),
        ("turns of an agent session", count(AGENT_TURNS)),
        ("turns of an agent session that sets no limit", count(AGENT_DEFAULT_TURNS)),
        ("sampled tokens of an agent session", count(AGENT_TOKENS)),
        ("prompt tokens of an agent session", count(AGENT_TOKENS)),
        ("time of an agent session", Amount::Time(AGENT_TIME)),
        ("time of an agent session that sets no limit", Amount::Time(AGENT_DEFAULT_TIME)),
        // Bytes out, and what is read for them.
        ("memory of answers", bytes(ANSWER_MEMORY)),
        ("connections that read from the database", count(DATABASE_READERS)),
        ("poll", Amount::Time(LONG_POLL)),
        ("entries of a page of a listing", count(LISTED_ENTRIES)),
        ("entries of a page of a search", count(FOUND_ENTRIES)),
        ("page of trajectories", bytes(AGENT_PAGE_BYTES)),
        ("metadata of a page", bytes(PAGE_BYTES)),
        ("entries that a search reads", count(SEARCHED_ENTRIES)),
        ("metadata that a search reads", bytes(SEARCHED_BYTES)),
        ("results acknowledged in one transaction", count(ACKNOWLEDGED_TOGETHER)),
        ("requests cancelled in one transaction", count(CHANGED_TOGETHER)),
        ("rows of usage of single requests", count(USAGE_ROWS)),
        ("days of a report of usage", count(USAGE_DAYS)),
        // Callers.
        ("token", bytes(TOKEN_BYTES)),
        ("wrong keys of an address", count(WRONG_KEYS)),
        ("wait after wrong keys", Amount::Time(WRONG_KEYS_WAIT)),
        ("addresses whose wrong keys are counted", count(WRONG_KEYS_SOURCES)),
        ("audited failures in an hour", count(AUDITED_FAILURES)),
        ("users of an organisation", count(USERS)),
        ("projects of an organisation", count(PROJECTS)),
        ("API keys of an organisation", count(KEYS)),
    ]
}

/// Rows of the page's tables, without heads: name, default, and the other cells.
fn rows() -> Vec<Vec<&'static str>> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let is_row = |line: &&str| line.starts_with('|') && !line.starts_with("|---") && !line.starts_with("| budget");
    PAGE.lines().filter(is_row).map(cells).collect()
}

#[test]
fn the_page_has_every_budget_with_its_default() {
    let documented: Vec<(String, String)> =
        rows().iter().map(|cells| (cells[0].to_owned(), cells[1].to_owned())).collect();
    let known: Vec<(String, String)> =
        budgets().iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect();
    assert_eq!(documented, known);
}

#[test]
fn every_budget_has_its_scope_its_answer_and_its_test() {
    for cells in rows() {
        let [name, _, scope, beyond, test] = cells[..] else { panic!("{cells:?} has not five cells") };
        let scopes = ["request", "run", "session", "tenant", "address", "connection", "process", "deployment"];
        assert!(scopes.contains(&scope), "{name}: for {scope}");
        assert!(!beyond.is_empty() && test.starts_with('`') && test.ends_with('`'), "{name}");
    }
}

#[test]
fn the_defaults_are_the_budgets() {
    let limits = Limits::default();
    assert_eq!((limits.max_body_bytes, limits.answer_memory), (BODY_BYTES, ANSWER_MEMORY));
    assert_eq!((limits.long_poll, limits.max_queued), (LONG_POLL, QUEUED_SAMPLES));
    assert_eq!(limits.upload_lifetime, UPLOAD_LIFETIME);
    let bodies = BodyLimits::default();
    assert_eq!((bodies.memory, bodies.wait), (BODY_MEMORY, BODY_WAIT));
    assert_eq!(bodies.bytes_per_window as u64, (BODY_KIB_PER_SECOND as u64 * bodies.window.as_secs()) << 10);
    let connections = ConnectionLimits::default();
    assert!(connections.total <= CONNECTIONS && connections.header_timeout == HEADER_TIME);
    let engine = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(ENGINE);
    assert!(std::fs::read_to_string(engine).unwrap().contains("const MAX_COST: usize = 1 << 25;"));
}
