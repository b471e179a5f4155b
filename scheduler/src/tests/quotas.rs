//! Quotas at submission.

use std::num::NonZeroU64;

use trainyard_protocol::{CheckpointKind, TinkerPath};

use super::*;
use crate::{FinishReason, NewCheckpoint, Quota, Refusal};

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    match result {
        Err(Error::Quota(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn runs_beyond_the_quota_are_put_off_until_one_is_gone() {
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
    // A creation that failed is no run.
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
async fn runs_of_a_finished_session_do_not_count() {
    let bench = granted(TenantPolicy { max_runs: NonZeroU64::new(1), ..TenantPolicy::default() }).await;
    bench.ready_run(0).await;
    let session = bench.scheduler.create_session(&bench.me, new_session(None)).await.unwrap();
    refusal(bench.scheduler.submit_create(&bench.me, new_run(&session, 0)).await);
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.scheduler.submit_create(&bench.me, new_run(&session, 0)).await.unwrap();
}

#[tokio::test]
async fn samples_beyond_the_queued_tokens_are_put_off_and_training_is_not() {
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
async fn a_save_without_room_fails_in_its_future_and_takes_its_place() {
    let bench = granted(TenantPolicy { max_storage_bytes: NonZeroU64::new(100), ..TenantPolicy::default() }).await;
    let run = bench.ready_run(0).await;
    let save = |seq_id| RunSubmission {
        stores: Some(CheckpointKind::Training),
        ..submission(&run, seq_id, RequestKind::SaveWeights)
    };
    let submit = |seq_id| bench.scheduler.submit_run(&bench.me, save(seq_id));
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
    // What stores nothing goes on, and the order has no gap.
    bench.submit(&run, 3, RequestKind::ForwardBackward).await;
    assert_eq!(bench.start().await.seq_id, 3);
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
