//! Tests of prefetched payloads, and of requests that are cancelled in the meantime.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use bytes::Bytes;
use trainyard_protocol::{OpError, PreparedContent, RequestId, RunId, SessionId, TenantId};

use super::payloads::HELD_BYTES;
use super::*;
use crate::quotas::Cost;
use crate::{Decoded, Policies, RequestKind, Timestamp, WorkItem};

fn run() -> RunId {
    RunId::new("s:train:0")
}

/// Returns a queue with a run whose first request has ended.
fn queue() -> Queue {
    let mut queue = Queue::new(Policies::default(), u64::MAX, 256);
    let (tenant, session) = (TenantId::new("t"), SessionId::new("s"));
    queue.add_run(run(), RunQueue::new(tenant, session, "m".to_owned(), 1, 1, History::Loaded));
    queue
}

fn request(seq_id: i64) -> RequestId {
    RequestId::new(format!("r{seq_id}"))
}

fn content(seq_id: i64) -> PreparedContent {
    PreparedContent::Batch(Err(OpError::user(seq_id.to_string())))
}

/// Adds a request of which only the row is known.
fn enqueue(queue: &mut Queue, seq_id: i64) {
    let cost = Cost::new(1, Timestamp(0));
    let (request, kind) = (request(seq_id), RequestKind::OptimStep);
    queue.enqueue(&run(), seq_id, AcceptedRequest { request, kind, cost, payload: None });
}

/// Returns the requests whose payloads must be read.
fn fetches(queue: &mut Queue) -> Vec<RequestId> {
    let fetches = queue.take_effects().fetches;
    let payload = |fetch| match fetch {
        Fetch::Payload { run: found, request, kind, base_model } => {
            assert_eq!((found, kind, base_model.as_str()), (run(), RequestKind::OptimStep, "m"));
            Some(request)
        }
        _ => None,
    };
    fetches.into_iter().filter_map(payload).collect()
}

fn read(queue: &mut Queue, seq_id: i64) {
    let payload = Some((Bytes::from_static(b"payload"), Decoded::new(content(seq_id))));
    queue.payload_read(&run(), &request(seq_id), payload);
}

/// Starts the next request, which must be this one with the payload that was read.
fn start(queue: &mut Queue, seq_id: i64) {
    let items = queue.take(Timestamp(0));
    let [WorkItem::Start(work)] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((&work.request, work.decoded.take()), (&request(seq_id), Some(content(seq_id))));
}

#[test]
fn the_next_payloads_are_prefetched_while_a_request_is_executed() {
    let mut queue = queue();
    (1..=8).for_each(|seq_id| enqueue(&mut queue, seq_id));
    assert_eq!(fetches(&mut queue), [1, 2, 3, 4].map(request));
    (1..=4).rev().for_each(|seq_id| read(&mut queue, seq_id));
    for seq_id in 1..=8 {
        start(&mut queue, seq_id);
        let next = fetches(&mut queue);
        assert_eq!(next, (seq_id + 4 <= 8).then(|| request(seq_id + 4)).into_iter().collect::<Vec<_>>());
        if seq_id + 4 <= 8 {
            read(&mut queue, seq_id + 4);
        }
        queue.finish(&request(seq_id), None, Timestamp(0)).unwrap();
    }
    assert_eq!(queue.held_bytes, 0);
}

#[test]
fn what_arrives_late_does_not_lose_what_is_being_read() {
    let mut queue = queue();
    (2..=5).for_each(|seq_id| enqueue(&mut queue, seq_id));
    assert_eq!(fetches(&mut queue), [2, 3, 4, 5].map(request));
    enqueue(&mut queue, 1);
    assert_eq!(fetches(&mut queue), [request(1)]);
    (1..=5).for_each(|seq_id| read(&mut queue, seq_id));
    for seq_id in 1..=5 {
        start(&mut queue, seq_id);
        queue.finish(&request(seq_id), None, Timestamp(0)).unwrap();
    }
    assert_eq!(queue.counts(), (0, 0));
}

#[test]
fn a_lost_payload_fails_its_own_request_and_not_before_it_is_due() {
    let mut queue = queue();
    (1..=3).for_each(|seq_id| enqueue(&mut queue, seq_id));
    assert_eq!(fetches(&mut queue).len(), 3);
    queue.payload_read(&run(), &request(2), None);
    read(&mut queue, 1);
    read(&mut queue, 3);
    // The payload is read again once no request is before it.
    let effects = queue.take_effects();
    assert_eq!((effects.rejected.len(), effects.fetches.len()), (0, 1));
    start(&mut queue, 1);
    queue.payload_read(&run(), &request(2), None);
    queue.finish(&request(1), None, Timestamp(0)).unwrap();
    assert_eq!(fetches(&mut queue), [request(2)]);
    queue.payload_read(&run(), &request(2), None);
    let rejected = queue.take_effects().rejected;
    assert_eq!(rejected.iter().map(|rejected| rejected.request.clone()).collect::<Vec<_>>(), [request(2)]);
    start(&mut queue, 3);
}

#[test]
fn nothing_is_prefetched_beyond_the_memory_budget() {
    let mut queue = queue();
    queue.held_bytes = HELD_BYTES;
    (1..=3).for_each(|seq_id| enqueue(&mut queue, seq_id));
    assert_eq!(fetches(&mut queue), [request(1)]);
}

#[test]
fn payloads_of_a_revoked_run_are_freed() {
    let mut queue = queue();
    (1..=3).for_each(|seq_id| enqueue(&mut queue, seq_id));
    (1..=2).for_each(|seq_id| read(&mut queue, seq_id));
    assert!(queue.held_bytes > 0);
    queue.revoke_run(&run(), 1);
    assert_eq!(queue.held_bytes, 0);
}

#[test]
fn a_request_that_is_being_cancelled_is_not_pending() {
    let mut queue = queue();
    enqueue(&mut queue, 1);
    queue.suspend_session(&SessionId::new("s"));
    let effects = queue.take_effects();
    let cancelled = BTreeMap::from([(SessionId::new("s"), vec![(request(1), Fence::Run(run(), 1))])]);
    assert_eq!((effects.cancelled, effects.rejected), (cancelled, vec![]));
    // The store had not recorded the cancellation when the rows were read.
    let read = queue.reads_from(&run());
    enqueue(&mut queue, 1);
    assert_eq!((queue.counts(), fetches(&mut queue)), ((0, 0), vec![]));
    // Now it has, and the rows are read again: the session may have been revived in time.
    queue.cancellation_stands(&run(), &request(1));
    assert_ne!(queue.reads_from(&run()), read);
    enqueue(&mut queue, 1);
    assert_eq!(fetches(&mut queue), [request(1)]);
}
