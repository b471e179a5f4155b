//! Fills a database as after long use: 100,000 retained samples, 100,000 ended sessions and 21,000 runs.

use super::super::spec;
use super::NOW;
use crate::store::db::{Conn, Dialect, Value, sql};

/// Number of ended sessions.
pub(super) const ENDED: i64 = 100_000;
/// Number of those whose run has a checkpoint and that ended long ago.
pub(super) const KEPT: i64 = 20_000;
/// Number of active sessions, with a run and a sampling session each.
pub(super) const ACTIVE: i64 = 1_000;
/// Number of retained samples: one half of the session `a1`, the rest of all others.
const SAMPLES: i64 = 100_000;
/// Number of retained training requests of the run of `a1`, and of each other one.
pub(super) const LOG: i64 = 10_000;
const SHORT_LOG: i64 = 10;
/// Number of sampling sessions of `a1`.
pub(super) const SAMPLERS: i64 = 10_000;
/// Number of sessions that ended long ago and have yet to be collected.
const GARBAGE: i64 = 100;

const HOUR: i64 = 3_600_000;

/// A statement in which `$1` counts rows; further parameters are numbered from 2.
macro_rules! numbered {
    ($insert:literal, $select:literal) => {
        concat!(
            $insert,
            " WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1) ",
            $select
        )
    };
}

const SESSIONS: &str = numbered!(
    "INSERT INTO sessions (id, tenant, tags, user_metadata, sdk_version, status, finish_reason, created_at, ended_at,
        last_seen_at, collected)",
    "SELECT $2 || i, 'me', '[]', '{}', '0', 'finished', 'success', $3 - i, CAST($3 AS BIGINT), CAST($3 AS BIGINT), $4
    FROM n"
);
const ACTIVE_SESSIONS: &str = numbered!(
    "INSERT INTO sessions (id, tenant, tags, user_metadata, sdk_version, status, created_at, last_seen_at)",
    "SELECT 'a' || i, 'me', '[]', '{}', '0', 'active', $2 - i, CAST($2 AS BIGINT) FROM n"
);
/// Runs of sessions with a prefix; those of the last twenty are leased if `$4` is given.
const RUNS: &str = numbered!(
    "INSERT INTO runs (id, tenant, session_id, model_seq_id, spec, state, user_metadata, created_at, last_request_at,
        base_model, worker_id, epoch)",
    "SELECT $2 || i || ':train:0', 'me', $2 || i, 0, $3, 'ready', '{}', CAST($5 AS BIGINT) - i, CAST($5 AS BIGINT) - i,
        'base', CASE WHEN i > $1 - 20 THEN $4 END, 1 FROM n"
);
const SAVED_RUN: &str =
    "UPDATE runs SET snapshot_seq = $1, snapshot_dir = 'snapshots/a1/r', ended_before = 1 WHERE id = 'a1:train:0'";
/// Sampling sessions of in-memory snapshots, one for each session with a prefix.
const SAMPLING_SESSIONS: &str = numbered!(
    "INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, snapshot, run_id, request_id, created_at)",
    "SELECT $2 || i || ':sample:0', 'me', $2 || i, 0, 'base', 'k0', $2 || i || ':train:0', $2 || i, CAST($3 AS BIGINT)
    FROM n"
);
/// Sampling sessions of saved snapshots of one run, all but the last twenty collected.
const MANY_SAMPLING_SESSIONS: &str = numbered!(
    "INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, snapshot, run_id, request_id,
        snapshot_dir, collected, created_at)",
    "SELECT 'a1:sample:' || i, 'me', 'a1', i, 'base', 'k' || i, 'a1:train:0', 'save' || i, 'snapshots/a1/' || i,
        i <= $1 - 20, $2 - i FROM n"
);
/// Custom losses, one for each session with a prefix.
const CUSTOM_LOSSES: &str = numbered!(
    "INSERT INTO custom_losses (id, tenant, session_id, seq_id, definition, created_at)",
    "SELECT $2 || i || ':loss:0', 'me', $2 || i, 0, $3, CAST($4 AS BIGINT) FROM n"
);
const BASE_SAMPLING_SESSION: &str =
    "INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, created_at)
    VALUES ('a2:sample:1', 'me', 'a2', 1, 'base', CAST($1 AS BIGINT))";
