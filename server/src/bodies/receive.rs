//! Reception of request bodies: memory is reserved before bytes are read, and bytes must arrive at a minimum rate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use trainyard_protocol::TenantId;

use super::memory::{Parts, SMALL, UNIT};
use crate::budgets::{BODY_KIB_PER_SECOND, BODY_MEMORY, BODY_WAIT};
use crate::error::ApiError;

/// Bodies up to this size need no memory budget: the connection's buffer is as large.
const TINY: usize = 8 << 10;

/// Divisor of the budget: if there are several tenants, each may use 1/`TENANT_PART` of it.
const TENANT_PART: usize = 2;

/// The time after which a client should send a refused body again.
const RETRY_AFTER_SECONDS: u32 = 2;

/// Bounds on the memory and the rate of received bodies.
#[derive(Clone, Debug)]
pub struct BodyLimits {
    /// Bytes that all bodies take together, from before they are read until they are processed.
    pub memory: usize,
    /// The time that a body waits for memory.
    pub wait: Duration,
    /// The time over which the rate of a body is measured.
    pub window: Duration,
    /// Bytes that must arrive in a window, unless the body ends in it.
    pub bytes_per_window: usize,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            memory: BODY_MEMORY,
            wait: BODY_WAIT,
            window: Duration::from_secs(30),
            bytes_per_window: 30 * (BODY_KIB_PER_SECOND << 10),
        }
    }
}

impl BodyLimits {
    /// Sets the rate in KiB per second.
    pub fn rate_kib(mut self, kib_per_second: u32) -> Self {
        self.bytes_per_window = self.window.as_secs() as usize * kib_per_second as usize * 1024;
        self
    }
}

/// The shares of tenants in a budget; tenants without bodies are absent.
type Shares = BTreeMap<TenantId, Weak<Parts>>;

/// Memory budget of the bodies that are being received and processed. Cheap to clone; all clones share it.
#[derive(Clone)]
pub(crate) struct BodyBudget {
    all: Arc<Parts>,
    /// The shares of tenants; `None` when there is one tenant.
    tenants: Option<Arc<Mutex<Shares>>>,
    limits: Arc<BodyLimits>,
}

/// The memory that a body holds.
#[derive(Default)]
pub(crate) struct Memory {
    permit: Option<OwnedSemaphorePermit>,
    /// The permits of the tenant's share, and the share, which exists while a body uses it.
    of_tenant: Option<OwnedSemaphorePermit>,
    tenant: Option<Arc<Parts>>,
    bytes: usize,
}

impl Memory {
    /// Releases the memory that a body of this size does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let needed = bytes.div_ceil(UNIT);
        for permit in [&mut self.permit, &mut self.of_tenant].into_iter().flatten() {
            drop(permit.split(permit.num_permits().saturating_sub(needed)));
        }
    }
}

impl BodyBudget {
    /// Creates the budget. If there are `several` tenants, each may use half of it, or one larger body.
    pub(crate) fn new(limits: BodyLimits, several: bool) -> Self {
        let all = Arc::new(Parts::new(limits.memory));
        Self { all, tenants: several.then(Arc::default), limits: Arc::new(limits) }
    }

    pub(crate) fn limits(&self) -> &BodyLimits {
        &self.limits
    }

    /// Makes an empty reservation for a body of a tenant.
    pub(crate) fn memory(&self, tenant: Option<&TenantId>) -> Memory {
        let share = self.tenants.as_ref().zip(tenant).map(|(tenants, tenant)| {
            let mut tenants = tenants.lock().unwrap_or_else(PoisonError::into_inner);
            tenants.retain(|_, share| share.strong_count() > 0);
            tenants.get(tenant).and_then(Weak::upgrade).unwrap_or_else(|| {
                let share = Arc::new(Parts::new(self.limits.memory / TENANT_PART));
                tenants.insert(tenant.clone(), Arc::downgrade(&share));
                share
            })
        });
        Memory { tenant: share, ..Memory::default() }
    }

