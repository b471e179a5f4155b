//! Agent sessions with their turns, and every statement about them.

use trainyard_protocol::{AgentSessionId, RequestId, TenantId};

use super::fill::run;
use super::{NOW, Plans};
use crate::store::agent_sessions::{self, AddedTurns};
use crate::store::agent_turns::{self, TurnReward};
use crate::store::db::{Conn, Dialect, Value};
use crate::{AgentLimits, NewAgentSession, NewAgentTurn, Page, Timestamp};

const DAY: i64 = 24 * 3_600_000;
const T: Timestamp = Timestamp(NOW);
/// Number of sessions that are over, and of turns of all of them.
const ENDED: i64 = 50_000;
/// Number of open sessions.
const OPEN: i64 = 200;
/// Number of turns of the first open session, each of which continues the one before.
const TURNS: i64 = 400;
/// Number of sessions whose retention is over.
const GARBAGE: i64 = 20;

macro_rules! numbered {
    ($insert:literal, $select:literal) => {
        concat!(
            $insert,
            " WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1) ",
            $select
        )
    };
}

const SESSIONS_SQLITE: &str = numbered!(
    "INSERT INTO agent_sessions (id, tenant, key_digest, base_model, max_tokens, max_turns, seconds, created_at, expires_at)",
    "SELECT $2 || i, 'me', CAST($2 || i AS BLOB), 'base', 1, 1, 1, $3 - i, $3 + i FROM n"
);
const SESSIONS_POSTGRES: &str = numbered!(
    "INSERT INTO agent_sessions (id, tenant, key_digest, base_model, max_tokens, max_turns, seconds, created_at, expires_at)",
    "SELECT $2 || i, 'me', convert_to($2 || i, 'UTF8'), 'base', 1, 1, 1, $3 - i, $3 + i FROM n"
);
/// Turns, in turn of the sessions with a prefix.
const TURNS_OF_SESSIONS: &str = numbered!(
    "INSERT INTO agent_turns (session_id, number, tenant, request_id, choice, parent, digest, messages, weights,
        finish_reason, content, prompt, sampled, logprobs, created_at)",
    "SELECT $2 || (1 + i % $3), 1 + i / $3, 'me', 'r' || i, 0, CASE WHEN i >= $3 THEN i / $3 END, 'd' || i, 2, 'base', 'stop',
        '{}', $4, $4, $4, CAST(1 AS BIGINT) FROM n"
);

pub(super) async fn fill(conn: &mut Conn) {
    let int = Value::from;
    let bytes = || Value::from(&b"0123456789abcdef"[..]);
    let is_sqlite = conn.dialect() == Dialect::Sqlite;
    conn.begin().await.unwrap();
    for (count, prefix, at) in [(ENDED, "past", NOW - DAY), (OPEN, "open", NOW), (GARBAGE, "gone", NOW - 9 * DAY)] {
        let text = if is_sqlite { SESSIONS_SQLITE } else { SESSIONS_POSTGRES };
        run(conn, text, vec![int(count), prefix.into(), int(at)]).await;
    }
    for (turns, prefix, sessions) in [(ENDED, "past", ENDED), (TURNS, "open", 1), (GARBAGE * 30, "gone", GARBAGE)] {
        run(conn, TURNS_OF_SESSIONS, vec![int(turns), prefix.into(), int(sessions), bytes()]).await;
    }
    conn.commit().await.unwrap();
}

fn me() -> TenantId {
    TenantId::new("me")
}

pub(super) async fn work(plans: &mut Plans) {
    let (open, new) = (AgentSessionId::new("open1"), AgentSessionId::new("new"));
    let limits = AgentLimits { max_tokens: 1, max_turns: 1, max_tools: None, seconds: 1 };
    let session = NewAgentSession { key_digest: [7; 32], base_model: "base".to_owned(), model_path: None, limits };
    let turn = NewAgentTurn {
        request: RequestId::new("new"),
        choice: 0,
        parent: Some(1),
        branch_reason: None,
        digest: "d".to_owned(),
        messages: 2,
        weights: "base".to_owned(),
        finish_reason: "stop".to_owned(),
        content: "{}".to_owned(),
        prompt: vec![1],
        sampled: vec![2],
        logprobs: vec![-1.0],
    };
    let reward = |is_branch| TurnReward { request: &turn.request, choice: 0, reward: 1.0, is_branch };
    plans
        .step(async |conn| {
            agent_sessions::open_agent_sessions(conn, &me(), T, 4_096).await?;
            agent_sessions::insert_agent_session(conn, &me(), &new, &session, T, T).await?;
            agent_sessions::reward_agent_session(conn, &me(), &new, 1.0).await?;
            agent_sessions::end_agent_session(conn, &me(), &new, T).await
        })
        .await;
    plans.step(async |conn| agent_sessions::agent_key(conn, &[7; 32]).await).await;
    for offset in [0, 1_000] {
        let page = Page { limit: 100, offset };
        plans.step(async |conn| agent_sessions::list_agent_sessions(conn, &me(), page, T).await).await;
    }
    plans
        .step(async |conn| {
            agent_sessions::agent_session(conn, &me(), &open, T).await?;
            agent_turns::has_agent_turns(conn, &open, &turn.request).await?;
            agent_sessions::count_agent_turns(conn, &me(), &open, AddedTurns::default()).await?;
            agent_turns::insert_agent_turn(conn, &me(), &open, 9_999, &turn, T).await?;
            agent_turns::reward_agent_turn(conn, &me(), &open, &reward(false)).await?;
            agent_turns::reward_agent_turn(conn, &me(), &open, &reward(true)).await
        })
        .await;
    let digests = || vec!["d399".to_owned(), "none".to_owned()];
    plans.step(async |conn| agent_turns::turns_with_digests(conn, &me(), &open, digests()).await).await;
    plans.step(async |conn| agent_turns::agent_path(conn, &open, 300).await).await;
    plans.step(async |conn| agent_turns::agent_turns(conn, &me(), &open).await).await;
    for before in [NOW - 5 * DAY, 1] {
        plans
            .step(async |conn| {
                while agent_sessions::collect_agent_sessions(conn, Timestamp(before)).await? {}
                Ok(())
            })
            .await;
    }
}
