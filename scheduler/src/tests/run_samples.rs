//! Tests of samples that a run asks to be stored: recorded with their results, bounded, counted, and deleted with the
//! run.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use trainyard_protocol::TinkerPath;

use super::*;
use crate::{
    FinishReason, Measured, NewCheckpoint, NewRunSample, RunSamples, STORE_SAMPLES, SampleStorage,
};

/// Creates a run that asks for its newest samples to be stored.
async fn storing_run(bench: &Bench, model_seq_id: i64, newest: &str) -> RunId {
    let user_metadata = BTreeMap::from([(STORE_SAMPLES.to_owned(), newest.to_owned())]);
    let new = NewRun { user_metadata, ..new_run(&bench.session, model_seq_id) };
    let (run, submitted) = bench.scheduler.submit_create(&bench.me, new).await.unwrap();
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&submitted.request_id).await, Poll::Succeeded { .. }));
    run
}

/// Saves a sampler checkpoint as the first request of a run.
async fn checkpoint(bench: &Bench, run: &RunId) -> TinkerPath {
    let path: TinkerPath = format!("tinker://{run}/sampler_weights/a").parse().unwrap();
    let new = NewCheckpoint {
        path: path.clone(),
        overwrite: false,
        dir: "checkpoints/a".into(),
        size_bytes: 10,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::new(),
    };
    let request = bench.submit(run, 1, RequestKind::SaveWeightsForSampler).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(new)]);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    path
}

/// Creates a sampling session of a checkpoint.
async fn sampler_of(bench: &Bench, tenant: &TenantId, path: &TinkerPath, seq_id: i64) -> SamplingSessionId {
    let session = match *tenant == bench.me {
        true => bench.session.clone(),
        false => bench.scheduler.create_session(tenant, new_session(None)).await.unwrap(),
    };
    let new = NewSamplingSession {
        base_model: spec().base_model,
        model_path: Some(path.clone()),
        ..new_sampling(&session, seq_id, None)
    };
    bench.scheduler.create_sampling_session(tenant, new).await.unwrap()
}

/// Samples, and completes the sample as the worker does. Returns where the worker was told to store it.
async fn sampled(bench: &Bench, tenant: &TenantId, sampler: &SamplingSessionId, seq_id: i64) -> Option<SampleStorage> {
    let submitted = bench.scheduler.submit_sample(tenant, sample(sampler, seq_id)).await.unwrap();
    let work = bench.start().await;
    let storage = work.sampling_session.unwrap().stores;
    bench.pass(Duration::from_millis(10));
    let content = Bytes::from(format!("sample {seq_id}"));
    let new = storage.clone().map(|storage| NewRunSample { storage, content });
    let measured = Measured { sample: new, ..Measured::default() };
    bench.scheduler.complete_encoded_by(work.request, measured, Box::new(move || result(seq_id)));
    let ended = bench.scheduler.poll(tenant, &submitted.request_id, LONG).await.unwrap();
    assert!(matches!(ended, Poll::Succeeded { .. }));
    storage
}

async fn stored(bench: &Bench, run: &RunId) -> RunSamples {
    bench.scheduler.run_samples(&bench.me, run, 10).await.unwrap()
}

