//! Tests of limits of organisations in the store, and of disabled organisations.

use std::num::NonZeroU64;

use super::*;
use crate::{Directory, Limit, LimitChanges, Policies, Quota, TenantLimits};

/// Duration longer than a change stays unknown.
const KNOWN: Duration = Duration::from_secs(1);

fn change(limit: Limit, value: Option<u64>) -> LimitChanges {
    [(limit, value.map(|value| limit.value(value).unwrap()))].into()
}

async fn organisation(bench: &Bench) -> Directory {
    let directory = bench.scheduler.directory();
    directory.create_organisation(bench.me.clone(), false).await.unwrap();
    directory
}

/// Waits until a condition holds. Returns how long that took.
async fn until(holds: impl Fn() -> bool) -> Duration {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    start.elapsed()
}

#[tokio::test]
async fn a_limit_counts_from_the_moment_it_is_set_and_no_longer_than_it_is() {
    let bench = bench().await;
    let directory = organisation(&bench).await;
    bench.create(0).await;
    let limits = directory.change_limits(bench.me.clone(), change(Limit::MaxRuns, Some(1))).await.unwrap();
    assert_eq!(limits.get(Limit::MaxRuns), NonZeroU64::new(1));
    let refused = bench.scheduler.submit_create(&bench.me, new_run(&bench.session, 1)).await;
    assert!(matches!(&refused, Err(Error::Quota(refusal)) if refusal.quota == Quota::Runs), "{refused:?}");
    // Other limits are unchanged.
    let limits = directory.change_limits(bench.me.clone(), change(Limit::Weight, Some(7))).await.unwrap();
    assert_eq!((limits.get(Limit::MaxRuns), limits.get(Limit::Weight)), (NonZeroU64::new(1), NonZeroU64::new(7)));
    assert_eq!(bench.scheduler.policy(&bench.me).weight.get(), 7);
    assert_eq!(directory.limits(&bench.me).await.unwrap(), limits);
    directory.change_limits(bench.me.clone(), change(Limit::MaxRuns, None)).await.unwrap();
    bench.create(1).await;
    let unknown = directory.change_limits(TenantId::new("nobody"), change(Limit::Weight, Some(1))).await;
    assert!(matches!(unknown, Err(Error::NotFound { what: "organisation", .. })), "{unknown:?}");
    assert!(matches!(directory.change_limits(bench.me.clone(), LimitChanges::new()).await, Err(Error::Invalid(_))));
    // The limits survive a restart.
    let bench = bench.restart(false).await;
    assert_eq!(bench.scheduler.policy(&bench.me).weight.get(), 7);
}

#[tokio::test]
async fn another_process_knows_of_a_limit_within_a_second() {
    let bench = bench().await;
    organisation(&bench).await;
    let beside = Directory::beside(bench.database.database.clone()).await.unwrap();
    beside.change_limits(bench.me.clone(), change(Limit::MaxStorageBytes, Some(1))).await.unwrap();
    let took = until(|| bench.scheduler.policy(&bench.me).max_storage_bytes.is_some()).await;
    assert!(took < KNOWN, "{took:?}");
    beside.change_limits(bench.me.clone(), change(Limit::MaxStorageBytes, None)).await.unwrap();
    let took = until(|| bench.scheduler.policy(&bench.me).max_storage_bytes.is_none()).await;
    assert!(took < KNOWN, "{took:?}");
}

