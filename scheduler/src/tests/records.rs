//! Tests of results of samples whose sequences training requests may name.

use futures::future::join_all;
use trainyard_protocol::RequestId;

use super::*;
use crate::RecordedResult;

const HOUR: Duration = Duration::from_secs(3600);

async fn sampled(bench: &Bench, seq_id: i64, recorded: bool) -> RequestId {
    let sampler = bench.sampling_session(0).await;
    let sample = SampleSubmission { recorded, ..sample(&sampler, seq_id) };
    let request = bench.scheduler.submit_sample(&bench.me, sample).await.unwrap().request_id;
    bench.succeed(&bench.start().await);
    bench.poll(&request).await;
    request
}

async fn recorded(bench: &Bench, request: &RequestId) -> Option<RecordedResult> {
    bench.scheduler.recorded_result(&bench.me, request).await.unwrap()
}

/// Advances the clock in a session that stays active.
async fn pass(bench: &Bench, duration: Duration) {
    bench.pass(duration);
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
}

#[tokio::test]
async fn a_record_is_kept_for_the_retention_after_its_last_use() {
    let bench = bench().await;
    let (used, unused) = (sampled(&bench, 0, true).await, sampled(&bench, 1, true).await);
    let payload = Bytes::from_static(b"result 0");
    assert_eq!(recorded(&bench, &used).await, Some(RecordedResult { payload: payload.clone(), renewal_due: false }));
    // A client that has the result still trains on it.
    bench.scheduler.acknowledge(&bench.me, &[used.clone(), unused.clone()]).await.unwrap();
    pass(&bench, 20 * HOUR).await;
    assert_eq!(recorded(&bench, &used).await, Some(RecordedResult { payload, renewal_due: true }));
    bench.scheduler.renew_records(&bench.me, vec![used.clone(), RequestId::new("x")]).await.unwrap();
    assert!(!recorded(&bench, &used).await.unwrap().renewal_due);
    pass(&bench, 20 * HOUR).await;
    assert!(recorded(&bench, &used).await.is_some());
    assert_eq!(recorded(&bench, &unused).await, None);
    let gone = bench.scheduler.poll(&bench.me, &unused, NO_WAIT).await;
    assert!(matches!(gone, Err(Error::Gone { .. })), "{gone:?}");
    pass(&bench, 20 * HOUR).await;
    assert_eq!(recorded(&bench, &used).await, None);
}

#[tokio::test]
async fn only_what_was_recorded_and_succeeded_is_read_and_by_its_tenant_alone() {
    let bench = bench().await;
    let (record, plain) = (sampled(&bench, 0, true).await, sampled(&bench, 1, false).await);
    assert_eq!(recorded(&bench, &plain).await, None);
    assert_eq!(recorded(&bench, &RequestId::new("x")).await, None);
    let other = TenantId::new("other");
    assert_eq!(bench.scheduler.recorded_result(&other, &record).await.unwrap(), None);
    pass(&bench, 20 * HOUR).await;
    bench.scheduler.renew_records(&other, vec![record.clone()]).await.unwrap();
    assert!(recorded(&bench, &record).await.unwrap().renewal_due, "another tenant's use does not count");

    let sampler = bench.sampling_session(0).await;
    let failing = SampleSubmission { recorded: true, ..sample(&sampler, 2) };
    let failed = bench.scheduler.submit_sample(&bench.me, failing).await.unwrap().request_id;
    let work = bench.start().await;
    assert_eq!(recorded(&bench, &failed).await, None, "it has no result yet");
    bench.fail(&work, "no");
    bench.poll(&failed).await;
    assert_eq!(recorded(&bench, &failed).await, None);
}

/// A sample that is accepted together with others, not individually.
#[tokio::test]
async fn joined_samples_are_recorded_too() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let submissions = (0..20).map(|seq_id| {
        let sample = SampleSubmission { recorded: seq_id % 2 == 0, ..sample(&sampler, seq_id) };
        bench.scheduler.submit_sample(&bench.me, sample)
    });
    let submitted: Vec<RequestId> =
        join_all(submissions).await.into_iter().map(|submitted| submitted.unwrap().request_id).collect();
    let mut left = submitted.len();
    while left > 0 {
        for item in bench.items().await {
            let WorkItem::Start(work) = item else { panic!("{item:?}") };
            bench.succeed(&work);
            left -= 1;
        }
    }
    for (seq_id, request) in submitted.iter().enumerate() {
        bench.poll(request).await;
        assert_eq!(recorded(&bench, request).await.is_some(), seq_id % 2 == 0, "{seq_id}");
    }
}
