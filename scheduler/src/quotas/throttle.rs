//! The pace of each tenant's requests: what may start now, and what waits until when.

use std::collections::BTreeMap;

use trainyard_protocol::TenantId;

use super::bucket::Bucket;
use super::{Policies, Quota};
use crate::Timestamp;

/// Why requests of a tenant wait although they are next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The quota that is used up.
    pub quota: Quota,
    /// What is granted.
    pub limit: u64,
    /// When the next one may start.
    pub until: Timestamp,
}

/// Lets requests through in the order in which they come, tenant by tenant, each at its tenant's pace. `K` names a
/// request, or the run whose head it is.
#[derive(Debug)]
pub(crate) struct Throttle<K> {
    policies: Policies,
    lanes: BTreeMap<TenantId, Lane<K>>,
}

/// A tenant with a pace.
#[derive(Debug)]
struct Lane<K> {
    bucket: Bucket,
    /// What waits, with its tokens, by its place in the order.
    waiting: BTreeMap<u64, (K, u64)>,
    places: BTreeMap<K, u64>,
    next_place: u64,
}

impl<K: Ord + Clone> Lane<K> {
    fn new(bucket: Bucket) -> Self {
        Self { bucket, waiting: BTreeMap::new(), places: BTreeMap::new(), next_place: 0 }
    }

    fn push(&mut self, key: K, tokens: u64) {
        self.remove(&key);
        self.places.insert(key.clone(), self.next_place);
        self.waiting.insert(self.next_place, (key, tokens));
        self.next_place += 1;
    }

    fn pop(&mut self) -> Option<K> {
        let (_, (key, _)) = self.waiting.pop_first()?;
        self.places.remove(&key);
        Some(key)
    }

    fn remove(&mut self, key: &K) {
        if let Some(place) = self.places.remove(key) {
            self.waiting.remove(&place);
        }
    }

    /// When the first of those that wait may start.
    fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        let (_, (_, tokens)) = self.waiting.first_key_value()?;
        Some(self.bucket.ready_at(*tokens, now))
    }
}

impl<K> Default for Throttle<K> {
    fn default() -> Self {
        Self { policies: Policies::default(), lanes: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Throttle<K> {
    pub(crate) fn new(policies: Policies) -> Self {
        Self { policies, lanes: BTreeMap::new() }
    }

    /// A request of `tokens` that could start: given back when it may, and then to be [charged](Self::charge); kept
    /// when it has to wait. What costs nothing never waits. Others do behind those that wait, so that small requests
    /// can't keep a large one from ever finding the bucket full.
    pub(crate) fn offer(&mut self, tenant: &TenantId, key: K, tokens: u64, now: Timestamp) -> Option<K> {
        let Some(lane) = self.lane(tenant, now).filter(|_| tokens > 0) else { return Some(key) };
        if lane.waiting.is_empty() && lane.bucket.ready_at(tokens, now) <= now {
            return Some(key);
        }
        lane.push(key, tokens);
        None
    }

    /// A request starts.
    pub(crate) fn charge(&mut self, tenant: &TenantId, tokens: u64, now: Timestamp) {
        if let Some(lane) = self.lane(tenant, now).filter(|_| tokens > 0) {
            lane.bucket.take(tokens, now);
        }
    }

    /// The next request that waited and may start now, to be charged when it does.
    pub(crate) fn next_due(&mut self, now: Timestamp) -> Option<K> {
        let open = |lane: &&mut Lane<K>| lane.opens_at(now).is_some_and(|at| at <= now);
        self.lanes.values_mut().find(open)?.pop()
    }

    /// When [`Self::next_due`] will have something.
    pub(crate) fn wakes_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.lanes.values().filter_map(|lane| lane.opens_at(now)).min()
    }

    /// A request that waits no longer, because it ended.
    pub(crate) fn forget(&mut self, tenant: &TenantId, key: &K) {
        if let Some(lane) = self.lanes.get_mut(tenant) {
            lane.remove(key);
        }
    }

    /// Why the tenant's requests wait, if they do.
    pub(crate) fn pause(&self, tenant: &TenantId, now: Timestamp) -> Option<Pause> {
        let until = self.lanes.get(tenant)?.opens_at(now)?;
        let limit = self.policies.of(tenant).tokens_per_minute?.get();
        Some(Pause { quota: Quota::TokensPerMinute, limit, until })
    }

    /// Tenants of whom something waits.
    pub(crate) fn paused_tenants(&self) -> Vec<TenantId> {
        let paused = self.lanes.iter().filter(|(_, lane)| !lane.waiting.is_empty());
        paused.map(|(tenant, _)| tenant.clone()).collect()
    }

    /// How many of those that wait are of a kind.
    pub(crate) fn count_waiting(&self, is_one: impl Fn(&K) -> bool) -> usize {
        self.lanes.values().map(|lane| lane.places.keys().filter(|key| is_one(key)).count()).sum()
    }

    /// `None` for a tenant without a pace.
    fn lane(&mut self, tenant: &TenantId, now: Timestamp) -> Option<&mut Lane<K>> {
        let rate = self.policies.of(tenant).tokens_per_minute?;
        if !self.lanes.contains_key(tenant) {
            self.lanes.insert(tenant.clone(), Lane::new(Bucket::full(rate, now)));
        }
        self.lanes.get_mut(tenant)
    }
}