#[tokio::test]
async fn what_a_rate_limit_holds_back_starts_when_it_is_lifted() {
    let bench = bench().await;
    let directory = organisation(&bench).await;
    directory.change_limits(bench.me.clone(), change(Limit::TokensPerMinute, Some(60))).await.unwrap();
    let sampler = bench.sampling_session(0).await;
    let submit = async |seq_id| {
        let new = SampleSubmission { tokens: 60, ..sample(&sampler, seq_id) };
        bench.scheduler.submit_sample(&bench.me, new).await.unwrap();
    };
    submit(0).await;
    bench.start().await;
    submit(1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    bench.nothing_ready();
    directory.change_limits(bench.me.clone(), change(Limit::TokensPerMinute, None)).await.unwrap();
    assert_eq!(bench.start().await.seq_id, 1);
}

#[tokio::test]
async fn what_the_file_sets_is_changed_neither_here_nor_beside() {
    let bench = bench().await;
    organisation(&bench).await;
    let seed: TenantLimits = [(Limit::MaxRuns, NonZeroU64::MIN)].into_iter().collect();
    let file = Policies::new(TenantPolicy::default(), [(bench.me.clone(), seed)].into());
    let bench = bench.restart_granted(file.clone()).await;
    let beside = Directory::beside(bench.database.database.clone()).await.unwrap().beside_file(file);
    for directory in [bench.scheduler.directory(), beside] {
        let refused = directory.change_limits(bench.me.clone(), change(Limit::MaxRuns, Some(5))).await.unwrap_err();
        assert!(matches!(&refused, Error::Invalid(text) if text.starts_with("max_runs: the configuration file")));
        directory.change_limits(bench.me.clone(), change(Limit::Weight, Some(5))).await.unwrap();
    }
    let policy = bench.scheduler.policy(&bench.me);
    assert_eq!((policy.max_runs, policy.weight.get()), (NonZeroU64::new(1), 5));
}

#[tokio::test]
async fn sessions_of_a_disabled_organisation_end_and_go_on_when_it_is_enabled() {
    let bench = bench().await;
    let directory = organisation(&bench).await;
    let run = bench.ready_run(0).await;
    let sampler = bench.sampling_session(0).await;
    let executing = bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    let work = bench.start().await;
    let waiting = bench.submit(&run, 2, RequestKind::ForwardBackward).await;
    let sample = bench.submit_sample(&sampler, 0).await.request_id;
    let other = TenantId::new("other");
    let theirs = bench.scheduler.create_session(&other, new_session(None)).await.unwrap();

    let disabled = directory.change_organisation(bench.me.clone(), Some("Me".to_owned()), Some(true)).await.unwrap();
    assert_eq!((disabled.display_name.as_str(), disabled.disabled_at.is_some()), ("Me", true));
    assert!(bench.scheduler.is_disabled(&bench.me) && !bench.scheduler.is_disabled(&other));
    assert!(matches!(bench.poll(&sample).await, Poll::Cancelled));
    let status = async |tenant, session| bench.scheduler.session(tenant, session).await.unwrap().status;
    assert_eq!(status(&bench.me, &bench.session).await, crate::SessionStatus::Expired);
    assert_eq!(status(&other, &theirs).await, crate::SessionStatus::Active);
    // Requests in execution finish; waiting ones are cancelled.
    bench.succeed(&work);
    assert!(matches!(bench.poll(&executing).await, Poll::Succeeded { .. }));
    assert!(matches!(bench.poll(&waiting).await, Poll::Cancelled));
    // A session that a call had still created ends with the next maintenance.
    let late = bench.scheduler.create_session(&bench.me, new_session(None)).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(status(&bench.me, &late).await, crate::SessionStatus::Expired);

    let enabled = directory.change_organisation(bench.me.clone(), None, Some(false)).await.unwrap();
    assert_eq!((enabled.display_name.as_str(), enabled.disabled_at), ("Me", None));
    assert!(!bench.scheduler.is_disabled(&bench.me));
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    assert_eq!(status(&bench.me, &bench.session).await, crate::SessionStatus::Active);
    let nothing = directory.change_organisation(bench.me.clone(), None, None).await;
    assert!(matches!(nothing, Err(Error::Invalid(_))), "{nothing:?}");
    let unknown = directory.change_organisation(TenantId::new("nobody"), None, Some(true)).await;
    assert!(matches!(unknown, Err(Error::NotFound { .. })), "{unknown:?}");
}

#[tokio::test]
async fn changes_of_organisations_are_in_their_audit_log() {
    let bench = bench().await;
    let directory = organisation(&bench).await;
    bench.pass(KNOWN);
    directory.change_limits(bench.me.clone(), change(Limit::MaxRuns, Some(3))).await.unwrap();
    bench.pass(KNOWN);
    directory.change_organisation(bench.me.clone(), None, Some(true)).await.unwrap();
    let log = bench.scheduler.audit_log(&bench.me, None, Timestamp(0), Timestamp(i64::MAX)).await.unwrap();
    let [_, limits, disabled] = log.as_slice() else { panic!("{log:?}") };
    assert_eq!((limits.event.as_str(), &limits.details["max_runs"]), ("organization_limits_change", &3.into()));
    assert_eq!((disabled.event.as_str(), &disabled.details["disabled"]), ("organization_change", &true.into()));
}
