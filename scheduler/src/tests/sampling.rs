use super::*;
use crate::CompletionItem;

#[tokio::test]
async fn samples_start_in_order_of_arrival_and_keep_their_sequence_ids() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let far = 3_000_000_000;
    let first = bench.submit_sample(&sampler, far).await;
    let second = bench.submit_sample(&sampler, 0).await;
    assert_eq!(first.sample_sequence_ids, vec![format!("{}:0", first.request_id), format!("{}:1", first.request_id)]);
    let bench = bench.restart(true).await;
    assert_eq!(bench.submit_sample(&sampler, far).await, first);
    let mut items = bench.items().await;
    while items.len() < 2 {
        items.extend(bench.items().await);
    }
    let mut started: Vec<Work> = items
        .into_iter()
        .map(|item| match item {
            WorkItem::Start(work) => work,
            other => panic!("{other:?}"),
        })
        .collect();
    started.sort_by_key(|work| work.seq_id != far);
    assert_eq!(started[0].request, first.request_id);
    assert_eq!(started[1].request, second.request_id);
    assert_eq!(started[0].sampling_session.as_ref().unwrap().base_model, "base");
    let other = SampleSubmission { num_samples: 3, ..sample(&sampler, 0) };
    assert!(matches!(bench.scheduler.submit_sample(&bench.me, other).await, Err(Error::Mismatch(_))));
}

#[tokio::test]
async fn a_sampling_session_is_idempotent() {
    let bench = bench().await;
    let sampler = bench.sampling_session(4).await;
    assert_eq!(sampler, SamplingSessionId::of_session(&bench.session, 4));
    assert_eq!(bench.sampling_session(4).await, sampler);
    let other = NewSamplingSession { base_model: "other".into(), ..new_sampling(&bench.session, 4, None) };
    assert!(matches!(bench.scheduler.create_sampling_session(&bench.me, other).await, Err(Error::Mismatch(_))));
    let path = Some("tinker://x:train:0/sampler_weights/a".parse().unwrap());
    let missing = NewSamplingSession { model_path: path, ..new_sampling(&bench.session, 5, None) };
    assert!(is_not_found(bench.scheduler.create_sampling_session(&bench.me, missing).await));
}

#[tokio::test]
async fn completions_deliver_each_end_once_and_in_order() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let mut requests = Vec::new();
    for seq_id in 0..3 {
        requests.push(bench.submit_sample(&sampler, seq_id).await.request_id);
    }
    let clone = bench.submit_sample(&sampler, 1_000_000_000).await.request_id;
    let empty = bench.scheduler.completions(&bench.me, &sampler, 0, 0, NO_WAIT).await.unwrap();
    assert_eq!((empty.items.len(), empty.cursor), (0, 0));
    let works: Vec<Work> = bench
        .scheduler
        .take_work()
        .into_iter()
        .filter_map(|item| match item {
            WorkItem::Start(work) => Some(work),
            _ => None,
        })
        .collect();
    let scheduler = bench.scheduler.clone();
    let waiting = tokio::spawn({
        let (tenant, sampler) = (bench.me.clone(), sampler.clone());
        async move { scheduler.completions(&tenant, &sampler, 0, 0, LONG).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    bench.succeed(&works[2]);
    let first = waiting.await.unwrap().unwrap();
    let item = |request: &RequestId, failed, payload_size| CompletionItem {
        request_id: request.clone(),
        failed,
        payload_size,
    };
    assert_eq!(first.items, vec![item(&requests[2], false, 8)]);
    bench.fail(&works[0], "bad prompt");
    bench.succeed(&works[3]);
    bench.poll(&clone).await;
    bench.scheduler.cancel(&bench.me, &requests[1]).await.unwrap();
    let bench = bench.restart(true).await;
    let rest = bench.scheduler.completions(&bench.me, &sampler, 0, first.cursor, LONG).await.unwrap();
    assert_eq!(rest.items, vec![item(&requests[0], true, 0), item(&requests[1], true, 0)]);
    let none = bench.scheduler.completions(&bench.me, &sampler, 0, rest.cursor, NO_WAIT).await.unwrap();
    assert_eq!((none.items.len(), none.cursor), (0, rest.cursor));
    let of_clone = bench.scheduler.completions(&bench.me, &sampler, 1, 0, NO_WAIT).await.unwrap();
    assert_eq!(of_clone.items, vec![item(&clone, false, 17)]);
}

#[tokio::test]
async fn a_sample_can_be_cancelled_while_it_waits_or_runs() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let waiting = bench.submit_sample(&sampler, 0).await.request_id;
    bench.scheduler.cancel(&bench.me, &waiting).await.unwrap();
    assert_eq!(bench.poll(&waiting).await, Poll::Cancelled);
    bench.nothing_ready();
    let running = bench.submit_sample(&sampler, 1).await.request_id;
    let work = bench.start().await;
    bench.scheduler.cancel(&bench.me, &running).await.unwrap();
    bench.scheduler.cancel(&bench.me, &running).await.unwrap();
    assert_eq!(bench.scheduler.take_work(), vec![WorkItem::Cancel(running.clone())]);
    bench.succeed(&work);
    assert_eq!(bench.poll(&running).await, Poll::Cancelled);
    let run = bench.ready_run(0).await;
    let training = bench.submit(&run, 1, RequestKind::Forward).await;
    assert!(matches!(bench.scheduler.cancel(&bench.me, &training).await, Err(Error::Invalid(_))));
    assert!(is_not_found(bench.scheduler.cancel(&bench.me, &RequestId::new("x")).await));
}

/// More results than one transaction acknowledges.
#[tokio::test]
async fn many_results_are_acknowledged_at_once() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let request = bench.submit_sample(&sampler, 0).await.request_id;
    bench.succeed(&bench.start().await);
    bench.poll(&request).await;
    let unknown = (0..1_000).map(|number| RequestId::new(format!("unknown{number}")));
    let all: Vec<RequestId> = unknown.chain([request.clone()]).collect();
    bench.scheduler.acknowledge(&bench.me, &all).await.unwrap();
    bench.pass(Duration::from_secs(601));
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    assert!(matches!(bench.scheduler.poll(&bench.me, &request, NO_WAIT).await, Err(Error::Gone { .. })));
}

