#![allow(clippy::unwrap_used, reason = "tests")]

use std::num::NonZeroU64;
use std::time::Duration;

use proptest::prelude::*;
use trainyard_protocol::TenantId;

use super::*;
use crate::Timestamp;

const T0: Timestamp = Timestamp(1_000_000);

fn at(millis: i64) -> Timestamp {
    Timestamp(T0.0 + millis)
}

fn some(n: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(n)
}

fn rate_limited(rate: u64) -> (TenantId, Policies) {
    let tenant = TenantId::new("limited");
    let limits = [(Limit::TokensPerMinute, some(rate).unwrap())].into_iter().collect();
    (tenant.clone(), Policies::new(TenantPolicy::default(), [(tenant, limits)].into()))
}

#[test]
fn a_bucket_holds_a_minute_and_fills_steadily() {
    let mut bucket = TokenBucket::full(some(600).unwrap(), T0);
    assert_eq!(bucket.ready_at(600, T0), T0);
    bucket.take(600, T0);
    assert_eq!((bucket.tokens(T0), bucket.tokens(at(1_000)), bucket.tokens(at(600_000))), (0, 10, 600));
    assert_eq!(bucket.ready_at(1, T0), at(100));
    assert_eq!(bucket.ready_at(7, at(50)), at(700));
}

#[test]
fn a_request_larger_than_the_bucket_starts_from_a_full_one_and_leaves_a_debt() {
    let mut bucket = TokenBucket::full(some(600).unwrap(), T0);
    assert_eq!(bucket.ready_at(10_000, T0), T0);
    bucket.take(1_800, T0);
    assert_eq!(bucket.tokens(T0), -1_200);
    assert_eq!(bucket.ready_at(1, T0), at(120_100));
    assert_eq!(bucket.ready_at(10_000, T0), at(180_000));
}

#[test]
fn a_clock_that_is_set_back_adds_nothing() {
    let mut bucket = TokenBucket::full(some(60).unwrap(), T0);
    bucket.take(60, T0);
    assert_eq!(bucket.tokens(at(-60_000)), 0);
    bucket.take(0, at(-60_000));
    assert_eq!(bucket.tokens(at(1_000)), 1);
}

#[test]
fn quotas_are_refused_with_limit_use_and_a_time_to_retry() {
    let policy = TenantPolicy {
        max_runs: some(2),
        max_queued_tokens: some(1_000),
        tokens_per_minute: some(600),
        max_storage_bytes: some(100),
        max_queued_samples: some(8),
        ..TenantPolicy::default()
    };
    assert_eq!(policy.admit_run(1), Ok(()));
    let refused = policy.admit_run(2).unwrap_err();
    assert_eq!((refused.quota, refused.limit, refused.used), (Quota::Runs, 2, 2));
    assert!(refused.retry_after >= Duration::from_secs(1));
    assert!(refused.to_string().starts_with("quota max_runs: 2 of 2 training runs are live"), "{refused}");

    assert_eq!(policy.admit_sample(900, 100), Ok(()));
    let refused = policy.admit_sample(900, 150).unwrap_err();
    assert_eq!((refused.quota.name(), refused.used, refused.asked), ("max_queued_tokens", 900, 150));
    assert_eq!(refused.retry_after, Duration::from_secs(5), "50 tokens at 10 per second");
    assert_eq!(policy.admit_sample(1_000, u64::MAX).unwrap_err().retry_after, Duration::from_secs(30));
    // A sample beyond the quota would otherwise never fit.
    assert_eq!(policy.admit_sample(0, 5_000), Ok(()));

    assert_eq!(policy.admit_queued(7), Ok(()));
    let refused = policy.admit_queued(8).unwrap_err();
    assert_eq!((refused.quota, refused.limit, refused.used), (Quota::QueuedSamples, 8, 8));
    assert!(
        refused.to_string().starts_with("quota max_queued_samples: 8 of 8 samples are waiting or running"),
        "{refused}"
    );

    assert_eq!(policy.admit_storage(90, 10), Ok(()));
    assert_eq!(policy.admit_storage(99, 0), Ok(()));
    for (stored, bytes) in [(91, 10), (100, 0), (u64::MAX, u64::MAX)] {
        let refused = policy.admit_storage(stored, bytes).unwrap_err();
        assert_eq!((refused.quota, refused.retry_after), (Quota::StorageBytes, Duration::ZERO));
    }
}