    /// Reads a body of at most `limit` bytes into reserved memory: all of it at first when its length is known, else
    /// as it grows. `admit` checks its size so far.
    ///
    /// A body that is refused is still read to its end, or to twice the limit, and dropped: a client that is sending
    /// when the connection closes would not see the refusal.
    pub(crate) async fn receive(
        &self,
        body: Body,
        limit: usize,
        tenant: Option<&TenantId>,
        admit: impl Fn(usize) -> Result<(), ApiError>,
    ) -> Result<(Bytes, Memory), ApiError> {
        let declared = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        let mut memory = self.memory(tenant);
        let mut refusal = match declared {
            Some(length) if length > limit => Some(ApiError::TooLarge { limit }),
            Some(length) => match admit(length) {
                Ok(()) => self.reserve(&mut memory, length).await.err(),
                Err(refusal) => Some(refusal),
            },
            None => None,
        };
        let mut bytes = BytesMut::new();
        let mut total = 0_usize;
        let mut paced = Paced::new(body, &self.limits);
        loop {
            let frame = match paced.next().await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                // The same body would be too large again, however fast it comes.
                Err(error) => {
                    return Err(refusal
                        .filter(|refusal| matches!(refusal, ApiError::TooLarge { .. }))
                        .unwrap_or(error));
                }
            };
            total = total.saturating_add(frame.len());
            if refusal.is_none() && total > limit {
                refusal = Some(ApiError::TooLarge { limit });
            }
            if refusal.is_none() && total > memory.bytes {
                refusal = match admit(total) {
                    Ok(()) => self.reserve(&mut memory, grown(total).min(limit)).await.err(),
                    Err(refusal) => Some(refusal),
                };
                paced.restart();
            }
            if refusal.is_none() {
                bytes.extend_from_slice(&frame);
            } else {
                (bytes, memory) = (BytesMut::new(), Memory::default());
            }
            if total > limit.saturating_mul(2) {
                break;
            }
        }
        match refusal {
            Some(refusal) => Err(refusal),
            None => Ok((bytes.freeze(), memory)),
        }
    }

    /// Reserves memory for a body of this size, instead of its former reservation. Waits in order of arrival, for a
    /// limited time.
    pub(crate) async fn reserve(&self, memory: &mut Memory, bytes: usize) -> Result<(), ApiError> {
        if bytes <= TINY {
            memory.bytes = bytes;
            return Ok(());
        }
        let (deadline, before) = (Instant::now() + self.limits.wait, memory.bytes);
        // First of its tenant's share: what waits there keeps nothing from others.
        if let Some(share) = &memory.tenant {
            share.grow(&mut memory.of_tenant, before, bytes, deadline).await.ok_or_else(|| self.full())?;
        }
        self.all.grow(&mut memory.permit, before, bytes, deadline).await.ok_or_else(|| self.full())?;
        memory.bytes = bytes;
        Ok(())
    }

    /// Reserves memory like [`Self::reserve`], without waiting.
    pub(crate) fn try_reserve(&self, memory: &mut Memory, bytes: usize) -> Result<(), ApiError> {
        self.reserve(memory, bytes).now_or_never().unwrap_or_else(|| Err(self.full()))
    }

    fn full(&self) -> ApiError {
        let (mib, seconds) = (self.limits.memory >> 20, self.limits.wait.as_secs());
        ApiError::Busy {
            message: format!("bodies of other requests took all of the {mib} MiB for {seconds} s; try again"),
            retry_after_seconds: RETRY_AFTER_SECONDS,
        }
    }
}

/// Returns the bytes to reserve for a body that has grown to this size: some ahead, so that few reservations are
/// needed.
fn grown(bytes: usize) -> usize {
    if bytes <= TINY {
        TINY
    } else if bytes <= SMALL {
        SMALL
    } else {
        bytes.next_multiple_of(4 * SMALL)
    }
}

