//! A claim reads each waiting sample a few times, however many there are and whatever the statistics of the tables say.

use trainyard_protocol::SessionId;

use super::fill::run;
use super::*;
use crate::store::sample_claims::{self, SampleClaim};

/// Samples that have ended, and those that wait for a worker.
const ENDED: i64 = 2_000;
const WAITING: i64 = 400;
/// Most steps of a claim, and a number for each row that it changes: about ten rows for each sample that waits.
const STEPS: (u64, u64) = (200_000, 1_000);
const ROWS: (u64, u64) = (4_000, 20);

const SESSION: &str =
    "INSERT INTO sessions (id, tenant, tags, user_metadata, sdk_version, status, created_at, last_seen_at)
    VALUES ('a', 'me', '[]', '{}', '0', 'active', CAST($1 AS BIGINT), CAST($1 AS BIGINT))";
const SAMPLING_SESSION: &str = "INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, created_at)
    VALUES ('a:sample:0', 'me', 'a', 0, 'base', CAST($1 AS BIGINT))";
/// Samples with numbers from `$1` to `$2`, which have ended if `$4`.
const SAMPLES: &str =
    "INSERT INTO requests (id, tenant, session_id, sampling_session_id, seq_id, kind, num_samples, fingerprint, state,
        created_at, finished_at, worker_id, claim, tokens)
    WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2)
    SELECT 's' || i, 'me', 'a', 'a:sample:0', i, 'sample', 16, $5, CASE WHEN $4 THEN 'succeeded' ELSE 'queued' END,
        $3 + i, CASE WHEN $4 THEN $3 + i END, CASE WHEN $4 THEN 'w' END, 1, 10 FROM n";

#[tokio::test]
async fn a_claim_reads_waiting_samples_a_few_times_on_sqlite() {
    check(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_claim_reads_waiting_samples_a_few_times_on_postgres() {
    check(Backend::Postgres).await;
}

async fn check(backend: Backend) {
    let dir = tempfile::tempdir().unwrap();
    let database = TestDatabase::new(backend, dir.path()).await;
    migrate(&database.database).await.unwrap();
    let mut conn = connect_as_system(&database.database).await.unwrap();
    let samples = |first: i64, last: i64, ended: bool| {
        vec![first.into(), last.into(), NOW.into(), ended.into(), (&[7; 32][..]).into()]
    };
    run(&mut conn, SESSION, vec![NOW.into()]).await;
    run(&mut conn, SAMPLING_SESSION, vec![NOW.into()]).await;
    run(&mut conn, SAMPLES, samples(1, ENDED, true)).await;
    if conn.dialect() == Dialect::Postgres {
        // What it knows is from before the samples came: it expects to find one or none.
        sql("ANALYZE").execute(&mut conn).await.unwrap();
        // Tables that are small beside those of other tests may be read completely.
        sql("SET enable_seqscan = off").execute(&mut conn).await.unwrap();
    }
    run(&mut conn, SAMPLES, samples(ENDED + 1, ENDED + WAITING, false)).await;
    let mut plans = Plans { conn, findings: BTreeSet::new(), seen: BTreeSet::new(), bounds: (STEPS, ROWS) };
    let (models, waiting) = (["base".to_owned()], [SessionId::new("a")]);
    for newcomers in [0, 64] {
        let claim = SampleClaim {
            worker: "w",
            models: &models,
            movable: true,
            limit: 64,
            newcomers,
            waiting: &waiting,
            paused: &[],
            continues: true,
        };
        plans
            .step(async |conn| {
                let claimed = sample_claims::claim_samples(conn, &claim).await?;
                assert_eq!(
                    claimed.iter().map(|sample| sample.arrival - claimed[0].arrival).collect::<Vec<_>>(),
                    [0, 1, 2, 3]
                );
                Ok(())
            })
            .await;
    }
    let Plans { conn, findings, .. } = plans;
    conn.close().await.unwrap();
    assert!(findings.is_empty(), "{}", findings.into_iter().collect::<Vec<_>>().join("\n"));
}