#[test]
fn an_absent_quota_is_no_limit() {
    let policies = Policies::default();
    let policy = policies.of(&TenantId::new("any"));
    assert_eq!(policy.admit_run(u64::MAX), Ok(()));
    assert_eq!(policy.admit_sample(u64::MAX, u64::MAX), Ok(()));
    assert_eq!(policy.admit_queued(u64::MAX), Ok(()));
    assert_eq!(policy.admit_storage(u64::MAX, u64::MAX), Ok(()));
    let mut throttle = Throttle::new(policies);
    for n in 0..100 {
        assert_eq!(throttle.offer(&TenantId::new("any"), n, u64::MAX, T0), Some(n));
    }
    assert_eq!((throttle.wakes_at(T0), throttle.pause(&TenantId::new("any"), T0)), (None, None));
}

#[test]
fn what_waits_goes_in_order_and_says_until_when() {
    let (tenant, policies) = rate_limited(600);
    let mut throttle = Throttle::new(policies);
    assert_eq!(throttle.offer(&tenant, "before", 1, T0), None, "its level is not known");
    assert_eq!((throttle.wakes_at(T0), throttle.take_unread()), (None, vec![tenant.clone()]));
    throttle.set_level(&tenant, None, 0, T0);
    assert_eq!(throttle.next_due(T0), Some("before"));
    assert_eq!(throttle.offer(&tenant, "first", 600, T0), Some("first"));
    throttle.charge(&tenant, 600, T0);
    assert_eq!(throttle.offer(&tenant, "large", 300, T0), None);
    assert_eq!(throttle.offer(&tenant, "small", 1, at(1_000)), None, "it does not overtake");
    assert_eq!(throttle.offer(&tenant, "free", 0, at(1_000)), Some("free"), "it costs nothing");
    assert_eq!(throttle.offer(&TenantId::new("other"), "other", 9_999, T0), Some("other"));
    let pause = Pause { quota: Quota::TokensPerMinute, limit: 600, until: at(30_000) };
    assert_eq!(throttle.pause(&tenant, at(1_000)), Some(pause));
    assert_eq!(throttle.wakes_at(at(1_000)), Some(at(30_000)));
    assert_eq!(throttle.next_due(at(29_999)), None);
    // Others may have used the rate limit in the meantime.
    assert_eq!((throttle.next_due(at(30_000)), throttle.take_unread()), (None, vec![tenant.clone()]));
    throttle.set_level(&tenant, Some(BucketLevel { units: 0, at: T0 }), 600, at(30_000));
    assert_eq!(throttle.next_due(at(30_000)), Some("large"));
    throttle.charge(&tenant, 300, at(30_000));
    assert_eq!((throttle.next_due(at(30_000)), throttle.wakes_at(at(30_000))), (None, Some(at(30_100))));
    throttle.forget(&tenant, &"small");
    assert_eq!((throttle.wakes_at(at(30_000)), throttle.pause(&tenant, at(30_000))), (None, None));
}

