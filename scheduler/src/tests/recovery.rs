use super::*;
use crate::{FinishReason, NewCheckpoint, RunState};

/// Takes, checks and completes the replayed operations.
async fn replay(bench: &Bench, seq_ids: &[i64]) {
    for seq_id in seq_ids {
        let work = bench.start().await;
        assert!(work.replay, "{work:?}");
        assert_eq!(work.seq_id, *seq_id);
        bench.succeed(&work);
    }
}

#[tokio::test]
async fn a_run_is_replayed_before_its_first_new_request() {
    use RequestKind::*;
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let kinds = [ForwardBackward, Forward, ForwardBackward, OptimStep, SaveWeights, SaveWeightsForSampler, OptimStep];
    let mut requests = Vec::new();
    for (seq_id, kind) in (1..).zip(kinds) {
        requests.push(bench.submit(&run, seq_id, kind).await);
        let work = bench.start().await;
        match (seq_id, kind) {
            (3, _) => bench.fail(&work, "NaN"),
            (_, SaveWeights) => {
                let checkpoint = NewCheckpoint {
                    overwrite: true,
                    path: format!("tinker://{run}/weights/a").parse().unwrap(),
                    dir: "/a".into(),
                    size_bytes: 1,
                    spec: spec(),
                    expires_in: None,
                    user_metadata: BTreeMap::new(),
                };
                bench.succeed_with(&work, vec![Effect::Checkpoint(checkpoint)]);
            }
            (_, SaveWeightsForSampler) => {
                let new = new_sampling(&bench.session, 0, Some("key"));
                bench.succeed_with(&work, vec![Effect::SamplingSession(new)]);
            }
            _ => bench.succeed(&work),
        }
        bench.poll(&requests[requests.len() - 1]).await;
    }
    let (queued, gap) = (bench.submit(&run, 8, OptimStep).await, bench.submit(&run, 10, OptimStep).await);
    let started = bench.start().await;
    assert_eq!(started.request, queued);
    let bench = bench.restart(true).await;
    replay(&bench, &[0, 1, 4, 6, 7]).await;
    let again = bench.start().await;
    assert_eq!((again.request.clone(), again.replay, again.payload.clone()), (queued, false, started.payload));
    bench.succeed(&again);
    bench.nothing_ready();
    bench.submit(&run, 9, ForwardBackward).await;
    bench.succeed(&bench.start().await);
    let last = bench.start().await;
    assert_eq!(last.request, gap);
    bench.succeed(&last);
    assert!(matches!(bench.poll(&gap).await, Poll::Succeeded { .. }));
    let stored = Poll::Succeeded { encoding: Encoding::Json, payload: Bytes::from_static(b"result 1") };
    assert_eq!(bench.poll(&requests[0]).await, stored, "a replay does not change the stored result");
    assert_eq!(bench.poll(&requests[2]).await, Poll::Failed(OpError::user("NaN")));
}

#[tokio::test]
async fn a_run_without_new_work_is_not_replayed() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let bench = bench.restart(true).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.nothing_ready();
    bench.submit(&run, 1, RequestKind::Forward).await;
    replay(&bench, &[0]).await;
    assert_eq!(bench.start().await.seq_id, 1);
}

#[tokio::test]
async fn a_sample_restores_the_snapshot_that_it_needs() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    let new = new_sampling(&bench.session, 0, Some("key"));
    let sampler = SamplingSessionId::of_session(&bench.session, 0);
    bench.succeed_with(&bench.start().await, vec![Effect::SamplingSession(new)]);
    bench.submit(&run, 2, RequestKind::OptimStep).await;
    bench.succeed(&bench.start().await);
    let base = bench.sampling_session(1).await;
    let bench = bench.restart(false).await;
    let request = bench.submit_sample(&sampler, 0).await.request_id;
    let other = bench.submit_sample(&base, 0).await.request_id;
    let mut items = bench.items().await;
    while items.len() < 2 {
        items.extend(bench.items().await);
    }
    let works: Vec<&Work> = items
        .iter()
        .map(|item| match item {
            WorkItem::Start(work) => work,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        works.iter().any(|work| work.sampling_session.as_ref().is_some_and(|s| s.id == base)),
        "it waits for nothing"
    );
    let create = works.iter().find(|work| work.replay).unwrap_or_else(|| panic!("{items:?}"));
    assert_eq!(create.seq_id, 0);
    bench.succeed(create);
    replay(&bench, &[1]).await;
    let mut sample = None;
    while sample.is_none() {
        sample = bench.items().await.into_iter().find_map(|item| match item {
            WorkItem::Start(work) if !work.replay => Some(work),
            _ => None,
        });
    }
    let sample = sample.as_ref();
    assert_eq!(sample.unwrap().request, request);
    assert_eq!(sample.unwrap().sampling_session.as_ref().unwrap().snapshot.as_deref(), Some("key"));
    bench.succeed(sample.unwrap());
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Interrupted, None).await.unwrap();
    assert_eq!(bench.poll(&other).await, Poll::Cancelled);
}

