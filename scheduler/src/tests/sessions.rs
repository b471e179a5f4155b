use trainyard_protocol::{SessionId, TenantId};

use super::*;
use crate::{FinishReason, Page, SessionStatus};

#[tokio::test]
async fn an_idempotency_key_returns_the_same_session() {
    let bench = bench().await;
    let first = bench.scheduler.create_session(&bench.me, new_session(Some("key"))).await.unwrap();
    let bench = bench.restart(false).await;
    assert_eq!(bench.scheduler.create_session(&bench.me, new_session(Some("key"))).await.unwrap(), first);
    let other = TenantId::new("other");
    assert_ne!(bench.scheduler.create_session(&other, new_session(Some("key"))).await.unwrap(), first);
    let page = Page { limit: 10, offset: 0 };
    let mine = bench.scheduler.list_sessions(&bench.me, None, page).await.unwrap();
    assert_eq!(mine.len(), 2);
    assert!(mine.contains(&first));
}

#[tokio::test]
async fn a_session_lists_what_it_holds() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let sampler = bench.sampling_session(1).await;
    let session = bench.scheduler.session(&bench.me, &bench.session).await.unwrap();
    assert_eq!(session.training_run_ids, vec![run]);
    assert_eq!(session.sampler_ids, vec![sampler]);
    assert_eq!(session.tags, vec!["a".to_owned()]);
    assert_eq!(session.user_metadata, serde_json::json!({"k": 1}));
    assert_eq!(session.display_name.as_deref(), Some("name"));
    assert_eq!(session.status, SessionStatus::Active);
}

#[tokio::test]
async fn another_tenant_sees_nothing() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::Forward).await;
    let sampler = bench.sampling_session(1).await;
    let (s, other) = (&bench.scheduler, TenantId::new("other"));
    assert!(is_not_found(s.session(&other, &bench.session).await));
    assert!(is_not_found(s.heartbeat(&other, &bench.session).await));
    assert!(is_not_found(s.finish_session(&other, &bench.session, FinishReason::Success, None).await));
    assert!(is_not_found(s.submit_create(&other, new_run(&bench.session, 5)).await));
    assert!(is_not_found(s.submit_run(&other, submission(&run, 1, RequestKind::Forward)).await));
    assert!(is_not_found(s.submit_sample(&other, sample(&sampler, 0)).await));
    assert!(is_not_found(s.create_sampling_session(&other, new_sampling(&bench.session, 7, None)).await));
    assert!(is_not_found(s.sampling_session(&other, &sampler).await));
    assert!(is_not_found(s.run(&other, &run).await));
    assert!(is_not_found(s.poll(&other, &request, NO_WAIT).await));
    assert!(is_not_found(s.cancel(&other, &request).await));
    assert!(is_not_found(s.completions(&other, &sampler, 0, 0, NO_WAIT).await));
    let unknown = s.session(&bench.me, &SessionId::new("unknown")).await;
    let foreign = s.session(&other, &bench.session).await;
    assert_eq!(unknown.unwrap_err().to_string(), "session unknown does not exist");
    assert_eq!(foreign.unwrap_err().to_string(), format!("session {} does not exist", bench.session));
}

#[tokio::test]
async fn a_finished_session_refuses_work_and_the_first_reason_wins() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let known = bench.submit(&run, 1, RequestKind::Forward).await;
    let s = &bench.scheduler;
    let detail = Some("oops".to_owned());
    s.finish_session(&bench.me, &bench.session, FinishReason::Errored, detail.clone()).await.unwrap();
    s.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    let status = s.session(&bench.me, &bench.session).await.unwrap().status;
    assert_eq!(status, SessionStatus::Finished { reason: FinishReason::Errored, detail });
    assert!(matches!(s.heartbeat(&bench.me, &bench.session).await, Err(Error::Gone { .. })));
    let refused = s.submit_run(&bench.me, submission(&run, 2, RequestKind::Forward)).await;
    assert!(matches!(refused, Err(Error::SessionFinished { .. })));
    let retried = s.submit_run(&bench.me, submission(&run, 1, RequestKind::Forward)).await.unwrap();
    assert_eq!(retried.request_id, known, "a retry of an accepted request is not a new submission");
    assert_eq!(bench.poll(&known).await, Poll::Cancelled);
    assert_eq!(bench.items().await, vec![WorkItem::UnloadRun(run)]);
}

#[tokio::test]
async fn the_end_of_a_session_ends_the_request_of_a_run_that_executes() {
    for (kind, reason, is_ended) in [
        (RequestKind::ForwardBackward, FinishReason::Errored, true),
        (RequestKind::Forward, FinishReason::Interrupted, true),
        (RequestKind::OptimStep, FinishReason::Errored, true),
        (RequestKind::LoadWeights, FinishReason::Errored, true),
        (RequestKind::SaveWeights, FinishReason::Interrupted, true),
        (RequestKind::SaveWeights, FinishReason::Success, false),
        (RequestKind::ForwardBackward, FinishReason::Success, false),
    ] {
        let bench = bench().await;
        let run = bench.ready_run(0).await;
        let request = bench.submit(&run, 1, kind).await;
        assert_eq!(bench.start().await.request, request);
        let s = &bench.scheduler;
        s.finish_session(&bench.me, &bench.session, reason, None).await.unwrap();
        assert_eq!(s.is_abandoned(&request), is_ended, "{kind:?}");
        let expected = if is_ended { vec![WorkItem::Abandon(request.clone())] } else { Vec::new() };
        assert_eq!(s.take_work(), expected, "{kind:?}");
        assert!(!s.is_abandoned(&request), "the worker knows");
        s.complete(request.clone(), Outcome::Failed(OpError::user("its session ended")), Vec::new());
        assert!(matches!(bench.poll(&request).await, Poll::Failed(_)));
        assert_eq!(bench.items().await, vec![WorkItem::UnloadRun(run)]);
    }
}