proptest! {
    /// Requests start no sooner and no later than that.
    #[test]
    fn ready_at_is_the_first_millisecond_with_enough(
        rate in 1_u64..2_000_000, spent in 0_u64..5_000_000, tokens in 1_u64..5_000_000, later in 0_i64..200_000,
    ) {
        let mut bucket = TokenBucket::full(some(rate).unwrap(), T0);
        bucket.take(spent, T0);
        let (now, enough) = (at(later), i64::try_from(tokens.min(rate)).unwrap());
        let ready = bucket.ready_at(tokens, now);
        prop_assert!(ready >= now && bucket.tokens(ready) >= enough);
        prop_assert!(ready == now || bucket.tokens(Timestamp(ready.0 - 1)) < enough);
    }

    /// Checks requests of one tenant as they arrive. None is lost, and none overtakes one that waits. In no period do
    /// more tokens start than a full bucket and the period allow (except for a debt that one large request leaves).
    /// Waiting requests start as soon as they may.
    #[test]
    fn a_rate_limit_is_kept_and_nothing_is_lost(
        rate in 60_u64..100_000,
        requests in prop::collection::vec((0_i64..5_000, prop_oneof![Just(0), 1_u64..20_000]), 1..40),
    ) {
        let (tenant, policies) = rate_limited(rate);
        let mut throttle = Throttle::new(policies);
        throttle.offer(&tenant, usize::MAX, 1, T0);
        throttle.set_level(&tenant, None, 0, T0);
        throttle.forget(&tenant, &usize::MAX);
        let mut started: Vec<(usize, Timestamp)> = Vec::new();
        let mut now = T0;
        for (index, &(gap, tokens)) in requests.iter().enumerate() {
            let arrival = Timestamp(now.0 + gap);
            drain(&mut throttle, &tenant, &requests, arrival, &mut started);
            now = arrival;
            if throttle.offer(&tenant, index, tokens, now).is_some() {
                throttle.charge(&tenant, tokens, now);
                started.push((index, now));
            }
        }
        drain(&mut throttle, &tenant, &requests, Timestamp(i64::MAX), &mut started);

        let mut all: Vec<usize> = started.iter().map(|&(index, _)| index).collect();
        let costly: Vec<usize> = all.iter().copied().filter(|&index| requests[index].1 > 0).collect();
        prop_assert!(costly.is_sorted());
        all.sort_unstable();
        prop_assert_eq!(all, (0..requests.len()).collect::<Vec<_>>());
        for (first, &(_, from)) in started.iter().enumerate() {
            let mut sum = 0;
            // Free requests start at once, even while a large request's debt is being paid.
            for &(index, to) in started[first..].iter().filter(|&&(index, _)| requests[index].1 > 0) {
                let span = u64::try_from(to.0 - from.0).unwrap();
                // A large request needs no more than a full bucket.
                let needed = sum + requests[index].1.min(rate);
                prop_assert!(needed * 60_000 <= rate * (60_000 + span), "{needed} tokens in {span} ms at {rate}");
                sum += requests[index].1;
            }
        }
    }
}

/// Starts requests that may start up to `until`, each at its time.
fn drain(
    throttle: &mut Throttle<usize>,
    tenant: &TenantId,
    requests: &[(i64, u64)],
    until: Timestamp,
    started: &mut Vec<(usize, Timestamp)>,
) {
    let mut now = started.last().map_or(T0, |&(_, at)| at);
    while let Some(wake) = throttle.wakes_at(now).filter(|wake| *wake <= until) {
        now = now.max(wake);
        let Some(index) = throttle.next_due(now) else {
            // Nobody else uses the rate limit, so the level read equals the level written.
            throttle.confirm(now);
            continue;
        };
        throttle.charge(tenant, requests[index].1, now);
        started.push((index, now));
    }
}

#[test]
fn what_other_workers_start_counts_too() {
    let (tenant, policies) = rate_limited(600);
    let mut throttle = Throttle::new(policies);
    assert_eq!(throttle.offer(&tenant, 0, 100, T0), None);
    throttle.set_level(&tenant, Some(BucketLevel { units: 150 * 60_000, at: T0 }), 0, T0);
    assert_eq!(throttle.next_due(T0), Some(0));
    throttle.charge(&tenant, 100, T0);
    // Until these tokens are written, a level that is read lacks them.
    throttle.set_level(&tenant, Some(BucketLevel { units: 150 * 60_000, at: T0 }), 0, T0);
    assert_eq!(throttle.offer(&tenant, 1, 60, T0), None);
    assert_eq!(throttle.wakes_at(T0), Some(at(1_000)));
    // Another worker took 40 tokens.
    throttle.set_level(&tenant, Some(BucketLevel { units: 10 * 60_000, at: T0 }), 100, T0);
    assert_eq!(throttle.wakes_at(T0), Some(at(5_000)));
}