#[tokio::test]
async fn the_end_of_a_session_drops_its_snapshots() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    let new = new_sampling(&bench.session, 0, Some("key"));
    bench.succeed_with(&bench.start().await, vec![Effect::SamplingSession(new)]);
    bench.poll(&request).await;
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    assert_eq!(bench.scheduler.take_work(), vec![WorkItem::UnloadRun(run), WorkItem::DropSnapshot("key".into())]);
}

#[tokio::test]
async fn a_replay_that_is_interrupted_keeps_its_progress() {
    use RequestKind::*;
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for (seq_id, kind) in (1..).zip([ForwardBackward, Forward, OptimStep, ForwardBackward]) {
        let request = bench.submit(&run, seq_id, kind).await;
        bench.succeed(&bench.start().await);
        bench.poll(&request).await;
    }
    let last = bench.submit(&run, 5, OptimStep).await;
    let bench = bench.restart(true).await;
    replay(&bench, &[0, 1]).await;
    let slow = bench.start().await;
    assert_eq!((slow.seq_id, slow.replay), (3, true));
    bench.pass(Duration::from_secs(1));
    bench.succeed(&slow);
    // The save contains everything before the next replayed operation.
    let save = bench.start().await;
    assert_eq!((save.kind, save.seq_id, save.replay), (SaveRun, 3, false));
    bench.pass(Duration::from_millis(300));
    bench.succeed_with(&save, vec![Effect::RunSaved("snapshots/a/b".into())]);
    // A second is less than five times the duration of that save, so there is no other save.
    let next = bench.start().await;
    assert_eq!((next.seq_id, next.replay), (4, true));
    bench.pass(Duration::from_secs(1));
    bench.succeed(&next);
    let first = bench.start().await;
    assert_eq!((first.request.clone(), first.replay), (last.clone(), false));
    // Once this is accepted, earlier records are committed.
    bench.submit(&run, 6, Forward).await;
    let bench = bench.restart(true).await;
    let restore = bench.start().await;
    assert_eq!((restore.kind, restore.seq_id, restore.replay), (RestoreRun, 3, true));
    bench.succeed(&restore);
    replay(&bench, &[4]).await;
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&last).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn a_run_that_can_not_be_restored_is_corrupted() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::OptimStep).await;
    let bench = bench.restart(true).await;
    bench.fail(&bench.start().await, "out of memory");
    let Poll::Failed(error) = bench.poll(&request).await else { panic!("must fail") };
    assert!(error.message.contains("could not be restored") && error.message.contains("out of memory"), "{error}");
    let found = bench.scheduler.run(&bench.me, &run).await.unwrap();
    assert_eq!((found.state, found.corrupted), (RunState::Failed, true));
    let later = bench.submit(&run, 2, RequestKind::OptimStep).await;
    assert_eq!(bench.poll(&later).await, Poll::Failed(error));
}

#[tokio::test]
async fn an_effect_that_contradicts_the_store_fails_its_request() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    bench.sampling_session(0).await;
    let request = bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    let new = new_sampling(&bench.session, 0, Some("key"));
    bench.succeed_with(&bench.start().await, vec![Effect::SamplingSession(new)]);
    let Poll::Failed(error) = bench.poll(&request).await else { panic!("must fail") };
    assert!(error.message.contains("other content"), "{error}");
}

/// Returns the work that is ready, at once or once its isolated start is recorded; none of it is completed.
async fn started(bench: &Bench) -> Vec<RequestId> {
    let items = bench.items().await;
    let request = |item: &WorkItem| match item {
        WorkItem::Start(work) if !work.replay => Some(work.request.clone()),
        _ => None,
    };
    items.iter().filter_map(request).collect()
}