/// Samples: the first half of `a1`, the others in turn of the other sessions.
const RETAINED_SAMPLES: &str = numbered!(
    "INSERT INTO requests (id, tenant, session_id, sampling_session_id, seq_id, kind, num_samples, fingerprint, state,
        encoding, result, result_size, event, clone, dropped, acknowledged_at, created_at, finished_at, worker_id, claim, tokens,
        recorded_at)",
    "SELECT 's' || i, 'me', 'a' || session, 'a' || session || ':sample:0', i, 'sample', 1, $2, 'succeeded', 'json', $2, 10, i,
        0, i % 2 = 0, CASE WHEN i % 3 = 0 THEN $3 - 60000 END, $3 - i, $3 - 3600000 + i, 'w', 1, 10, CASE WHEN i % 5 = 0 THEN $3 - i END
    FROM (SELECT i, CASE WHEN i * 2 <= $1 THEN 1 ELSE 2 + i % $4 END AS session FROM n) AS numbered"
);
/// Training requests of the run of one session.
const RETAINED_TRAINING: &str = numbered!(
    "INSERT INTO requests (id, tenant, session_id, run_id, seq_id, kind, fingerprint, state, payload, encoding,
        result_size, replays, created_at, finished_at, tokens)",
    "SELECT session || '-' || i, 'me', session, session || ':train:0', i, 'forward_backward', $2, 'succeeded', $2, 'json',
        10, TRUE, $3 - 3600000, $3 - 3600000 + i, 10
    FROM n CROSS JOIN (SELECT id AS session FROM sessions WHERE status = 'active' AND (id = 'a1') = $4) AS run"
);
/// The log of the saved run is not replayed, and its oldest results were dropped.
const DROPPED_TRAINING: &str =
    "UPDATE requests SET dropped = TRUE, replays = FALSE WHERE run_id = 'a1:train:0' AND seq_id <= 1000";
const GARBAGE_SAMPLES: &str = numbered!(
    "INSERT INTO requests (id, tenant, session_id, sampling_session_id, seq_id, kind, num_samples, fingerprint, state,
        encoding, result_size, event, clone, created_at, finished_at, tokens)",
    "SELECT 'gs' || i, 'me', 'g' || (1 + i % $4), 'g' || (1 + i % $4) || ':sample:0', i, 'sample', 1, $2, 'succeeded',
        'json', 10, i, 0, CAST($3 AS BIGINT), CAST($3 AS BIGINT), 10 FROM n"
);
/// Queued samples: ten of each of the sampling sessions of `a2`, the second half claimed.
const QUEUED_SAMPLES: &str = numbered!(
    "INSERT INTO requests (id, tenant, session_id, sampling_session_id, seq_id, kind, num_samples, fingerprint, state,
        payload, created_at, worker_id, claim, tokens)",
    "SELECT 'q' || i, 'me', 'a2', 'a2:sample:' || (i % 2), 1000000 + i, 'sample', 1, $2, CASE WHEN i > 10 THEN 'running'
        ELSE 'queued' END, $2, $3 - i, CASE WHEN i > 10 THEN 'w' END, 1, 10 FROM n"
);
/// Queued training requests: the next one of some idle runs and of the leased ones.
const QUEUED_TRAINING: &str =
    "INSERT INTO requests (id, tenant, session_id, run_id, seq_id, kind, fingerprint, state, payload,
        created_at, tokens)
    SELECT 'next-' || session_id, 'me', session_id, id, 1000000, 'forward_backward', $1,
        CASE WHEN worker_id IS NULL THEN 'queued' ELSE 'running' END, $1, CAST($2 AS BIGINT), 10
    FROM runs WHERE worker_id IS NOT NULL OR id IN ('a1:train:0', 'a4:train:0', 'a5:train:0', 'a6:train:0')";
const CHECKPOINTS: &str = numbered!(
    "INSERT INTO checkpoints (run_id, kind, name, tenant, spec, dir, size_bytes, user_metadata, created_at, expires_at)",
    "SELECT 'e' || i || ':train:0', 'weights', 'c', 'me', $2, 'checkpoints/e' || i, 10, '{}', $3 - i,
        CASE WHEN i % 2 = 0 THEN $3 + 3600000 + i END FROM n"
);
/// Metrics of the run of one session, two for each step.
const METRICS: &str = numbered!(
    "INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)",
    "SELECT id, i / 2, i, 'me', CASE WHEN i % 2 = 0 THEN 'forward_backward' ELSE 'optim_step' END, $2 - 3600000 + i, '{}'
    FROM n CROSS JOIN runs WHERE (id = 'a1:train:0') = $3 AND (id LIKE 'a%' OR id LIKE 'g%')"
);
/// Stored samples of the run of one session.
const STORED_SAMPLES: &str = numbered!(
    "INSERT INTO run_samples (run_id, at, request_id, tenant, sampling_session_id, size_bytes, content)",
    "SELECT id, $2 - i, 's' || i, 'me', 'a1:sample:0', 32, $4
    FROM n CROSS JOIN runs WHERE (id = 'a1:train:0') = $3 AND (id LIKE 'a%' OR id LIKE 'g%')"
);
const LOADS: &str = "INSERT INTO loads (request_id, dir) SELECT id, 'checkpoints/x/' || seq_id FROM requests
    WHERE run_id = 'a1:train:0' AND seq_id < 1000";

