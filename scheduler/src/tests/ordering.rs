use trainyard_protocol::PreparedContent;

use super::*;
use crate::RunState;

#[tokio::test]
async fn requests_of_a_run_execute_by_seq_id_whatever_the_arrival() {
    let bench = bench().await;
    let (run, created) = bench.create(0).await;
    for seq_id in [2, 3, 1] {
        bench.submit(&run, seq_id, RequestKind::ForwardBackward).await;
    }
    for seq_id in 0..=3 {
        let work = bench.start().await;
        assert_eq!(work.seq_id, seq_id);
        assert!(!work.replay);
        bench.nothing_ready();
        bench.succeed(&work);
    }
    assert!(matches!(bench.poll(&created).await, Poll::Succeeded { .. }));
    assert_eq!(bench.scheduler.run(&bench.me, &run).await.unwrap().state, RunState::Ready);
}

#[tokio::test]
async fn the_next_request_is_ready_without_waiting_for_the_commit() {
    let bench = bench().await;
    let (run, _) = bench.create(0).await;
    let creation = bench.start().await;
    // The worker has the run's lease now, so later requests enter its queue when they are accepted.
    bench.submit(&run, 1, RequestKind::OptimStep).await;
    bench.succeed(&creation);
    assert!(matches!(&bench.scheduler.take_work()[..], [WorkItem::Start(work)] if work.seq_id == 1));
}

#[tokio::test]
async fn a_retry_is_the_same_request_and_other_content_a_mismatch() {
    let bench = bench().await;
    let (run, created) = bench.create(0).await;
    let request = bench.submit(&run, 1, RequestKind::Forward).await;
    let bench = bench.restart(true).await;
    assert_eq!(bench.create(0).await.1, created);
    assert_eq!(bench.submit(&run, 1, RequestKind::Forward).await, request);
    let other_kind = bench.scheduler.submit_run(&bench.me, submission(&run, 1, RequestKind::OptimStep)).await;
    assert!(matches!(other_kind, Err(Error::Mismatch(_))));
    let other_bytes = RunSubmission { identity: Bytes::from_static(b"x"), ..submission(&run, 1, RequestKind::Forward) };
    assert!(matches!(bench.scheduler.submit_run(&bench.me, other_bytes).await, Err(Error::Mismatch(_))));
    let other_payload =
        RunSubmission { payload: Bytes::from_static(b"x"), ..submission(&run, 1, RequestKind::Forward) };
    assert_eq!(bench.scheduler.submit_run(&bench.me, other_payload).await.unwrap().request_id, request);
    assert_eq!(bench.start().await.payload, Bytes::from_static(b"create"));
}

#[tokio::test]
async fn a_failed_creation_fails_what_follows() {
    let bench = bench().await;
    let (run, created) = bench.create(0).await;
    let waiting = bench.submit(&run, 1, RequestKind::Forward).await;
    bench.fail(&bench.start().await, "no such model");
    assert_eq!(bench.poll(&created).await, Poll::Failed(OpError::user("no such model")));
    let later = bench.submit(&run, 2, RequestKind::Forward).await;
    let bench = bench.restart(false).await;
    let latest = bench.submit(&run, 3, RequestKind::Forward).await;
    for request in [waiting, later, latest] {
        let Poll::Failed(error) = bench.poll(&request).await else { panic!("must fail") };
        assert_eq!(error, OpError::user(format!("training run {run} could not be created: no such model")));
    }
    assert_eq!(bench.scheduler.run(&bench.me, &run).await.unwrap().state, RunState::Failed);
    bench.nothing_ready();
}

#[tokio::test]
async fn a_rejected_creation_fails_at_once() {
    let bench = bench().await;
    let rejected = NewRun { rejected: Some(OpError::user("bad rank")), ..new_run(&bench.session, 0) };
    let (run, submitted) = bench.scheduler.submit_create(&bench.me, rejected).await.unwrap();
    assert_eq!(bench.poll(&submitted.request_id).await, Poll::Failed(OpError::user("bad rank")));
    let next = bench.submit(&run, 1, RequestKind::Forward).await;
    let Poll::Failed(error) = bench.poll(&next).await else { panic!("must fail") };
    assert!(error.message.contains("bad rank"));
    bench.nothing_ready();
}

#[tokio::test]
async fn a_rejected_request_consumes_its_place() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let last = bench.submit(&run, 3, RequestKind::Forward).await;
    let error = OpError::user("data must not be empty");
    let rejected = RunSubmission { rejected: Some(error.clone()), ..submission(&run, 2, RequestKind::Forward) };
    let second = bench.scheduler.submit_run(&bench.me, rejected).await.unwrap().request_id;
    assert_eq!(bench.poll(&second).await, Poll::Failed(error));
    bench.nothing_ready();
    let bench = bench.restart(true).await;
    let first = bench.submit(&run, 1, RequestKind::Forward).await;
    bench.succeed(&bench.start().await); // the creation, replayed
    for request in [first, last] {
        let work = bench.start().await;
        assert_eq!(work.request, request);
        bench.succeed(&work);
    }
}

#[tokio::test]
async fn a_failed_request_does_not_stop_its_run() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let first = bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    let second = bench.submit(&run, 2, RequestKind::OptimStep).await;
    bench.fail(&bench.start().await, "NaN");
    bench.succeed(&bench.start().await);
    assert_eq!(bench.poll(&first).await, Poll::Failed(OpError::user("NaN")));
    assert!(matches!(bench.poll(&second).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn runs_are_independent() {
    let bench = bench().await;
    let (one, _) = bench.create(0).await;
    let (two, _) = bench.create(1).await;
    let items = bench.scheduler.take_work();
    let runs: Vec<_> = items.iter().filter_map(|item| matches!(item, WorkItem::Start(_)).then_some(())).collect();
    assert_eq!(runs.len(), 2);
    assert_ne!(one, two);
    assert_eq!(bench.scheduler.stats().in_flight, 2);
}

#[tokio::test]
async fn seq_ids_and_kinds_out_of_place_are_refused() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for (seq_id, kind) in [(0, RequestKind::Forward), (1, RequestKind::CreateModel), (1, RequestKind::Sample)] {
        let refused = bench.scheduler.submit_run(&bench.me, submission(&run, seq_id, kind)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{seq_id} {kind:?}");
    }
    let odd = NewRun { kind: RequestKind::Forward, ..new_run(&bench.session, 3) };
    assert!(matches!(bench.scheduler.submit_create(&bench.me, odd).await, Err(Error::Invalid(_))));
}

/// Content decoded at the submission reaches the worker; a retry adds nothing, and a restart loses it.
#[tokio::test]
async fn what_was_read_at_the_submission_reaches_the_worker() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let content = |text: &str| PreparedContent::Batch(Err(OpError::user(text)));
    for decoded in ["7", "8"] {
        let submission =
            RunSubmission { decoded: Decoded::new(content(decoded)), ..submission(&run, 1, RequestKind::ForwardBackward) };
        bench.scheduler.submit_run(&bench.me, submission).await.unwrap();
    }
    let work = bench.start().await;
    assert_eq!((work.decoded.take(), &work.payload[..]), (Some(content("7")), &b"payload 1"[..]));
    bench.succeed(&work);
    bench.poll(&work.request).await;
    bench.submit(&run, 2, RequestKind::Forward).await;
    let bench = bench.restart(true).await;
    bench.succeed(&bench.start().await); // the creation, replayed
    let replayed = bench.start().await;
    assert_eq!((replayed.decoded.take(), &replayed.payload[..]), (None, &b"payload 1"[..]));
}