#[tokio::test]
async fn acknowledged_results_are_dropped_a_while_later() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let request = bench.submit_sample(&sampler, 0).await.request_id;
    bench.succeed(&bench.start().await);
    bench.poll(&request).await;
    bench.scheduler.acknowledge(&bench.me, &[request.clone(), RequestId::new("x")]).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    bench.poll(&request).await;
    bench.pass(Duration::from_secs(601));
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    assert!(matches!(bench.scheduler.poll(&bench.me, &request, NO_WAIT).await, Err(Error::Gone { .. })));
    let events = bench.scheduler.completions(&bench.me, &sampler, 0, 0, NO_WAIT).await.unwrap();
    assert_eq!(events.items.len(), 1, "the event outlives the result");
}

/// Rows of a session that lasts for long do not grow with the number of its samples.
#[tokio::test]
async fn acknowledged_samples_leave_no_rows_but_the_last_event() {
    const COUNT: &str = "SELECT count(*) FROM requests WHERE sampling_session_id IS NOT NULL";
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let conn = &mut crate::store::db::connect_as_system(&bench.database.database).await.unwrap();
    let mut samples = Vec::new();
    for seq_id in 0..5 {
        samples.push(bench.submit_sample(&sampler, seq_id).await.request_id);
        let work = bench.start().await;
        // The one in the middle fails, and of failures an overview is kept.
        if seq_id == 2 { bench.fail(&work, "too long") } else { bench.succeed(&work) }
        let _ = bench.scheduler.poll(&bench.me, &samples[seq_id as usize], NO_WAIT).await;
    }
    bench.scheduler.acknowledge(&bench.me, &samples).await.unwrap();
    bench.pass(Duration::from_secs(299));
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.pass(Duration::from_secs(299));
    bench.scheduler.maintain().await.unwrap();
    let again = bench.poll(&samples[0]).await;
    assert!(matches!(again, Poll::Succeeded { .. }), "for ten minutes it can be retrieved again: {again:?}");
    bench.pass(Duration::from_secs(3));
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(crate::store::db::sql(COUNT).scalar::<i64>(conn).await.unwrap(), Some(2));
    for (seq_id, sample) in samples.iter().enumerate() {
        let poll = bench.scheduler.poll(&bench.me, sample, NO_WAIT).await;
        match seq_id {
            2 | 4 => assert!(matches!(poll, Err(Error::Gone { .. })), "{seq_id}: {poll:?}"),
            _ => assert!(is_not_found(poll), "{seq_id}"),
        }
    }
    // Numbers of events go on.
    let last = bench.scheduler.completions(&bench.me, &sampler, 0, 0, NO_WAIT).await.unwrap();
    assert_eq!((last.items.len(), last.cursor), (2, 5));
    let another = bench.submit_sample(&sampler, 5).await.request_id;
    bench.succeed(&bench.start().await);
    assert!(matches!(bench.poll(&another).await, Poll::Succeeded { .. }));
    let next = bench.scheduler.completions(&bench.me, &sampler, 0, last.cursor, NO_WAIT).await.unwrap();
    assert_eq!((next.items.len(), next.cursor), (1, 6));
}
