//! Tests of agent sessions: limits of time and number, turns, rewards, and what is left after their retention.

use trainyard_protocol::AgentSessionId;

use super::*;
use crate::budgets::AGENT_SESSIONS;
use crate::{AgentLimits, AgentSession, AgentState, NewAgentSession, NewAgentTurn, Page, Rewarded};

const PAGE: Page = Page { limit: 10, offset: 0 };
const LIMITS: AgentLimits = AgentLimits { max_tokens: 100, max_turns: 10, max_tools: Some(2), seconds: 60 };

fn new(key: u32) -> NewAgentSession {
    let mut key_digest = [0; 32];
    key_digest[..4].copy_from_slice(&key.to_le_bytes());
    NewAgentSession { key_digest, base_model: "base".to_owned(), model_path: None, limits: LIMITS }
}

async fn create(bench: &Bench, key: u32) -> AgentSession {
    bench.scheduler.create_agent_session(&bench.me, new(key)).await.unwrap()
}

fn turn(request: &str, choice: u32, parent: Option<u64>, digest: &str) -> NewAgentTurn {
    NewAgentTurn {
        request: RequestId::new(request),
        choice,
        parent,
        branch_reason: None,
        digest: digest.to_owned(),
        messages: 2,
        weights: "base".to_owned(),
        finish_reason: "stop".to_owned(),
        content: "{}".to_owned(),
        prompt: vec![1, 70_000],
        sampled: vec![3, u32::MAX, 5],
        logprobs: vec![-0.5, -1.5e-39, f32::MIN],
    }
}

async fn record(bench: &Bench, id: &AgentSessionId, turns: Vec<NewAgentTurn>) {
    bench.scheduler.record_agent_turns(&bench.me, id, turns).await.unwrap();
}

#[tokio::test]
async fn an_agent_session_expires_and_is_ended_by_the_clock_of_the_database() {
    let bench = bench().await;
    let first = create(&bench, 1).await;
    bench.pass(Duration::from_millis(1));
    let second = create(&bench, 2).await;
    assert_eq!((first.state, first.expires_at), (AgentState::Open, first.created_at.plus(Duration::from_secs(60))));
    assert_eq!((first.limits, first.turns, first.reward), (LIMITS, 0, None));
    let held = bench.scheduler.directory().agent_key(&new(1).key_digest).await.unwrap().unwrap();
    assert_eq!((held.session, held.tenant, held.expires_at), (first.id.clone(), bench.me.clone(), first.expires_at));
    assert_eq!(bench.scheduler.directory().agent_key(&[9; 32]).await.unwrap(), None);
    bench.pass(Duration::from_millis(29_999));
    for _ in 0..2 {
        bench.scheduler.end_agent_session(&bench.me, &first.id).await.unwrap();
    }
    bench.pass(Duration::from_millis(30_001));
    bench.scheduler.end_agent_session(&bench.me, &second.id).await.unwrap();
    let listed = bench.scheduler.agent_sessions(&bench.me, PAGE).await.unwrap();
    let states: Vec<_> = listed.iter().map(|session| (&session.id, session.state)).collect();
    assert_eq!(states, [(&second.id, AgentState::Expired), (&first.id, AgentState::Ended)]);
    let ended = bench.scheduler.agent_session(&bench.me, &first.id).await.unwrap();
    assert_eq!((ended.expires_at, ended.limits), (first.created_at.plus(Duration::from_secs(30)), LIMITS));
}

#[tokio::test]
async fn turns_are_recorded_once_and_survive_a_kill() {
    let mut bench = bench().await;
    let id = create(&bench, 1).await.id;
    let (a, b) = (turn("r1", 0, None, "d1"), turn("r1", 1, None, "d1"));
    for _ in 0..2 {
        record(&bench, &id, vec![a.clone(), b.clone()]).await;
    }
    let next = turn("r2", 0, Some(2), "d2");
    record(&bench, &id, vec![next.clone()]).await;
    bench = bench.restart(true).await;
    let (s, me) = (&bench.scheduler, &bench.me);
    let turns = s.agent_turns(me, &id).await.unwrap();
    let read: Vec<_> = turns.iter().map(|found| (found.number, &found.turn)).collect();
    assert_eq!(read, [(1, &a), (2, &b), (3, &next)]);
    assert_eq!(turns[1].id(), "r1.1");
    assert_eq!(s.agent_path(me, &id, 3).await.unwrap(), turns[1..]);
    let matches = s.agent_matches(me, &id, vec!["d2".into(), "none".into(), "d1".into()]).await.unwrap();
    let matches: Vec<_> = matches.iter().map(|found| (found.number, found.digest.as_str(), found.choice)).collect();
    assert_eq!(matches, [(1, "d1", 0), (2, "d1", 1), (3, "d2", 0)]);
    let session = s.agent_session(me, &id).await.unwrap();
    assert_eq!((session.turns, session.tokens, session.prompt_tokens), (3, 9, 6));
}

