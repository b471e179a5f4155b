use std::time::Instant;

use trainyard_protocol::RequestId;

use super::*;
use crate::{Measured, WorkerWait};
use crate::store::db::{connect_as_system, sql};

#[tokio::test]
async fn a_poll_waits_for_the_completion_and_can_be_repeated() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::Forward).await;
    assert_eq!(bench.scheduler.poll(&bench.me, &request, NO_WAIT).await.unwrap(), Poll::Pending);
    let work = bench.start().await;
    let scheduler = bench.scheduler.clone();
    let waiting = tokio::spawn({
        let (tenant, request) = (bench.me.clone(), request.clone());
        async move { scheduler.poll(&tenant, &request, LONG).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let start = Instant::now();
    bench.succeed(&work);
    let expected = Poll::Succeeded { encoding: Encoding::Json, payload: Bytes::from_static(b"result 1") };
    assert_eq!(waiting.await.unwrap().unwrap(), expected);
    assert!(start.elapsed() < Duration::from_secs(5));
    let bench = bench.restart(true).await;
    for _ in 0..2 {
        assert_eq!(bench.poll(&request).await, expected);
    }
    assert_eq!(bench.scheduler.core.waiters.awaited_requests().len(), 0);
}

/// The worker's thread continues while its results are encoded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_encoded_once_and_not_by_the_worker() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for seq_id in 1..=2 {
        bench.submit(&run, seq_id, RequestKind::Forward).await;
    }
    let work = bench.start().await;
    let (encoded, release) = std::sync::mpsc::sync_channel::<()>(0);
    let release = std::sync::Mutex::new(release);
    let scheduler = bench.scheduler.clone();
    let request = work.request.clone();
    let encode = move || {
        release.lock().unwrap().recv().unwrap();
        result(1)
    };
    tokio::task::spawn_blocking(move || scheduler.complete_encoded_by(request, Measured::default(), Box::new(encode))).await.unwrap();
    let next = bench.start().await;
    assert_eq!(next.seq_id, 2, "the run's next request is ready while the result waits");
    tokio::task::spawn_blocking(move || encoded.send(()).unwrap()).await.unwrap();
    let expected = Poll::Succeeded { encoding: Encoding::Json, payload: Bytes::from_static(b"result 1") };
    assert_eq!(bench.poll(&work.request).await, expected);
    let bench = bench.restart(true).await;
    assert_eq!(bench.poll(&work.request).await, expected);
}

#[tokio::test]
async fn an_unknown_request_is_not_found() {
    let bench = bench().await;
    assert!(is_not_found(bench.scheduler.poll(&bench.me, &RequestId::new("x"), LONG).await));
    assert_eq!(bench.scheduler.core.waiters.awaited_requests().len(), 0);
}

#[tokio::test]
async fn results_are_dropped_after_the_retention_and_rows_with_their_session() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::Forward).await;
    bench.succeed(&bench.start().await);
    bench.poll(&request).await;
    let (day, tenant) = (Duration::from_secs(24 * 3600), bench.me.clone());
    bench.pass(day - Duration::from_secs(1));
    bench.scheduler.heartbeat(&tenant, &bench.session).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    bench.poll(&request).await;
    bench.pass(Duration::from_secs(2));
    bench.scheduler.maintain().await.unwrap();
    let gone = bench.scheduler.poll(&tenant, &request, NO_WAIT).await;
    assert!(matches!(gone, Err(Error::Gone { .. })), "{gone:?}");
    let retried = bench.submit(&run, 1, RequestKind::Forward).await;
    assert_eq!(retried, request, "its identity outlives its result");
    bench.pass(day);
    bench.scheduler.maintain().await.unwrap();
    bench.pass(day * 2 + Duration::from_secs(1));
    bench.scheduler.maintain().await.unwrap();
    assert!(is_not_found(bench.scheduler.poll(&tenant, &request, NO_WAIT).await));
    assert!(is_not_found(bench.scheduler.run(&tenant, &run).await));
}