#[test]
fn a_rate_limit_that_is_lifted_releases_what_waits_and_another_one_goes_on_at_its_level() {
    let (tenant, policies) = rate_limited(600);
    let none = Policies::default();
    let mut throttle = Throttle::new(policies.clone());
    assert_eq!(throttle.offer(&tenant, 0, 600, T0), None);
    throttle.set_level(&tenant, None, 0, T0);
    assert_eq!(throttle.next_due(T0), Some(0));
    throttle.charge(&tenant, 600, T0);
    for key in 1..=3 {
        assert_eq!(throttle.offer(&tenant, key, 10, T0), None);
    }
    assert_eq!((throttle.next_due(T0), throttle.wakes_at(T0)), (None, Some(at(1_000))));
    // Ten times the rate fills the empty bucket ten times as fast.
    throttle.set_policies(rate_limited(6_000).1, T0);
    assert_eq!((throttle.next_due(T0), throttle.wakes_at(T0)), (None, Some(at(100))));
    // Without a limit, all waiting requests start.
    throttle.set_policies(none.clone(), T0);
    assert_eq!(throttle.wakes_at(T0), Some(T0));
    assert_eq!((throttle.next_due(T0), throttle.next_due(T0)), (Some(1), Some(2)));
    assert_eq!(throttle.pause(&tenant, T0), None);
    assert_eq!(throttle.offer(&tenant, 4, 1_000_000, T0), Some(4));
    // Requests that arrive under a new limit wait for its level.
    throttle.set_policies(policies, T0);
    assert_eq!((throttle.next_due(T0), throttle.take_unread()), (None, vec![tenant.clone(), tenant.clone()]));
    throttle.set_level(&tenant, Some(BucketLevel { units: 0, at: T0 }), 0, T0);
    assert_eq!((throttle.next_due(T0), throttle.wakes_at(T0)), (None, Some(at(1_000))));
    assert_eq!(throttle.next_due(at(1_000)), Some(3));
    throttle.set_policies(none, at(1_000));
    assert_eq!((throttle.next_due(at(1_000)), throttle.waiting().count()), (None, 0));
}

#[test]
fn the_file_wins_over_the_store_limit_by_limit() {
    let limits = |list: &[(Limit, u64)]| -> TenantLimits {
        list.iter().map(|(limit, value)| (*limit, limit.value(*value).unwrap())).collect()
    };
    let (a, b, c) = (TenantId::new("a"), TenantId::new("b"), TenantId::new("c"));
    let file = Policies::new(TenantPolicy::default(), [(a.clone(), limits(&[(Limit::MaxRuns, 2)]))].into());
    let stored = limits(&[(Limit::MaxRuns, 7), (Limit::Weight, 5), (Limit::MaxQueuedBytes, 9)]);
    let grant = |tenant: &TenantId, disabled| StoredGrant { tenant: tenant.clone(), limits: stored.clone(), disabled };
    let grants = Grants::join(&file, &[grant(&a, false), grant(&b, true)]);
    let of = |tenant| {
        let policy = grants.policies.of(tenant);
        (policy.max_runs.map(NonZeroU64::get), policy.weight.get(), policy.training.bytes.get())
    };
    assert_eq!((of(&a), of(&b)), ((Some(2), 5, 9), (Some(7), 5, 9)));
    assert_eq!(*grants.policies.of(&c), TenantPolicy::default());
    assert_eq!(grants.disabled, [b.clone()].into());

    let change = |limit, value: Option<u64>| [(limit, value.and_then(NonZeroU64::new))].into();
    let refused = file.check_changes(&a, &change(Limit::MaxRuns, None)).unwrap_err();
    assert_eq!(refused.to_string(), "max_runs: the configuration file sets it to 2; it can't be changed here");
    assert!(file.check_changes(&a, &change(Limit::Weight, Some(3))).is_ok());
    assert!(file.check_changes(&b, &change(Limit::MaxRuns, Some(3))).is_ok());
    assert_eq!(stored.clone().changed(&change(Limit::MaxRuns, None)).get(Limit::MaxRuns), None);
}

#[test]
fn a_limit_is_at_least_one_and_a_weight_a_thousand_at_most() {
    for limit in Limit::ALL {
        assert_eq!(limit.value(1).map(NonZeroU64::get), Ok(1));
        assert_eq!(limit.value(limit.largest()).map(NonZeroU64::get), Ok(limit.largest()));
        assert!(limit.value(0).is_err() && limit.value(limit.largest() + 1).is_err());
    }
    let refused = Limit::Weight.value(1_001).unwrap_err().to_string();
    assert_eq!(refused, "weight: must be from 1 to 1000, not 1001");
}