#[tokio::test]
async fn a_poison_request_fails_in_the_end_and_no_other_does() {
    let mut bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let (run, creation) = bench.create(0).await;
    let samples = [bench.submit_sample(&sampler, 0).await.request_id, bench.submit_sample(&sampler, 1).await.request_id];
    // Three workers crash while they have all of them.
    for _ in 0..3 {
        let mut all = Vec::new();
        while all.len() < 3 {
            all.extend(started(&bench).await);
        }
        bench = bench.restart_out_of_memory().await;
    }
    // From now on each is executed in isolation. The first sample crashes every worker, the others none.
    let (mut alone, mut done) = (0, Vec::new());
    while done.len() < 2 || alone < 3 {
        let request = match started(&bench).await.as_slice() {
            [request] => request.clone(),
            several => panic!("not isolated: {several:?}"),
        };
        bench.nothing_ready();
        if request == samples[0] {
            alone += 1;
            bench = bench.restart_out_of_memory().await;
        } else {
            bench.scheduler.complete(request.clone(), result(0), Vec::new());
            assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
            done.push(request);
        }
    }
    assert!(done.contains(&creation) && done.contains(&samples[1]));
    assert_eq!(started(&bench).await, []);
    match bench.poll(&samples[0]).await {
        Poll::Failed(error) => assert!(error.message.contains("will not be retried"), "{error}"),
        other => panic!("{other:?}"),
    }
    // Nothing is held back from now on.
    let next = bench.submit(&run, 1, RequestKind::Forward).await;
    bench.succeed(&bench.start().await);
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&next).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn a_poison_training_request_leaves_its_run_usable() {
    let mut bench = bench().await;
    let run = bench.ready_run(0).await;
    let bad = bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    let next = bench.submit(&run, 2, RequestKind::Forward).await;
    for round in 0..6 {
        if round > 0 {
            replay(&bench, &[0]).await;
        }
        assert_eq!(started(&bench).await.first(), Some(&bad));
        bench = bench.restart_out_of_memory().await;
    }
    replay(&bench, &[0]).await;
    // The request behind it was never quarantined.
    assert_eq!(started(&bench).await, [next]);
    assert!(matches!(bench.poll(&bad).await, Poll::Failed(_)));
}

#[tokio::test]
async fn other_requests_have_the_worker_for_as_long_as_an_isolated_execution_took() {
    let mut bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let mut quarantined = Vec::new();
    for seq_id in 0..2 {
        quarantined.push(bench.submit_sample(&sampler, seq_id).await.request_id);
    }
    for _ in 0..3 {
        while started(&bench).await.is_empty() {}
        bench = bench.restart_out_of_memory().await;
    }
    let one = started(&bench).await;
    assert!(one.len() == 1 && quarantined.contains(&one[0]));
    let fresh = bench.submit_sample(&sampler, 2).await.request_id;
    bench.nothing_ready();
    bench.pass(Duration::from_secs(60));
    bench.scheduler.complete(one[0].clone(), result(0), Vec::new());
    assert_eq!(started(&bench).await.first(), Some(&fresh), "the other quarantined request is not due");
    bench.pass(Duration::from_secs(60));
    bench.nothing_ready();
    bench.scheduler.complete(fresh, result(2), Vec::new());
    let other = started(&bench).await;
    assert!(other.len() == 1 && quarantined.contains(&other[0]) && other != one);
}

#[tokio::test]
async fn kills_from_outside_make_no_request_fail() {
    let mut bench = bench().await;
    let run = bench.ready_run(0).await;
    let request = bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    let other = bench.sampling_session(0).await;
    for round in 0..10 {
        if round > 0 {
            replay(&bench, &[0]).await;
        }
        assert_eq!(started(&bench).await.first(), Some(&request));
        // The request is not isolated: others start beside it.
        let sample = bench.submit_sample(&other, round).await.request_id;
        while !started(&bench).await.contains(&sample) {}
        bench.scheduler.complete(sample.clone(), result(0), Vec::new());
        bench.poll(&sample).await;
        bench = bench.restart(true).await;
    }
    replay(&bench, &[0]).await;
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn a_request_that_crashes_every_worker_fails_without_evidence_too() {
    let mut bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let bad = bench.submit_sample(&sampler, 0).await.request_id;
    for _ in 0..24 {
        assert_eq!(started(&bench).await, std::slice::from_ref(&bad));
        bench = bench.restart(true).await;
    }
    assert_eq!(started(&bench).await, []);
    assert!(matches!(bench.poll(&bad).await, Poll::Failed(_)));
}

#[tokio::test]
async fn an_orderly_restart_counts_as_no_crash() {
    let mut bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let samples = [bench.submit_sample(&sampler, 0).await.request_id, bench.submit_sample(&sampler, 1).await.request_id];
    for _ in 0..8 {
        let mut all = started(&bench).await;
        while all.len() < 2 {
            all.extend(started(&bench).await);
        }
        assert!(samples.iter().all(|sample| all.contains(sample)));
        bench = bench.restart_granted(Policies::default()).await;
    }
}