#[tokio::test]
async fn an_ended_session_takes_no_turn() {
    let bench = bench().await;
    let id = create(&bench, 1).await.id;
    bench.scheduler.end_agent_session(&bench.me, &id).await.unwrap();
    let refused = bench.scheduler.record_agent_turns(&bench.me, &id, vec![turn("r", 0, None, "")]).await;
    assert!(matches!(refused, Err(Error::Gone { what: "agent session", .. })), "{refused:?}");
    assert_eq!(bench.scheduler.agent_turns(&bench.me, &id).await.unwrap(), []);
}

#[tokio::test]
async fn rewards_are_kept_exactly() {
    let bench = bench().await;
    let id = create(&bench, 1).await.id;
    record(&bench, &id, vec![turn("r", 0, None, "")]).await;
    let (s, me, request) = (&bench.scheduler, &bench.me, RequestId::new("r"));
    s.reward_agent(me, &id, Rewarded::Session, 0.1 + 0.2).await.unwrap();
    s.reward_agent(me, &id, Rewarded::Turn(request.clone(), 0), -1e-300).await.unwrap();
    s.reward_agent(me, &id, Rewarded::Branch(request.clone(), 0), 7.0).await.unwrap();
    assert_eq!(s.agent_session(me, &id).await.unwrap().reward, Some(0.1 + 0.2));
    let found = &s.agent_turns(me, &id).await.unwrap()[0];
    assert_eq!((found.reward, found.branch_reward), (Some(-1e-300), Some(7.0)));
    assert!(is_not_found(s.reward_agent(me, &id, Rewarded::Turn(request, 1), 1.0).await));
    assert!(s.reward_agent(me, &id, Rewarded::Session, f64::NAN).await.is_err());
}

#[tokio::test]
async fn another_tenant_finds_nothing() {
    let bench = bench().await;
    let (id, other) = (create(&bench, 1).await.id, TenantId::new("other"));
    record(&bench, &id, vec![turn("r", 0, None, "d")]).await;
    let s = &bench.scheduler;
    assert!(is_not_found(s.agent_session(&other, &id).await));
    assert!(is_not_found(s.end_agent_session(&other, &id).await));
    assert!(is_not_found(s.reward_agent(&other, &id, Rewarded::Session, 1.0).await));
    assert!(s.record_agent_turns(&other, &id, vec![turn("q", 0, None, "")]).await.is_err());
    assert_eq!(s.agent_turns(&other, &id).await.unwrap(), []);
    assert_eq!(s.agent_matches(&other, &id, vec!["d".into()]).await.unwrap(), []);
    assert_eq!(s.agent_sessions(&other, PAGE).await.unwrap(), []);
}

#[tokio::test]
async fn a_tenant_has_so_many_open_agent_sessions() {
    let bench = bench().await;
    for key in 0..AGENT_SESSIONS as u32 {
        create(&bench, key).await;
    }
    let refused = bench.scheduler.create_agent_session(&bench.me, new(u32::MAX)).await.unwrap_err();
    assert!(refused.to_string().starts_with("agent_sessions: 4096 of at most 4096"), "{refused}");
    bench.pass(Duration::from_secs(60));
    create(&bench, u32::MAX).await;
}

#[tokio::test]
async fn nothing_is_left_of_an_agent_session_after_its_retention() {
    let bench = bench().await;
    let (old, young) = (create(&bench, 1).await.id, create(&bench, 2).await.id);
    for request in 0..150 {
        record(&bench, &old, vec![turn(&format!("r{request}"), 0, None, "d")]).await;
    }
    bench.scheduler.end_agent_session(&bench.me, &old).await.unwrap();
    bench.pass(Duration::from_secs(2 * 24 * 3600 + 30));
    bench.scheduler.maintain().await.unwrap();
    assert!(is_not_found(bench.scheduler.agent_session(&bench.me, &old).await));
    assert_eq!(bench.scheduler.agent_turns(&bench.me, &old).await.unwrap(), []);
    bench.scheduler.agent_session(&bench.me, &young).await.unwrap();
    assert_eq!(bench.scheduler.directory().agent_key(&new(1).key_digest).await.unwrap(), None);
}

#[tokio::test]
async fn turns_count_against_the_storage_quota() {
    let policy = TenantPolicy { max_storage_bytes: std::num::NonZeroU64::new(40), ..TenantPolicy::default() };
    let bench = granted(policy).await;
    let id = create(&bench, 1).await.id;
    bench.scheduler.admit_agent_turn(&bench.me).await.unwrap();
    record(&bench, &id, vec![turn("r", 0, None, ""), turn("r", 1, None, "")]).await;
    let refused = bench.scheduler.admit_agent_turn(&bench.me).await;
    assert!(matches!(refused, Err(Error::Quota(_))), "{refused:?}");
}