#[tokio::test]
async fn large_payloads_and_results_live_in_files_while_needed() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let large = Bytes::from(vec![7; 300 * 1024]);
    for (seq_id, kind) in [(1, RequestKind::Forward), (2, RequestKind::ForwardBackward)] {
        let submission = RunSubmission { payload: large.clone(), ..submission(&run, seq_id, kind) };
        bench.scheduler.submit_run(&bench.me, submission.clone()).await.unwrap();
        bench.scheduler.submit_run(&bench.me, submission).await.unwrap();
    }
    assert_eq!(bench.blobs().len(), 2, "a retry leaves no file");
    let bench = bench.restart(true).await;
    bench.succeed(&bench.start().await); // the creation, replayed
    let outcome = Outcome::Succeeded { encoding: Encoding::Protobuf, payload: large.clone() };
    let work = bench.start().await;
    assert_eq!(work.payload, large);
    bench.scheduler.complete(work.request.clone(), outcome, Vec::new());
    let work_2 = bench.start().await;
    assert_eq!(work_2.payload, large);
    bench.succeed(&work_2);
    bench.poll(&work_2.request).await;
    let bench = bench.restart(false).await;
    for file in bench.blobs() {
        age(&bench.dir.path().join("blobs").join(file));
    }
    bench.collect_garbage().await;
    let mut kept = vec![format!("{}.result-2", work.request), format!("{}.payload", work_2.request)];
    kept.sort();
    let mut found = bench.blobs();
    found.sort();
    assert_eq!(found, kept, "the payload of a forward is not needed again, that of a forward_backward is");
    assert_eq!(bench.poll(&work.request).await, Poll::Succeeded { encoding: Encoding::Protobuf, payload: large });
}

#[tokio::test]
async fn a_result_that_can_not_be_written_is_kept_until_it_can() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let first = bench.submit(&run, 1, RequestKind::Forward).await;
    let second = bench.submit(&run, 2, RequestKind::Forward).await;
    let (blobs, away) = (bench.dir.path().join("blobs"), bench.dir.path().join("away"));
    std::fs::rename(&blobs, &away).unwrap();
    let large = Bytes::from(vec![7; 300 * 1024]);
    let refused = RunSubmission { payload: large.clone(), ..submission(&run, 3, RequestKind::Forward) };
    assert!(matches!(bench.scheduler.submit_run(&bench.me, refused.clone()).await, Err(Error::Store(_))));
    let outcome = Outcome::Succeeded { encoding: Encoding::Protobuf, payload: large.clone() };
    bench.scheduler.complete(bench.start().await.request, outcome, Vec::new());
    bench.succeed(&bench.start().await);
    let pending = bench.scheduler.poll(&bench.me, &second, Duration::from_millis(100)).await.unwrap();
    assert_eq!(pending, Poll::Pending, "it must not become durable before the first");
    std::fs::rename(&away, &blobs).unwrap();
    assert_eq!(bench.poll(&first).await, Poll::Succeeded { encoding: Encoding::Protobuf, payload: large });
    assert!(matches!(bench.poll(&second).await, Poll::Succeeded { .. }));
    bench.scheduler.submit_run(&bench.me, refused).await.unwrap();
    assert_eq!(bench.start().await.seq_id, 3);
}

#[tokio::test]
async fn a_request_without_a_worker_for_its_model_is_distinguished() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let queued = bench.submit(&run, 2, RequestKind::Forward).await;
    assert_eq!(bench.scheduler.worker_wait(&bench.me, &queued).await.unwrap(), None);
    let mut conn = connect_as_system(&bench.database.database).await.unwrap();
    sql("DELETE FROM workers").execute(&mut conn).await.unwrap();
    assert_eq!(bench.scheduler.worker_wait(&bench.me, &queued).await.unwrap(), Some(WorkerWait::NotServed { model: "base".to_owned() }));
    assert_eq!(bench.scheduler.worker_wait(&TenantId::new("other"), &queued).await.unwrap(), None);
}