#[tokio::test]
async fn a_success_lets_accepted_work_finish() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let first = bench.submit(&run, 1, RequestKind::OptimStep).await;
    let second = bench.submit(&run, 2, RequestKind::SaveWeights).await;
    let orphan = bench.submit(&run, 4, RequestKind::Forward).await;
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    let Poll::Failed(error) = bench.poll(&orphan).await else { panic!("the gap can't close") };
    assert!(error.message.contains("before request 3"), "{error}");
    let bench = bench.restart(true).await;
    let replayed = bench.start().await;
    assert!(replayed.replay);
    bench.succeed(&replayed);
    for request in [first, second] {
        let work = bench.start().await;
        assert_eq!(work.request, request);
        bench.succeed(&work);
        assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    }
    assert_eq!(bench.items().await, vec![WorkItem::UnloadRun(run)]);
}

#[tokio::test]
async fn a_session_without_heartbeats_expires() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let running = bench.submit(&run, 1, RequestKind::OptimStep).await;
    let queued = bench.submit(&run, 2, RequestKind::OptimStep).await;
    let work = bench.start().await;
    bench.pass(Duration::from_secs(200));
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.pass(Duration::from_secs(200));
    assert!(bench.scheduler.maintain().await.unwrap().sessions.is_empty());
    bench.pass(Duration::from_secs(101));
    assert_eq!(bench.scheduler.maintain().await.unwrap().sessions, vec![bench.session.clone()]);
    assert_eq!(bench.poll(&queued).await, Poll::Cancelled);
    bench.nothing_ready();
    bench.succeed(&work);
    assert!(matches!(bench.poll(&running).await, Poll::Succeeded { .. }), "what runs may finish");
    bench.saved_and_released(&run).await;
}

#[tokio::test]
async fn an_expired_session_is_revived_by_a_heartbeat() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for sign in 0..3 {
        bench.pass(Duration::from_secs(301));
        assert_eq!(bench.scheduler.maintain().await.unwrap().sessions, vec![bench.session.clone()]);
        bench.saved_and_released(&run).await;
        match sign {
            0 => drop(bench.submit(&run, 1, RequestKind::OptimStep).await),
            1 => {
                bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
                bench.submit(&run, 2, RequestKind::OptimStep).await;
            }
            _ => {
                bench.sampling_session(5).await;
                bench.submit(&run, 3, RequestKind::OptimStep).await;
            }
        }
        let restored = bench.start().await;
        assert_eq!((restored.kind, restored.seq_id), (RequestKind::RestoreRun, sign));
        bench.succeed(&restored);
        let work = bench.start().await;
        assert_eq!((work.replay, work.seq_id), (false, sign + 1));
        bench.succeed(&work);
        bench.poll(&work.request).await;
    }
    bench.pass(Duration::from_secs(301));
    bench.scheduler.maintain().await.unwrap();
    bench.pass(Duration::from_secs(24 * 3600));
    assert!(matches!(bench.scheduler.heartbeat(&bench.me, &bench.session).await, Err(Error::Gone { .. })));
    let late = bench.scheduler.submit_run(&bench.me, submission(&run, 4, RequestKind::OptimStep)).await;
    assert!(matches!(late, Err(Error::SessionFinished { .. })), "{late:?}");
}

#[tokio::test]
async fn a_restart_extends_heartbeats() {
    let bench = bench().await;
    bench.pass(Duration::from_secs(1000));
    let bench = bench.restart(true).await;
    bench.pass(Duration::from_secs(200));
    assert!(bench.scheduler.maintain().await.unwrap().sessions.is_empty());
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
}

#[tokio::test]
async fn what_an_expired_session_needs_stays_while_it_may_come_back() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let folder = bench.dir.path().join("snapshots/a/b");
    std::fs::create_dir_all(&folder).unwrap();
    bench.pass(Duration::from_secs(301));
    bench.scheduler.maintain().await.unwrap();
    bench.saved_and_released(&run).await;
    age(&folder);
    bench.pass(Duration::from_secs(23 * 3600));
    bench.scheduler.maintain().await.unwrap();
    assert!(folder.exists());
    bench.submit(&run, 1, RequestKind::OptimStep).await;
    let restored = bench.start().await;
    assert_eq!(restored.kind, RequestKind::RestoreRun);
    bench.succeed(&restored);
    let work = bench.start().await;
    bench.succeed(&work);
    bench.poll(&work.request).await;
    bench.pass(Duration::from_secs(301));
    bench.scheduler.maintain().await.unwrap();
    bench.pass(Duration::from_secs(24 * 3600 + 1));
    bench.scheduler.maintain().await.unwrap();
    assert!(!folder.exists());
}
