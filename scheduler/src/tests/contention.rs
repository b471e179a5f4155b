//! Tests of transactions of several processes that change the same rows.

use futures::future::join_all;

use super::fleet::{Fleet, next, report, succeeded};
use super::*;
use crate::store::db::{Conn, connect_as_system, sql};
use crate::store::results::{RequestEnd, end_request};
use crate::store::{locks, runs, sessions};

/// Opens a transaction of another process.
async fn other_transaction(fleet: &Fleet) -> Conn {
    let mut conn = connect_as_system(&fleet.site.database.database).await.unwrap();
    conn.begin().await.unwrap();
    conn
}

/// Waits until a transaction waits for a lock of another.
async fn until_one_waits(fleet: &Fleet) {
    let mut conn = connect_as_system(&fleet.site.database.database).await.unwrap();
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while sql(waiting).scalar::<i64>(&mut conn).await.unwrap() == Some(0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_submission_waits_for_no_row_of_its_run_or_session() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let run = fleet.run_of(&worker, 0).await;
    fleet.site.pass(Duration::from_secs(60));
    let mut other = other_transaction(&fleet).await;
    let now = fleet.api.core.now();
    runs::touch_run(&mut other, &run, now).await.unwrap();
    sessions::touch_session(&mut other, &fleet.session, now).await.unwrap();
    let request = fleet.submit(&fleet.api, &run, 1).await;
    fleet.api.heartbeat(&fleet.me, &fleet.session).await.unwrap();
    assert_eq!(fleet.api.core.metrics.conflicts.get(), 0);
    other.commit().await.unwrap();
    let run = fleet.api.run(&fleet.me, &run).await.unwrap();
    assert_eq!(run.last_request_at, now);
    report(&worker, &next(&worker).await, "done");
    assert_eq!(fleet.poll(&request).await, succeeded("done"));
}

#[tokio::test]
async fn heartbeats_that_wait_to_be_written_hold_no_connection_that_reads() {
    let fleet = Fleet::new().await;
    let (_, readers) = fleet.api.core.readers.usage();
    let mut sessions = Vec::new();
    for _ in 0..readers {
        sessions.push(fleet.api.create_session(&fleet.me, new_session(None)).await.unwrap());
    }
    fleet.site.pass(Duration::from_secs(60));
    let mut other = other_transaction(&fleet).await;
    sql("LOCK TABLE sessions IN SHARE MODE").execute(&mut other).await.unwrap();
    let heartbeats = sessions.into_iter().map(|session| {
        let (api, me) = (fleet.api.clone(), fleet.me.clone());
        tokio::spawn(async move { api.heartbeat(&me, &session).await })
    });
    let heartbeats: Vec<_> = heartbeats.collect();
    while fleet.api.core.metrics.store.queued.get() < i64::try_from(readers).unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(fleet.api.core.readers.usage(), (0, readers));
    other.commit().await.unwrap();
    for heartbeat in heartbeats {
        heartbeat.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_expired_session_that_two_processes_revive_at_once_is_active_for_both() {
    let fleet = Fleet::new().await;
    for sign in 0..2 {
        fleet.site.pass(Duration::from_secs(301));
        assert_eq!(fleet.api.maintain().await.unwrap().sessions, vec![fleet.session.clone()]);
        let mut other = other_transaction(&fleet).await;
        let now = fleet.api.core.now();
        assert!(sessions::revive_session(&mut other, &fleet.session, Timestamp(0), now).await.unwrap());
        let (api, me, session) = (fleet.api.clone(), fleet.me.clone(), fleet.session.clone());
        let beside = tokio::spawn(async move {
            match sign {
                0 => api.heartbeat(&me, &session).await,
                _ => api.create_sampling_session(&me, new_sampling(&session, 0, None)).await.map(drop),
            }
        });
        until_one_waits(&fleet).await;
        other.commit().await.unwrap();
        beside.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn samples_of_one_session_that_two_workers_end_at_once_are_numbered_in_turn() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let sampler = fleet.api.create_sampling_session(&fleet.me, new_sampling(&fleet.session, 0, None)).await.unwrap();
    let mut requests = Vec::new();
    for seq_id in 0..2 {
        let submitted = worker.submit_sample(&fleet.me, sample(&sampler, seq_id)).await.unwrap();
        requests.push(submitted.request_id);
    }
    let waiting = worker.clone();
    let works = tokio::task::spawn_blocking(move || waiting.wait_work(LONG)).await.unwrap();
    let Some(WorkItem::Start(last)) = works.last() else { panic!("{works:?}") };
    assert_eq!(last.request, requests[1]);
    // This write also records the starts.
    worker.create_session(&fleet.me, new_session(None)).await.unwrap();
    // Another process ends the first one, in a slow transaction.
    let mut other = other_transaction(&fleet).await;
    locks::lock_names(&mut other, vec![fleet.session.to_string()]).await.unwrap();
    let cancelled = end_request(&mut other, &requests[0], &RequestEnd::Cancelled, None, fleet.api.core.now()).await;
    assert!(cancelled.unwrap().is_some());
    report(&worker, last, "second");
    until_one_waits(&fleet).await;
    other.commit().await.unwrap();
    assert_eq!(fleet.poll(&requests[1]).await, succeeded("second"));
    assert_eq!(worker.core.metrics.conflicts.get(), 0);
    let ended = fleet.api.completions(&fleet.me, &sampler, 0, 0, NO_WAIT).await.unwrap();
    assert_eq!(ended.items.iter().map(|item| &item.request_id).collect::<Vec<_>>(), [&requests[0], &requests[1]]);
    assert_eq!(ended.cursor, 2);
}

#[tokio::test]
async fn processes_that_cancel_the_same_samples_do_not_deadlock() {
    let fleet = Fleet::new().await;
    let second = fleet.site.process(None).await;
    let mut requests = Vec::new();
    for _ in 0..4 {
        let session = fleet.api.create_session(&fleet.me, new_session(None)).await.unwrap();
        let sampler = fleet.api.create_sampling_session(&fleet.me, new_sampling(&session, 0, None)).await.unwrap();
        for seq_id in 0..16 {
            let submitted = fleet.api.submit_sample(&fleet.me, sample(&sampler, seq_id)).await.unwrap();
            requests.push(submitted.request_id);
        }
    }
    let forwards = join_all(requests.iter().map(|request| fleet.api.cancel(&fleet.me, request)));
    let backwards = join_all(requests.iter().rev().map(|request| second.cancel(&fleet.me, request)));
    let (forwards, backwards) = tokio::join!(forwards, backwards);
    for done in forwards.into_iter().chain(backwards) {
        done.unwrap();
    }
    let conflicts = |process: &Scheduler| process.core.metrics.conflicts.get();
    assert_eq!([conflicts(&fleet.api), conflicts(&second)], [0, 0]);
}
