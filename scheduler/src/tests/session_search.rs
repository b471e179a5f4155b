//! Tests of searches for sessions, of projects, and of timelines.

use super::*;
use crate::{FinishReason, SearchPosition, SessionSearch, StatusFilter};

fn search() -> SessionSearch {
    SessionSearch { limit: 10, ..SessionSearch::default() }
}

async fn found(bench: &Bench, search: &SessionSearch) -> Vec<String> {
    let found = bench.scheduler.search_sessions(&bench.me, search).await.unwrap();
    found.sessions.into_iter().map(|session| session.id.to_string()).collect()
}

/// Creates two sessions beside that of the bench, a second apart. Returns them newest first.
async fn two(bench: &Bench) -> (SessionId, SessionId) {
    let mut ids = Vec::new();
    for (name, key) in [("Blue Whale run", "blue"), ("red whale", "red")] {
        bench.pass(Duration::from_secs(1));
        let new = NewSession {
            display_name: Some(name.into()),
            project_id: Some(key.into()),
            user_metadata: serde_json::json!({"colour": key, "n": 3}),
            ..new_session(None)
        };
        ids.push(bench.scheduler.create_session(&bench.me, new).await.unwrap());
    }
    (ids.remove(1), ids.remove(0))
}

#[tokio::test]
async fn every_condition_filters() {
    let bench = bench().await;
    let (red, blue) = two(&bench).await;
    let own = bench.session.clone();
    assert_eq!(found(&bench, &search()).await, [red.as_str(), blue.as_str(), own.as_str()]);
    let named = |name: &str| SessionSearch { display_name: Some(name.into()), ..search() };
    assert_eq!(found(&bench, &named("WHALE")).await, [red.as_str(), blue.as_str()]);
    assert_eq!(found(&bench, &named("run blue")).await, [blue.as_str()]);
    assert_eq!(found(&bench, &named("whales")).await, Vec::<String>::new());
    let by_id = SessionSearch { session_id: Some(own.clone()), ..search() };
    assert_eq!(found(&bench, &by_id).await, [own.as_str()]);
    assert_eq!(found(&bench, &SessionSearch { display_name: Some("red".into()), ..by_id.clone() }).await, [red.as_str(), own.as_str()]);
    let project = |id: &str| SessionSearch { project_ids: Some(vec![id.into()]), ..search() };
    assert_eq!(found(&bench, &project("blue")).await, [blue.as_str()]);
    let metadata = |key: &str, value: &str| {
        let user_metadata = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        SessionSearch { user_metadata, ..search() }
    };
    assert_eq!(found(&bench, &metadata("colour", "red")).await, [red.as_str()]);
    assert_eq!(found(&bench, &metadata("n", "3")).await, [red.as_str(), blue.as_str()]);
    bench.scheduler.finish_session(&bench.me, &red, FinishReason::Errored, None).await.unwrap();
    let status = |status| SessionSearch { statuses: Some(vec![status]), ..search() };
    assert_eq!(found(&bench, &status(StatusFilter::Finished(None))).await, [red.as_str()]);
    assert_eq!(found(&bench, &status(StatusFilter::Finished(Some(vec![FinishReason::Success])))).await, Vec::<String>::new());
    assert_eq!(found(&bench, &status(StatusFilter::Active)).await.len(), 2);
    assert_eq!(found(&bench, &status(StatusFilter::Never)).await, Vec::<String>::new());
    let other = bench.scheduler.search_sessions(&TenantId::new("other"), &by_id).await.unwrap();
    assert_eq!(other.sessions, []);
}

#[tokio::test]
async fn pages_follow_each_other() {
    let bench = bench().await;
    let (red, blue) = two(&bench).await;
    let s = &bench.scheduler;
    let first = s.search_sessions(&bench.me, &SessionSearch { limit: 2, ..search() }).await.unwrap();
    assert_eq!(first.sessions.iter().map(|session| &session.id).collect::<Vec<_>>(), [&red, &blue]);
    let last = &first.sessions[1];
    assert_eq!(first.next, Some(SearchPosition { created_at: last.created_at, session: blue }));
    let rest = s.search_sessions(&bench.me, &SessionSearch { after: first.next, ..search() }).await.unwrap();
    assert_eq!((rest.sessions.len(), &rest.sessions[0].id, rest.next), (1, &bench.session, None));
}

/// Bytes of metadata bound what a search reads, whatever its limit; what it leaves out is on the next pages.
#[tokio::test]
async fn pages_of_large_metadata_are_shorter_and_lose_nothing() {
    let bench = bench().await;
    let mut made = vec![bench.session.to_string()];
    for number in 0..20 {
        bench.pass(Duration::from_secs(1));
        let user_metadata = serde_json::json!({"text": "x".repeat(1 << 20), "even": number % 2 == 0});
        let new = NewSession { user_metadata, ..new_session(None) };
        made.push(bench.scheduler.create_session(&bench.me, new).await.unwrap().to_string());
    }
    made.reverse();
    for (entries, expected, longest) in [
        (BTreeMap::new(), made.clone(), 15),
        (
            BTreeMap::from([("even".to_owned(), "true".to_owned())]),
            made.iter().skip(1).step_by(2).take(10).cloned().collect::<Vec<_>>(),
            10,
        ),
    ] {
        let (mut seen, mut after, mut lengths) = (Vec::new(), None, Vec::new());
        loop {
            let search = SessionSearch { limit: 200, after, user_metadata: entries.clone(), ..search() };
            let page = bench.scheduler.search_sessions(&bench.me, &search).await.unwrap();
            lengths.push(page.sessions.len());
            seen.extend(page.sessions.into_iter().map(|session| session.id.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((seen, lengths[0]), (expected, longest));
    }
}

#[tokio::test]
async fn a_session_moves_between_projects() {
    let bench = bench().await;
    let s = &bench.scheduler;
    s.assign_project(&bench.me, &bench.session, "p").await.unwrap();
    s.assign_project(&bench.me, &bench.session, "q").await.unwrap();
    let project = |id: &str| SessionSearch { project_ids: Some(vec![id.into()]), ..search() };
    assert_eq!(found(&bench, &project("p")).await, Vec::<String>::new());
    assert_eq!(found(&bench, &project("q")).await, [bench.session.as_str()]);
    assert!(is_not_found(s.assign_project(&TenantId::new("other"), &bench.session, "x").await));
}

#[tokio::test]
async fn a_timeline_has_the_requests_in_their_order() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    bench.pass(Duration::from_secs(1));
    let open = bench.submit(&run, 1, RequestKind::Forward).await;
    let timeline = bench.scheduler.session_timeline(&bench.me, &bench.session).await.unwrap();
    let kinds: Vec<_> = timeline.requests.iter().map(|request| (request.kind, request.ended.is_some())).collect();
    assert_eq!(kinds, [(RequestKind::CreateModel, true), (RequestKind::Forward, false)]);
    assert_eq!((&timeline.requests[1].id, timeline.ended_at), (&open, None));
    assert!(is_not_found(bench.scheduler.session_timeline(&TenantId::new("other"), &bench.session).await));
}
