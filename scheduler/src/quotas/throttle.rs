//! Enforces rate limits: decides which requests of a tenant may start now, and until when others wait.

use std::collections::BTreeMap;

use trainyard_protocol::TenantId;

use super::{BucketLevel, Policies, Quota, TokenBucket};
use crate::Timestamp;

/// Age in milliseconds at which the level is read again while requests wait, because other workers' requests take from
/// it too.
const LEVEL_AGE_MS: i64 = 1_000;

/// A rate limit that holds back requests of a tenant although they are next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Quota that is used up.
    pub quota: Quota,
    /// Value of the quota, in tokens per minute.
    pub limit: u64,
    /// Time when the next request may start.
    pub until: Timestamp,
}

/// Lets requests through in the order of their arrival, tenant by tenant, each within its tenant's rate limit. `K`
/// names a request, or the run whose head it is.
///
/// The store contains the level of each bucket, from which the requests of all workers are taken. The throttle tracks
/// the level as last read or written, less the tokens that this worker has started since.
#[derive(Debug)]
pub(crate) struct Throttle<K> {
    policies: Policies,
    lanes: BTreeMap<TenantId, Lane<K>>,
    /// Tenants whose level must be read.
    unread: Vec<TenantId>,
}

/// A tenant with a rate limit.
#[derive(Debug)]
struct Lane<K> {
    /// Bucket; `None` once the rate limit was lifted, so that all waiting requests may start.
    bucket: Option<TokenBucket>,
    /// Time when the level was last read or written; `None` until it is read.
    known_at: Option<Timestamp>,
    /// Tokens that were started but not yet taken from the level in the store.
    unwritten: u64,
    /// Waiting requests with their tokens, by position in the order.
    waiting: BTreeMap<u64, (K, u64)>,
    places: BTreeMap<K, u64>,
    next_place: u64,
}

impl<K: Ord + Clone> Lane<K> {
    fn new(bucket: TokenBucket) -> Self {
        let bucket = Some(bucket);
        Self { bucket, known_at: None, unwritten: 0, waiting: BTreeMap::new(), places: BTreeMap::new(), next_place: 0 }
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

    /// Returns the time when the first waiting request may start, as far as is known.
    fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        let (_, (_, tokens)) = self.waiting.first_key_value()?;
        match &self.bucket {
            None => Some(now),
            Some(bucket) => self.known_at.map(|_| bucket.ready_at(*tokens, now)),
        }
    }
}

impl<K> Throttle<K> {
    fn of(policies: Policies) -> Self {
        Self { policies, lanes: BTreeMap::new(), unread: Vec::new() }
    }
}

impl<K> Default for Throttle<K> {
    fn default() -> Self {
        Self::of(Policies::default())
    }
}

impl<K: Ord + Clone> Throttle<K> {
    pub(crate) fn new(policies: Policies) -> Self {
        Self::of(policies)
    }

    /// Enforces other policies from now on. Requests under a lifted rate limit may start; a changed limit continues at
    /// its present level.
    pub(crate) fn set_policies(&mut self, policies: Policies, now: Timestamp) {
        self.policies = policies;
        let Self { policies, lanes, unread } = self;
        lanes.retain(|tenant, lane| match policies.of(tenant).tokens_per_minute {
            None => {
                lane.bucket = None;
                // Without a rate limit, no tokens are taken from the level in the store.
                lane.unwritten = 0;
                !lane.waiting.is_empty()
            }
            Some(rate) => {
                match lane.bucket.take() {
                    Some(bucket) => lane.bucket = Some(bucket.at_rate(rate, now)),
                    None => {
                        lane.bucket = Some(TokenBucket::full(rate, now));
                        lane.known_at = None;
                        unread.push(tenant.clone());
                    }
                }
                true
            }
        });
    }

    /// Offers a request of `tokens` that could start. Returns the request if it may start; the caller must then
    /// [charge](Self::charge) it. Otherwise it is queued. Free requests never wait. Others wait behind those already
    /// queued, so that small requests can't keep a large one from ever finding the bucket full.
    pub(crate) fn offer(&mut self, tenant: &TenantId, key: K, tokens: u64, now: Timestamp) -> Option<K> {
        let Some(lane) = self.lane(tenant, now).filter(|_| tokens > 0) else { return Some(key) };
        let is_open = |bucket: &TokenBucket| bucket.ready_at(tokens, now) <= now;
        if lane.known_at.is_some() && lane.waiting.is_empty() && lane.bucket.as_ref().is_some_and(is_open) {
            return Some(key);
        }
        lane.push(key, tokens);
        None
    }

