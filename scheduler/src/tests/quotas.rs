//! Tests of quotas at submission.

use std::num::NonZeroU64;

use trainyard_protocol::{CheckpointKind, TinkerPath};

use super::*;
use crate::{FinishReason, NewCheckpoint, Pause, Quota, Refusal};

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    match result {
        Err(Error::Quota(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn runs_beyond_the_quota_are_rejected_until_one_ends() {
    let bench = granted(TenantPolicy { max_runs: NonZeroU64::new(2), ..TenantPolicy::default() }).await;
    bench.create(0).await;
    let (_, second) = bench.create(1).await;
    let refused = refusal(bench.scheduler.submit_create(&bench.me, new_run(&bench.session, 2)).await);
    assert_eq!((refused.quota, refused.limit, refused.used), (Quota::Runs, 2, 2));
    assert!(refused.retry_after >= Duration::from_secs(1));
    // A repetition was accepted before.
    let again = bench.scheduler.submit_create(&bench.me, new_run(&bench.session, 1)).await.unwrap();
    assert_eq!(again.1.request_id, second);
    // Another tenant has runs of its own.
    let other = TenantId::new("other");
    let theirs = bench.scheduler.create_session(&other, new_session(None)).await.unwrap();
    bench.scheduler.submit_create(&other, new_run(&theirs, 0)).await.unwrap();
    // A failed creation does not count as a run.
    for item in bench.items().await {
        if let WorkItem::Start(work) = item
            && work.tenant == bench.me
        {
            bench.fail(&work, "no memory");
            bench.poll(&work.request).await;
        }
    }
    bench.create(2).await;
}

#[tokio::test]
async fn sessions_are_bounded_also_ended_ones() {
    let bench = granted(TenantPolicy { max_sessions: NonZeroU64::new(3).unwrap(), ..TenantPolicy::default() }).await;
    let create = |key| bench.scheduler.create_session(&bench.me, new_session(key));
    let second = create(Some("again")).await.unwrap();
    create(None).await.unwrap();
    let refused = refusal(create(None).await);
    assert_eq!((refused.quota, refused.limit, refused.used), (Quota::Sessions, 3, 3));
    assert!(refused.to_string().starts_with("quota max_sessions: 3 of 3 sessions are open or ended recently"), "{refused}");
    assert_eq!(create(Some("again")).await.unwrap(), second, "a repetition");
    // Another tenant has sessions of its own.
    bench.scheduler.create_session(&TenantId::new("other"), new_session(None)).await.unwrap();
    bench.scheduler.finish_session(&bench.me, &second, FinishReason::Success, None).await.unwrap();
    assert_eq!(refusal(create(None).await).used, 3, "it is kept for a while");
    bench.pass(Duration::from_secs(2 * 24 * 3600 + 30));
    bench.scheduler.maintain().await.unwrap();
    create(None).await.unwrap();
}

#[tokio::test]
async fn runs_of_a_finished_session_do_not_count() {
    let bench = granted(TenantPolicy { max_runs: NonZeroU64::new(1), ..TenantPolicy::default() }).await;
    bench.ready_run(0).await;
    let session = bench.scheduler.create_session(&bench.me, new_session(None)).await.unwrap();
    refusal(bench.scheduler.submit_create(&bench.me, new_run(&session, 0)).await);
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.scheduler.submit_create(&bench.me, new_run(&session, 0)).await.unwrap();
}

#[tokio::test]
async fn samples_beyond_the_queued_tokens_are_rejected_and_training_is_not() {
    let bench = granted(TenantPolicy { max_queued_tokens: NonZeroU64::new(25), ..TenantPolicy::default() }).await;
    let run = bench.ready_run(0).await;
    let sampler = bench.sampling_session(0).await;
    let submit = |seq_id| bench.scheduler.submit_sample(&bench.me, sample(&sampler, seq_id));
    let first = submit(0).await.unwrap().request_id;
    submit(1).await.unwrap();
    let refused = refusal(submit(2).await);
    assert_eq!((refused.quota, refused.limit, refused.used, refused.asked), (Quota::QueuedTokens, 25, 20, 10));
    assert_eq!(submit(0).await.unwrap().request_id, first, "a repetition");
    bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    assert_eq!(refusal(submit(2).await).used, 30);
    for item in bench.items().await {
        let WorkItem::Start(work) = item else { continue };
        bench.succeed(&work);
        bench.poll(&work.request).await;
    }
    submit(2).await.unwrap();
}

#[tokio::test]
async fn a_sample_larger_than_the_quota_is_taken_when_nothing_is_queued() {
    let bench = granted(TenantPolicy { max_queued_tokens: NonZeroU64::new(5), ..TenantPolicy::default() }).await;
    let sampler = bench.sampling_session(0).await;
    bench.submit_sample(&sampler, 0).await;
    refusal(bench.scheduler.submit_sample(&bench.me, sample(&sampler, 1)).await);
}

#[tokio::test]
async fn a_save_beyond_the_storage_quota_fails_in_its_future_and_takes_its_place() {
    let bench = granted(TenantPolicy { max_storage_bytes: NonZeroU64::new(100), ..TenantPolicy::default() }).await;
    let run = bench.ready_run(0).await;
    let submit = |seq_id| bench.scheduler.submit_run(&bench.me, save(&run, seq_id));
    submit(1).await.unwrap();
    let path: TinkerPath = format!("tinker://{run}/weights/one").parse().unwrap();
    let checkpoint = NewCheckpoint {
        overwrite: true,
        path,
        dir: bench.dir.path().join("one"),
        size_bytes: 60,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::new(),
    };
    let work = bench.start().await;
    bench.succeed_with(&work, vec![Effect::Checkpoint(checkpoint)]);
    bench.poll(&work.request).await;

    let second = submit(2).await.unwrap().request_id;
    let Poll::Failed(error) = bench.poll(&second).await else { panic!("60 and about 60 bytes are more than 100") };
    assert_eq!(error.category, trainyard_protocol::Category::User);
    assert!(error.message.contains("quota max_storage_bytes: 60 of 100 bytes are stored"), "{error}");
    assert_eq!(submit(2).await.unwrap().request_id, second, "a repetition");
    // Requests that store nothing continue, and the order has no gap.
    bench.submit(&run, 3, RequestKind::ForwardBackward).await;
    assert_eq!(bench.start().await.seq_id, 3);
}

/// A save of a run, under a name of its own.
fn save(run: &RunId, seq_id: i64) -> RunSubmission {
    RunSubmission { stores: Some(CheckpointKind::Training), ..submission(run, seq_id, RequestKind::SaveWeights) }
}

fn saved(run: &RunId, seq_id: i64, size_bytes: u64) -> Effect {
    Effect::Checkpoint(NewCheckpoint {
        overwrite: false,
        path: format!("tinker://{run}/weights/{seq_id}").parse().unwrap(),
        dir: format!("checkpoints/{seq_id}").into(),
        size_bytes,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::new(),
    })
}

#[tokio::test]
async fn saves_in_a_row_do_not_exceed_the_storage_quota_before_one_is_measured() {
    let limit = 1_000_000;
    let bench = granted(TenantPolicy { max_storage_bytes: NonZeroU64::new(limit), ..TenantPolicy::default() }).await;
    let run = bench.ready_run(0).await;
    let mut saves = Vec::new();
    for seq_id in 1..=20 {
        saves.push(bench.scheduler.submit_run(&bench.me, save(&run, seq_id)).await.unwrap().request_id);
    }
    let mut succeeded = 0;
    for (seq_id, request) in (1..).zip(&saves) {
        bench.succeed_with(&bench.start().await, vec![saved(&run, seq_id, 400_000)]);
        match bench.poll(request).await {
            Poll::Succeeded { .. } => succeeded += 1,
            Poll::Failed(error) => assert!(error.message.contains("800000 of 1000000 bytes are stored"), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(succeeded, 2);
    let conn = &mut bench.scheduler.core.system_reader().await.unwrap();
    assert_eq!(crate::store::quotas::stored_bytes(conn, &bench.me).await.unwrap(), 800_000);
}

#[tokio::test]
async fn a_save_reserves_its_bytes_until_it_ends() {
    let bench = granted(TenantPolicy { max_storage_bytes: NonZeroU64::new(100), ..TenantPolicy::default() }).await;
    let run = bench.ready_run(0).await;
    let submit = async |seq_id| bench.scheduler.submit_run(&bench.me, save(&run, seq_id)).await.unwrap().request_id;
    let first = submit(1).await;
    bench.succeed_with(&bench.start().await, vec![saved(&run, 1, 40)]);
    bench.poll(&first).await;
    let (second, third) = (submit(2).await, submit(3).await);
    let Poll::Failed(error) = bench.poll(&third).await else { panic!("80 bytes are stored or reserved") };
    assert!(error.message.contains("80 of 100 bytes are stored"), "{error}");
    bench.fail(&bench.start().await, "no");
    bench.poll(&second).await;
    // The second save's reservation is free again.
    let fourth = submit(4).await;
    bench.succeed_with(&bench.start().await, vec![saved(&run, 4, 40)]);
    assert!(matches!(bench.poll(&fourth).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn concurrent_submissions_do_not_exceed_a_quota() {
    let bench = granted(TenantPolicy {
        max_runs: NonZeroU64::new(3),
        max_queued_tokens: NonZeroU64::new(50),
        ..TenantPolicy::default()
    })
    .await;
    let sampler = bench.sampling_session(0).await;
    let mut tasks = Vec::new();
    for n in 0..40 {
        let (scheduler, me, session, sampler) =
            (bench.scheduler.clone(), bench.me.clone(), bench.session.clone(), sampler.clone());
        tasks.push(tokio::spawn(async move {
            if n % 2 == 0 {
                scheduler.submit_create(&me, new_run(&session, n)).await.map(drop)
            } else {
                scheduler.submit_sample(&me, sample(&sampler, n)).await.map(drop)
            }
        }));
    }
    let mut taken = [0, 0];
    for (n, task) in tasks.into_iter().enumerate() {
        match task.await.unwrap() {
            Ok(()) => taken[n % 2] += 1,
            Err(Error::Quota(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(taken, [3, 5]);
}

/// A tenant that may start 60 tokens per minute, which is 6 requests at once and one more every 10 seconds.
fn rate_limited() -> TenantPolicy {
    TenantPolicy { tokens_per_minute: NonZeroU64::new(60), ..TenantPolicy::default() }
}

#[tokio::test]
async fn training_beyond_the_rate_limit_waits_and_says_until_when() {
    let bench = granted(rate_limited()).await;
    let run = bench.ready_run(0).await;
    for seq_id in 1..=6 {
        bench.submit(&run, seq_id, RequestKind::ForwardBackward).await;
        bench.succeed(&bench.start().await);
    }
    let seventh = bench.submit(&run, 7, RequestKind::ForwardBackward).await;
    bench.nothing_ready();
    let now = bench.scheduler.core.now();
    let until = now.plus(Duration::from_secs(10));
    let pause = Pause { quota: Quota::TokensPerMinute, limit: 60, until };
    assert_eq!(bench.scheduler.pause(&bench.me, &seventh).await, Ok(Some(pause)));
    assert_eq!(bench.scheduler.pause(&TenantId::new("other"), &seventh).await, Ok(None));
    bench.pass(Duration::from_millis(9_999));
    bench.nothing_ready();
    bench.pass(Duration::from_millis(1));
    let work = bench.start().await;
    assert_eq!(work.request, seventh);
    // If processes share the store, the start of a request becomes visible there a moment later.
    while bench.scheduler.pause(&bench.me, &seventh).await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.succeed(&work);
    // Free requests never wait.
    let free = RunSubmission { tokens: 0, ..submission(&run, 8, RequestKind::OptimStep) };
    bench.scheduler.submit_run(&bench.me, free).await.unwrap();
    assert_eq!(bench.start().await.seq_id, 8);
}

#[tokio::test]
async fn a_waiting_worker_wakes_when_the_rate_limit_allows_more() {
    let policy = TenantPolicy { tokens_per_minute: NonZeroU64::new(6_000), ..TenantPolicy::default() };
    let bench = granted(policy).await;
    let sampler = bench.sampling_session(0).await;
    let large = SampleSubmission { tokens: 6_000, ..sample(&sampler, 0) };
    bench.scheduler.submit_sample(&bench.me, large).await.unwrap();
    bench.start().await;
    let second = bench.submit_sample(&sampler, 1).await.request_id;
    bench.nothing_ready();
    let items = bench.items();
    let pass = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        bench.pass(Duration::from_millis(100));
    };
    let (items, ()) = tokio::join!(items, pass);
    assert!(matches!(&items[..], [WorkItem::Start(work)] if work.request == second), "{items:?}");
}

#[tokio::test]
async fn a_rate_limit_holds_no_other_tenant_back_and_cancelled_samples_wait_no_longer() {
    let bench = granted(rate_limited()).await;
    let other = TenantId::new("other");
    let mine = bench.sampling_session(0).await;
    let session = bench.scheduler.create_session(&other, new_session(None)).await.unwrap();
    let theirs = bench.scheduler.create_sampling_session(&other, new_sampling(&session, 0, None)).await.unwrap();
    let huge = |sampler, seq_id| SampleSubmission { tokens: 1_000, ..sample(sampler, seq_id) };
    bench.scheduler.submit_sample(&bench.me, huge(&mine, 0)).await.unwrap();
    let first = bench.start().await;
    let waits = bench.scheduler.submit_sample(&bench.me, huge(&mine, 1)).await.unwrap().request_id;
    bench.scheduler.submit_sample(&other, huge(&theirs, 0)).await.unwrap();
    assert_eq!(bench.start().await.tenant, other);
    bench.scheduler.cancel(&bench.me, &waits).await.unwrap();
    assert_eq!(bench.scheduler.pause(&bench.me, &waits).await, Ok(None));
    assert_eq!(bench.poll(&waits).await, Poll::Cancelled);
    bench.succeed(&first);
    bench.pass(Duration::from_secs(3_600));
    bench.nothing_ready();
}

#[tokio::test]
async fn ends_and_refusals_are_counted() {
    let bench = granted(TenantPolicy { max_runs: NonZeroU64::new(1), ..TenantPolicy::default() }).await;
    let run = bench.ready_run(0).await;
    refusal(bench.scheduler.submit_create(&bench.me, new_run(&bench.session, 1)).await);
    bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    bench.pass(Duration::from_secs(3));
    let work = bench.start().await;
    bench.pass(Duration::from_secs(5));
    bench.succeed(&work);
    bench.poll(&work.request).await;
    bench.submit(&run, 3, RequestKind::OptimStep).await;
    bench.scheduler.observe().await.unwrap();
    let mut registry = prometheus_client::registry::Registry::default();
    bench.scheduler.metrics().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "request_wait_seconds_sum{kind=\"forward_backward\"} 3.0",
        "request_service_seconds_sum{kind=\"forward_backward\"} 5.0",
        "requests_total{kind=\"forward_backward\",outcome=\"succeeded\"} 1",
        "requests_total{kind=\"create_model\",outcome=\"succeeded\"} 1",
        "request_tokens_total{kind=\"forward_backward\"} 10",
        "quota_refusals_total{quota=\"max_runs\"} 1",
        "queued_requests{kind=\"optim_step\"} 1",
        "sessions 1",
        "runs 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn a_rate_limit_survives_a_restart() {
    let bench = granted(rate_limited()).await;
    let sampler = bench.sampling_session(0).await;
    let submit = async |seq_id| {
        let new = SampleSubmission { tokens: 60, ..sample(&sampler, seq_id) };
        bench.scheduler.submit_sample(&bench.me, new).await.unwrap();
    };
    submit(0).await;
    bench.start().await;
    // The note of its start is written with the next write.
    submit(1).await;
    let policies = bench.scheduler.core.options.policies.clone();
    let bench = bench.restart_granted(policies).await;
    // The first request is executed again; both wait for the tokens that it took before, in either order.
    let mut waited = 0;
    while bench.scheduler.take_work().is_empty() {
        bench.pass(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
        waited += 1;
        assert!(waited < 200);
    }
    assert!(waited >= 50, "{waited} s");
}

#[tokio::test]
async fn a_run_that_was_held_back_goes_on_when_its_session_comes_back() {
    let bench = granted(rate_limited()).await;
    let run = bench.ready_run(0).await;
    for seq_id in 1..=6 {
        bench.submit(&run, seq_id, RequestKind::ForwardBackward).await;
        bench.succeed(&bench.start().await);
    }
    let held_back = bench.submit(&run, 7, RequestKind::ForwardBackward).await;
    bench.nothing_ready();
    bench.pass(Duration::from_secs(301));
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(bench.poll(&held_back).await, Poll::Cancelled);
    bench.saved_and_released(&run).await;
    bench.submit(&run, 8, RequestKind::ForwardBackward).await;
    let restored = bench.start().await;
    assert_eq!(restored.kind, RequestKind::RestoreRun);
    bench.succeed(&restored);
    assert_eq!(bench.start().await.seq_id, 8);
}
