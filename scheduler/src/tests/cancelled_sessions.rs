//! Tests of the canceller: requests of sessions that end without success are cancelled in batches, between which others
//! commit.

use std::collections::BTreeSet;

use futures::future::join_all;

use super::*;
use crate::budgets::CHANGED_TOGETHER;
use crate::calls::sessions::EndSession;
use crate::store::db::{Sql, connect_as_system, recording, sql};
use crate::{FinishReason, SessionStatus};

/// Adds queued samples of a base model that no worker serves.
async fn queue_samples(bench: &Bench, count: i64) -> SamplingSessionId {
    const SQL: &str = "INSERT INTO requests (id, tenant, session_id, sampling_session_id, seq_id, kind, num_samples,
            fingerprint, state, payload, created_at, tokens)
        WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1)
        SELECT 'q' || i, 'me', $2, $3, i, 'sample', 1, $4, 'queued', $4, 0, 10 FROM n";
    let new = NewSamplingSession { base_model: "unserved".into(), ..new_sampling(&bench.session, 0, None) };
    let sampler = bench.scheduler.create_sampling_session(&bench.me, new).await.unwrap();
    let mut conn = connect_as_system(&bench.database.database).await.unwrap();
    let statement = sql(SQL).bind(count).bind(bench.session.as_str()).bind(sampler.as_str()).bind(&b"content"[..]);
    assert_eq!(statement.execute(&mut conn).await.unwrap(), count as u64);
    sampler
}

async fn count(bench: &Bench, text: &'static str) -> i64 {
    let mut conn = connect_as_system(&bench.database.database).await.unwrap();
    sql(text).scalar(&mut conn).await.unwrap().unwrap()
}

async fn unfinished(bench: &Bench) -> i64 {
    count(bench, "SELECT count(*) FROM requests WHERE finished_at IS NULL").await
}

async fn ends_cancelled(bench: &Bench, request: &RequestId) {
    while bench.poll(request).await == Poll::Pending {}
    assert_eq!(bench.poll(request).await, Poll::Cancelled);
}

async fn end(bench: &Bench) {
    let reason = FinishReason::Errored;
    bench.scheduler.finish_session(&bench.me, &bench.session, reason, None).await.unwrap();
}

#[tokio::test]
async fn others_commit_between_the_batches_of_a_large_cancellation() {
    const QUEUED: usize = 20_000;
    let bench = bench().await;
    let sampler = queue_samples(&bench, QUEUED as i64).await;
    let other = TenantId::new("other");
    recording::start();
    end(&bench).await;
    let last = RequestId::new(format!("q{}", QUEUED - 1));
    let others = async {
        loop {
            bench.scheduler.create_session(&other, new_session(None)).await.unwrap();
        }
    };
    tokio::select! {
        () = ends_cancelled(&bench, &last) => {}
        () = others => {}
    }
    let statements = recording::finish();
    let batches: Vec<usize> = statements.iter().filter(|it| it.name() == Some("cancel_next")).map(Sql::listed).collect();
    assert!(batches.iter().all(|batch| *batch <= CHANGED_TOGETHER), "{batches:?}");
    assert_eq!((batches.len(), batches.iter().sum()), (QUEUED.div_ceil(CHANGED_TOGETHER), QUEUED));
    let names: Vec<&str> =
        statements.iter().filter_map(Sql::name).filter(|name| ["cancel_next", "insert_session"].contains(name)).collect();
    let together = names.split(|name| *name == "insert_session").map(<[_]>::len).max();
    assert!(together <= Some(2), "{together:?} batches without a commit of another tenant");
    // All are cancelled, in the order of their arrival.
    assert_eq!(count(&bench, "SELECT count(*) FROM requests WHERE state <> 'cancelled' OR event <> seq_id + 1").await, 0);
    let found = bench.scheduler.completions(&bench.me, &sampler, 0, QUEUED as i64 - 2, NO_WAIT).await.unwrap();
    let ids: Vec<_> = found.items.into_iter().map(|item| item.request_id).collect();
    assert_eq!(ids, [RequestId::new(format!("q{}", QUEUED - 2)), last]);
}

#[tokio::test]
async fn a_cancellation_goes_on_after_a_crash_between_two_batches() {
    let bench = bench().await;
    queue_samples(&bench, 4_000).await;
    end(&bench).await;
    ends_cancelled(&bench, &RequestId::new("q0")).await;
    let bench = bench.restart(true).await;
    let left = unfinished(&bench).await;
    assert!((1..4_000).contains(&left), "{left}");
    bench.scheduler.maintain().await.unwrap();
    ends_cancelled(&bench, &RequestId::new("q3999")).await;
    assert_eq!(unfinished(&bench).await, 0);
    assert_eq!(count(&bench, "SELECT count(*) FROM requests WHERE event <> seq_id + 1").await, 0);
}

#[tokio::test]
async fn a_session_that_is_revived_between_two_batches_keeps_its_other_samples() {
    const SAMPLES: i64 = 1_500;
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let requests = join_all((0..SAMPLES).map(|seq_id| bench.submit_sample(&sampler, seq_id))).await;
    let end = EndSession {
        tenant: None,
        session: bench.session.clone(),
        status: SessionStatus::Expired,
        without_heartbeat_since: None,
    };
    assert!(bench.scheduler.core.call(end).await.unwrap());
    ends_cancelled(&bench, &requests[0].request_id).await;
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    // The next batch finds the session active.
    while bench.scheduler.core.cancellations.is_busy() {
        bench.scheduler.observe().await.unwrap();
    }
    let left = usize::try_from(unfinished(&bench).await).unwrap();
    assert!((1..SAMPLES as usize).contains(&left), "{left}");
    let mut succeeded = BTreeSet::new();
    while succeeded.len() < left {
        for item in bench.items().await {
            let WorkItem::Start(work) = item else { continue };
            bench.succeed(&work);
            succeeded.insert(work.request);
        }
    }
    let cancelled = count(&bench, "SELECT count(*) FROM requests WHERE state = 'cancelled'").await;
    for request in &succeeded {
        assert!(matches!(bench.poll(request).await, Poll::Succeeded { .. }));
    }
    assert_eq!((succeeded.len(), cancelled), (left, SAMPLES - left as i64));
}

#[tokio::test]
async fn queued_requests_of_runs_are_cancelled_in_batches() {
    const QUEUED: i64 = 700;
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let requests = join_all((1..=QUEUED).map(|seq_id| bench.submit(&run, seq_id, RequestKind::Forward))).await;
    let executing = bench.start().await;
    assert_eq!(executing.request, requests[0]);
    recording::start();
    end(&bench).await;
    for request in &requests[1..] {
        ends_cancelled(&bench, request).await;
    }
    let statements = recording::finish();
    let names: Vec<&str> = statements.iter().filter_map(Sql::name).collect();
    // Each batch begins with a look at its session.
    let batches: Vec<usize> = names
        .split(|name| *name == "ended_sessions")
        .map(|batch| batch.iter().filter(|name| **name == "write_end").count())
        .filter(|ends| *ends > 0)
        .collect();
    assert_eq!(batches, [256, 256, 187]);
    assert!(bench.items().await.contains(&WorkItem::Abandon(executing.request.clone())));
    bench.fail(&executing, "its session ended");
    assert!(matches!(bench.poll(&executing.request).await, Poll::Failed(_)));
}