    /// Takes the tokens of a request that starts from the bucket.
    pub(crate) fn charge(&mut self, tenant: &TenantId, tokens: u64, now: Timestamp) {
        if let Some(lane) = self.lane(tenant, now).filter(|_| tokens > 0) {
            if let Some(bucket) = &mut lane.bucket {
                bucket.take(tokens, now);
            }
            lane.unwritten = lane.unwritten.saturating_add(tokens);
        }
    }

    /// Returns the next waiting request that may start now; it must be charged when it starts.
    pub(crate) fn next_due(&mut self, now: Timestamp) -> Option<K> {
        for (tenant, lane) in &mut self.lanes {
            if lane.opens_at(now).is_none_or(|at| at > now) {
                continue;
            }
            if lane.bucket.is_none() || lane.known_at.is_some_and(|known| now.0.saturating_sub(known.0) <= LEVEL_AGE_MS)
            {
                return lane.pop();
            }
            lane.known_at = None;
            self.unread.push(tenant.clone());
        }
        None
    }

    /// Returns the tenants whose level must be read and then [set](Self::set_level).
    pub(crate) fn take_unread(&mut self) -> Vec<TenantId> {
        std::mem::take(&mut self.unread)
    }

    /// Reads the level back as it was written.
    #[cfg(test)]
    pub(crate) fn confirm(&mut self, now: Timestamp) {
        self.unread.clear();
        self.lanes.values_mut().for_each(|lane| lane.known_at = Some(now));
    }

    /// Sets the level in the store at `now`, from which `written` of this worker's tokens were taken; `None` is a full
    /// bucket.
    pub(crate) fn set_level(&mut self, tenant: &TenantId, level: Option<BucketLevel>, written: u64, now: Timestamp) {
        let Some(rate) = self.policies.of(tenant).tokens_per_minute else { return };
        let Some(lane) = self.lanes.get_mut(tenant) else { return };
        lane.unwritten = lane.unwritten.saturating_sub(written);
        let mut bucket = level.map_or_else(|| TokenBucket::full(rate, now), |level| TokenBucket::restored(rate, level));
        bucket.take(lane.unwritten, now);
        lane.bucket = Some(bucket);
        lane.known_at = Some(now);
    }

    /// Returns the time when [`Self::next_due`] will have something to return.
    pub(crate) fn wakes_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.lanes.values().filter_map(|lane| lane.opens_at(now)).min()
    }

    /// Removes a request that ended while it waited.
    pub(crate) fn forget(&mut self, tenant: &TenantId, key: &K) {
        if let Some(lane) = self.lanes.get_mut(tenant) {
            lane.remove(key);
        }
    }

    /// Returns the pause of the tenant's requests, if they wait.
    pub(crate) fn pause(&self, tenant: &TenantId, now: Timestamp) -> Option<Pause> {
        let until = self.lanes.get(tenant)?.opens_at(now)?;
        let limit = self.policies.of(tenant).tokens_per_minute?.get();
        Some(Pause { quota: Quota::TokensPerMinute, limit, until })
    }

    /// Returns the tenants with waiting requests.
    pub(crate) fn paused_tenants(&self) -> Vec<TenantId> {
        let paused = self.lanes.iter().filter(|(_, lane)| !lane.waiting.is_empty());
        paused.map(|(tenant, _)| tenant.clone()).collect()
    }

    /// Returns the requests that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &K> {
        self.lanes.values().flat_map(|lane| lane.places.keys())
    }

    /// Returns the lane of a tenant; `None` without a rate limit.
    fn lane(&mut self, tenant: &TenantId, now: Timestamp) -> Option<&mut Lane<K>> {
        let rate = self.policies.of(tenant).tokens_per_minute?;
        if !self.lanes.contains_key(tenant) {
            self.lanes.insert(tenant.clone(), Lane::new(TokenBucket::full(rate, now)));
            self.unread.push(tenant.clone());
        }
        self.lanes.get_mut(tenant)
    }
}