/// Fills an empty database that has the schema.
pub(super) async fn fill(conn: &mut Conn) {
    let spec = serde_json::to_string(&spec()).unwrap();
    let bytes = || Value::from(&b"0123456789abcdef0123456789abcdef"[..]);
    let int = Value::from;
    conn.begin().await.unwrap();
    if conn.dialect() == Dialect::Postgres {
        // The rows are known to refer only to existing rows.
        run(conn, "SET LOCAL session_replication_role = replica", vec![]).await;
    }
    let long_ago = NOW - 300 * HOUR;
    run(conn, SESSIONS, vec![int(ENDED), "e".into(), int(NOW - HOUR), false.into()]).await;
    run(
        conn,
        "UPDATE sessions SET collected = TRUE, ended_at = $2 WHERE created_at >= $1",
        vec![int(NOW - HOUR - KEPT), int(long_ago)],
    )
    .await;
    run(conn, SESSIONS, vec![int(GARBAGE), "g".into(), int(long_ago), false.into()]).await;
    run(conn, ACTIVE_SESSIONS, vec![int(ACTIVE), int(NOW)]).await;
    for (prefix, count, worker) in [("a", ACTIVE, Some("w")), ("e", KEPT, None), ("g", GARBAGE, None)] {
        run(conn, RUNS, vec![int(count), prefix.into(), spec.as_str().into(), worker.into(), int(NOW)]).await;
        run(conn, SAMPLING_SESSIONS, vec![int(count), prefix.into(), int(NOW)]).await;
    }
    run(conn, SAVED_RUN, vec![int(LOG - 100)]).await;
    run(conn, MANY_SAMPLING_SESSIONS, vec![int(SAMPLERS), int(NOW)]).await;
    for (count, prefix) in [(ACTIVE, "a"), (ENDED, "e")] {
        run(conn, CUSTOM_LOSSES, vec![int(count), prefix.into(), bytes(), int(NOW)]).await;
    }
    run(conn, BASE_SAMPLING_SESSION, vec![int(NOW)]).await;
    run(conn, RETAINED_SAMPLES, vec![int(SAMPLES), bytes(), int(NOW), int(ACTIVE - 1)]).await;
    run(conn, RETAINED_TRAINING, vec![int(LOG), bytes(), int(NOW), true.into()]).await;
    run(conn, RETAINED_TRAINING, vec![int(SHORT_LOG), bytes(), int(NOW), false.into()]).await;
    run(conn, DROPPED_TRAINING, vec![]).await;
    run(conn, GARBAGE_SAMPLES, vec![int(GARBAGE * 20), bytes(), int(long_ago), int(GARBAGE)]).await;
    run(conn, QUEUED_SAMPLES, vec![int(20), bytes(), int(NOW)]).await;
    run(conn, QUEUED_TRAINING, vec![bytes(), int(NOW)]).await;
    run(conn, CHECKPOINTS, vec![int(KEPT), spec.as_str().into(), int(NOW)]).await;
    run(conn, METRICS, vec![int(LOG), int(NOW), true.into()]).await;
    run(conn, METRICS, vec![int(SHORT_LOG), int(NOW), false.into()]).await;
    run(conn, STORED_SAMPLES, vec![int(1_000), int(NOW), true.into(), bytes()]).await;
    run(conn, STORED_SAMPLES, vec![int(SHORT_LOG), int(NOW), false.into(), bytes()]).await;
    run(conn, LOADS, vec![]).await;
    conn.commit().await.unwrap();
}

pub(super) async fn run(conn: &mut Conn, text: &'static str, values: Vec<Value<'_>>) {
    let statement = values.into_iter().fold(sql(text), |statement, value| statement.bind(value));
    let done = statement.execute(conn).await;
    assert!(done.unwrap_or_else(|error| panic!("{error}: {text}")) > 0 || text.starts_with("SET"), "{text}");
}