fn contents(found: &RunSamples) -> Vec<String> {
    found.samples.iter().map(|sample| String::from_utf8(sample.content.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn the_newest_samples_of_a_run_that_asks_for_it_are_stored() {
    let bench = bench().await;
    let (run, silent) = (storing_run(&bench, 0, "2").await, bench.ready_run(1).await);
    let path = checkpoint(&bench, &run).await;
    let sampler = sampler_of(&bench, &bench.me, &path, 0).await;
    let mut watch = bench.scheduler.watch_samples(&run);
    for seq_id in 0..3 {
        let storage = sampled(&bench, &bench.me, &sampler, seq_id).await;
        assert_eq!(storage, Some(SampleStorage { run: run.clone(), newest: 2 }));
    }
    tokio::time::timeout(LONG, watch.changed()).await.unwrap();
    // Sample from the base model, and from a run that does not ask for storage.
    let base = bench.sampling_session(1).await;
    assert_eq!(sampled(&bench, &bench.me, &base, 0).await, None);
    let other = checkpoint(&bench, &silent).await;
    let silent_sampler = sampler_of(&bench, &bench.me, &other, 2).await;
    assert_eq!(sampled(&bench, &bench.me, &silent_sampler, 0).await, None);
    let bench = bench.restart(true).await;
    let found = stored(&bench, &run).await;
    assert_eq!(contents(&found), ["sample 2", "sample 1"]);
    assert_eq!((found.newest, found.count, found.bytes, found.quota_is_full), (Some(2), 2, 16, false));
    assert_eq!(found.samples[0].sampling_session, sampler);
    assert!(found.samples[0].at > found.samples[1].at);
    assert_eq!((stored(&bench, &silent).await.newest, stored(&bench, &silent).await.count), (None, 0));
    let one = bench.scheduler.run_samples(&bench.me, &run, 1).await.unwrap();
    assert_eq!((contents(&one), one.count), (vec!["sample 2".to_owned()], 2));
}

#[tokio::test]
async fn samples_of_weights_in_memory_are_stored_too() {
    let bench = bench().await;
    let run = storing_run(&bench, 0, "10").await;
    let request = bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    let new = new_sampling(&bench.session, 0, Some("key"));
    bench.succeed_with(&bench.start().await, vec![Effect::SamplingSession(new)]);
    bench.poll(&request).await;
    let sampler = SamplingSessionId::of_session(&bench.session, 0);
    assert_eq!(sampled(&bench, &bench.me, &sampler, 0).await.unwrap().run, run);
    assert_eq!(contents(&stored(&bench, &run).await), ["sample 0"]);
}

#[tokio::test]
async fn what_another_tenant_samples_is_not_stored_and_what_is_stored_is_not_seen() {
    let bench = bench().await;
    let run = storing_run(&bench, 0, "10").await;
    let path = checkpoint(&bench, &run).await;
    bench.scheduler.set_public(&bench.me, &path, true).await.unwrap();
    let (you, mine) = (TenantId::new("you"), sampler_of(&bench, &bench.me, &path, 0).await);
    let theirs = sampler_of(&bench, &you, &path, 0).await;
    assert_eq!(sampled(&bench, &you, &theirs, 0).await, None);
    sampled(&bench, &bench.me, &mine, 7).await;
    assert_eq!(contents(&stored(&bench, &run).await), ["sample 7"]);
    assert!(is_not_found(bench.scheduler.run_samples(&you, &run, 10).await));
    assert!(is_not_found(bench.scheduler.delete_run_samples(&you, &run).await));
    assert_eq!(bench.scheduler.delete_run_samples(&bench.me, &run).await.unwrap(), 1);
    assert_eq!(stored(&bench, &run).await.count, 0);
}

#[tokio::test]
async fn stored_samples_count_as_storage_and_a_full_quota_fails_no_sample() {
    let bench = granted(TenantPolicy { max_storage_bytes: NonZeroU64::new(30), ..TenantPolicy::default() }).await;
    let run = storing_run(&bench, 0, "10").await;
    let path = checkpoint(&bench, &run).await;
    let sampler = sampler_of(&bench, &bench.me, &path, 0).await;
    // 10 bytes of the checkpoint, and 8 of each sample.
    for seq_id in 0..5 {
        sampled(&bench, &bench.me, &sampler, seq_id).await;
    }
    let found = stored(&bench, &run).await;
    assert_eq!((contents(&found), found.quota_is_full), (vec!["sample 1".to_owned(), "sample 0".to_owned()], false));
    let save = RunSubmission {
        stores: Some(trainyard_protocol::CheckpointKind::Sampler),
        ..submission(&run, 2, RequestKind::SaveWeightsForSampler)
    };
    let refused = bench.scheduler.submit_run(&bench.me, save).await.unwrap().request_id;
    let Poll::Failed(error) = bench.poll(&refused).await else { panic!("26 and about 10 bytes are more than 30") };
    assert!(error.message.contains("quota max_storage_bytes: 26 of 30 bytes are stored"), "{error}");
    bench.scheduler.delete_run_samples(&bench.me, &run).await.unwrap();
    sampled(&bench, &bench.me, &sampler, 9).await;
    assert_eq!(contents(&stored(&bench, &run).await), ["sample 9"]);
}

#[tokio::test]
async fn a_run_that_asks_for_something_impossible_is_refused() {
    let bench = bench().await;
    for wrong in ["0", "all", "1001"] {
        let user_metadata = BTreeMap::from([(STORE_SAMPLES.to_owned(), wrong.to_owned())]);
        let new = NewRun { user_metadata, ..new_run(&bench.session, 0) };
        let Err(Error::Invalid(text)) = bench.scheduler.submit_create(&bench.me, new).await else { panic!("{wrong}") };
        assert!(text.contains("trainyard.store_samples") && text.contains(wrong), "{text}");
    }
}

#[tokio::test]
async fn stored_samples_are_deleted_with_their_run() {
    let bench = bench().await;
    let run = storing_run(&bench, 0, "10").await;
    let path = checkpoint(&bench, &run).await;
    let sampler = sampler_of(&bench, &bench.me, &path, 0).await;
    sampled(&bench, &bench.me, &sampler, 0).await;
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.pass(Duration::from_secs(2 * 24 * 3600 + 1));
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(stored(&bench, &run).await.count, 1, "its run has a checkpoint");
    bench.scheduler.delete_checkpoint(&bench.me, &path).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    assert!(is_not_found(bench.scheduler.run_samples(&bench.me, &run, 10).await));
    let conn = &mut crate::store::db::connect_as_system(&bench.database.database).await.unwrap();
    let left: Option<i64> =
        crate::store::db::sql("SELECT count(*) FROM run_samples").scalar(conn).await.unwrap();
    assert_eq!(left, Some(0));
}

#[tokio::test]
async fn a_logout_is_known_until_its_token_has_expired() {
    let bench = bench().await;
    let directory = bench.scheduler.directory();
    let soon = crate::Timestamp(bench.clock.0.load(Ordering::SeqCst) + 60_000);
    let before = bench.scheduler.directory_version();
    directory.end_browser_session("a".to_owned(), soon).await.unwrap();
    directory.end_browser_session("a".to_owned(), soon).await.unwrap();
    assert!(bench.scheduler.directory_version() > before);
    assert!(directory.browser_session_has_ended("a").await.unwrap());
    assert!(!directory.browser_session_has_ended("b").await.unwrap());
    bench.pass(Duration::from_secs(3600));
    directory.end_browser_session("b".to_owned(), soon).await.unwrap();
    assert!(!directory.browser_session_has_ended("a").await.unwrap());
}