/// A body that must arrive at a minimum rate.
pub(crate) struct Paced<'a> {
    stream: BodyDataStream,
    limits: &'a BodyLimits,
    window_end: Instant,
    received: usize,
}

impl<'a> Paced<'a> {
    pub(crate) fn new(body: Body, limits: &'a BodyLimits) -> Self {
        Self { stream: body.into_data_stream(), limits, window_end: Instant::now() + limits.window, received: 0 }
    }

    /// Starts a new window.
    pub(crate) fn restart(&mut self) {
        self.window_end = Instant::now() + self.limits.window;
        self.received = 0;
    }

    /// Receives the next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            match timeout_at(self.window_end, self.stream.next()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => {
                    self.received = self.received.saturating_add(frame.len());
                    return Ok(Some(frame));
                }
                Ok(Some(Err(error))) => {
                    return Err(ApiError::invalid(format!("failed to read the body: {error}")));
                }
                Err(_) if self.received < self.limits.bytes_per_window => return Err(self.too_slow()),
                Err(_) => self.restart(),
            }
        }
    }

    fn too_slow(&self) -> ApiError {
        let (received, seconds) = (self.received, self.limits.window.as_secs());
        let least = self.limits.bytes_per_window;
        ApiError::TooSlow(format!(
            "{received} bytes of the body arrived in {seconds} s, expected at least {least}; send it again"
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::convert::Infallible;

    use futures::stream;

    use super::super::memory::Part;
    use super::*;

    fn budget(memory: usize) -> BodyBudget {
        let (wait, window) = (Duration::from_millis(50), Duration::from_millis(50));
        BodyBudget::new(BodyLimits { memory, wait, window, bytes_per_window: 1 << 10 }, false)
    }

    /// Admits a body of any size.
    fn any(_: usize) -> Result<(), ApiError> {
        Ok(())
    }

    fn chunked(chunks: usize, bytes: usize) -> Body {
        let chunk = Bytes::from(vec![7; bytes]);
        Body::from_stream(stream::iter((0..chunks).map(move |_| Ok::<_, Infallible>(chunk.clone()))))
    }

    fn free(part: &Part) -> usize {
        part.permits.available_permits() * UNIT
    }

    #[tokio::test]
    async fn the_limit_is_exact() {
        let budget = budget(8 << 20);
        assert_eq!(budget.receive(Body::from("12345"), 5, None, any).await.unwrap().0, "12345");
        for body in [Body::from("123456"), chunked(6, 1), chunked(100, 1)] {
            assert!(matches!(budget.receive(body, 5, None, any).await, Err(ApiError::TooLarge { limit: 5 })));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_and_stalls_is_too_large() {
        let stalled = stream::iter([Ok::<_, Infallible>(Bytes::from("123456"))]).chain(stream::pending());
        let refused = budget(8 << 20).receive(Body::from_stream(stalled), 5, None, any).await;
        assert!(matches!(refused, Err(ApiError::TooLarge { limit: 5 })));
    }

    #[tokio::test]
    async fn memory_is_taken_by_length_and_given_back() {
        let budget = budget(64 << 20);
        let (_, tiny) = budget.receive(Body::from(vec![0; TINY]), 64 << 20, None, any).await.unwrap();
        assert!(tiny.permit.is_none());
        let (_, small) = budget.receive(Body::from(vec![0; 100 << 10]), 64 << 20, None, any).await.unwrap();
        let (_, large) = budget.receive(Body::from(vec![0; 2 << 20]), 64 << 20, None, any).await.unwrap();
        assert_eq!(
            (free(&budget.all.small), free(&budget.all.large)),
            ((16 << 20) - (100 << 10), (48 << 20) - (2 << 20))
        );
        drop((small, large));
        // One of unknown length has what it grew to.
        let (bytes, grown) = budget.receive(chunked(50, 100 << 10), 64 << 20, None, any).await.unwrap();
        assert_eq!((bytes.len(), free(&budget.all.small)), (50 * (100 << 10), 16 << 20));
        assert_eq!(free(&budget.all.large), (48 << 20) - (8 << 20));
        drop(grown);
        assert_eq!(free(&budget.all.large), 48 << 20);
    }

    #[tokio::test]
    async fn a_body_larger_than_the_budget_has_all_of_it() {
        let budget = budget(8 << 20);
        let (bytes, memory) = budget.receive(Body::from(vec![0; 20 << 20]), 64 << 20, None, any).await.unwrap();
        assert_eq!((bytes.len(), free(&budget.all.large)), (20 << 20, 0));
        drop(memory);
        assert_eq!(budget.receive(chunked(20, 1 << 20), 64 << 20, None, any).await.unwrap().0.len(), 20 << 20);
    }

    #[tokio::test]
    async fn without_memory_a_body_is_refused_after_a_while_and_small_ones_are_not() {
        let budget = budget(8 << 20);
        let held = budget.receive(Body::from(vec![0; 6 << 20]), 64 << 20, None, any).await.unwrap();
        for body in [Body::from(vec![0; 2 << 20]), chunked(3, 1 << 20)] {
            let refused = budget.receive(body, 64 << 20, None, any).await;
            assert!(matches!(refused, Err(ApiError::Busy { retry_after_seconds: 2, .. })));
        }
        assert!(budget.receive(Body::from(vec![0; SMALL]), 64 << 20, None, any).await.is_ok());
        drop(held);
        assert!(budget.receive(chunked(3, 1 << 20), 64 << 20, None, any).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_stalls_or_trickles_is_ended_and_a_slow_one_is_not() {
        let budget = budget(8 << 20);
        let every = |bytes: usize| {
            Body::from_stream(stream::unfold(0, move |sent| async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                (sent < 30).then(|| (Ok::<_, Infallible>(Bytes::from(vec![0; bytes])), sent + 1))
            }))
        };
        let stalled = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        assert!(matches!(budget.receive(stalled, 1 << 20, None, any).await, Err(ApiError::TooSlow(_))));
        assert!(matches!(budget.receive(every(1), 1 << 20, None, any).await, Err(ApiError::TooSlow(_))));
        assert_eq!(budget.receive(every(20 << 10), 1 << 20, None, any).await.unwrap().0.len(), 600 << 10);
        assert_eq!((free(&budget.all.small), free(&budget.all.large)), (2 << 20, 6 << 20));
    }

    #[tokio::test]
    async fn a_tenant_that_stalls_leaves_half_of_the_memory_to_others() {
        let limits = BodyLimits { memory: 64 << 20, wait: Duration::from_millis(50), ..BodyLimits::default() };
        let budget = BodyBudget::new(limits, true);
        let (greedy, other) = (TenantId::new("greedy"), TenantId::new("other"));
        let mib = |count: usize| Body::from(vec![0; count << 20]);
        let mut held = Vec::new();
        while let Ok((_, memory)) = budget.receive(mib(4), 64 << 20, Some(&greedy), any).await {
            held.push(memory);
        }
        assert_eq!(held.len(), 6, "half of what is for large bodies");
        assert!(budget.receive(chunked(3, 1 << 20), 64 << 20, Some(&greedy), any).await.is_err());
        assert!(budget.receive(Body::from(vec![0; SMALL]), 64 << 20, Some(&greedy), any).await.is_ok());
        for size in [4, 20] {
            assert!(budget.receive(mib(size), 64 << 20, Some(&other), any).await.is_ok(), "{size} MiB");
        }
        drop(held);
        // More than its share, as the only body.
        assert!(budget.receive(mib(40), 64 << 20, Some(&greedy), any).await.is_ok());
        assert_eq!((free(&budget.all.small), free(&budget.all.large)), (16 << 20, 48 << 20));
    }
}
