//! Access to the table `agent_sessions`.

use trainyard_protocol::{AgentSessionId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::{as_i64, as_u64, failed};
use crate::{AgentKey, AgentLimits, AgentSession, AgentState, Error, NewAgentSession, Page, Timestamp};

/// Maximum number of sessions that one statement deletes.
const SESSIONS: i64 = 50;

/// Inserts a session without turns.
pub(crate) async fn insert_agent_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &AgentSessionId,
    new: &NewAgentSession,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_agent_session
        INSERT INTO agent_sessions (id, tenant, key_digest, base_model, model_path, max_tokens, max_turns, max_tools,
            seconds, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let inserted = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(new.key_digest.as_slice())
        .bind(new.base_model.as_str())
        .bind(new.model_path.as_deref())
        .bind(as_i64(new.limits.max_tokens))
        .bind(as_i64(new.limits.max_turns))
        .bind(new.limits.max_tools.map(as_i64))
        .bind(as_i64(new.limits.seconds))
        .bind(now.0)
        .bind(expires_at.0)
        .execute(conn)
        .await;
    inserted.map(drop).map_err(failed("create an agent session"))
}

/// Returns the number of a tenant's open sessions, counted up to `most`.
pub(crate) async fn open_agent_sessions(
    conn: &mut Conn,
    tenant: &TenantId,
    now: Timestamp,
    most: u64,
) -> Result<u64, Error> {
    const SQL: &str = "-- open_agent_sessions
        SELECT count(*) FROM (
            SELECT 1 AS found FROM agent_sessions WHERE tenant = $1 AND expires_at > $2 LIMIT $3) AS counted";
    let counted = sql(SQL).bind(tenant.as_str()).bind(now.0).bind(as_i64(most)).scalar(conn).await;
    Ok(as_u64(counted.map_err(failed("count agent sessions"))?.unwrap_or(0)))
}

macro_rules! columns {
    () => {
        "SELECT id, base_model, model_path, max_tokens, max_turns, max_tools, seconds, turns, tokens, prompt_tokens,
            reward, created_at, expires_at, ended FROM agent_sessions "
    };
}

/// Returns a session of the tenant.
pub(crate) async fn agent_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &AgentSessionId,
    now: Timestamp,
) -> Result<AgentSession, Error> {
    const SQL: &str = concat!(
        "-- agent_session
        ",
        columns!(),
        "WHERE id = $1 AND tenant = $2"
    );
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let row = found.map_err(failed("find an agent session"))?;
    to_session(&row.ok_or_else(|| Error::not_found("agent session", id))?, now)
}

/// Lists the sessions of a tenant, newest first.
pub(crate) async fn list_agent_sessions(
    conn: &mut Conn,
    tenant: &TenantId,
    page: Page,
    now: Timestamp,
) -> Result<Vec<AgentSession>, Error> {
    const SQL: &str = concat!(
        "-- list_agent_sessions
        ",
        columns!(),
        "WHERE tenant = $1 ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3"
    );
    let list = sql(SQL).bind(tenant.as_str()).bind(i64::from(page.limit)).bind(as_i64(page.offset));
    let rows = list.fetch_all(conn).await.map_err(failed("list agent sessions"))?;
    rows.iter().map(|row| to_session(row, now)).collect()
}

fn to_session(row: &Row, now: Timestamp) -> Result<AgentSession, Error> {
    let (created_at, expires_at) = (Timestamp(column(row, "created_at")?), Timestamp(column(row, "expires_at")?));
    let state = match column::<bool>(row, "ended")? {
        true => AgentState::Ended,
        false if expires_at <= now => AgentState::Expired,
        false => AgentState::Open,
    };
    Ok(AgentSession {
        id: AgentSessionId::new(column::<String>(row, "id")?),
        base_model: column(row, "base_model")?,
        model_path: column(row, "model_path")?,
        limits: AgentLimits {
            max_tokens: as_u64(column(row, "max_tokens")?),
            max_turns: as_u64(column(row, "max_turns")?),
            max_tools: column::<Option<i64>>(row, "max_tools")?.map(as_u64),
            seconds: as_u64(column(row, "seconds")?),
        },
        turns: as_u64(column(row, "turns")?),
        tokens: as_u64(column(row, "tokens")?),
        prompt_tokens: as_u64(column(row, "prompt_tokens")?),
        reward: number(row, "reward")?,
        created_at,
        expires_at,
        state,
    })
}

/// Returns a column that holds a JSON number.
pub(super) fn number(row: &Row, name: &'static str) -> Result<Option<f64>, Error> {
    let text: Option<String> = column(row, name)?;
    let parse = |text: String| {
        text.parse().map_err(|_| Error::store("read a row", format!("column {name} holds {text:?}, not a number")))
    };
    text.map(parse).transpose()
}

/// Returns the holder of a key by the key's SHA-256.
pub(crate) async fn agent_key(conn: &mut Conn, digest: &[u8; 32]) -> Result<Option<AgentKey>, Error> {
    const SQL: &str = "-- agent_key
        SELECT id, tenant, expires_at FROM agent_sessions WHERE key_digest = $1";
    let row = sql(SQL).bind(digest.as_slice()).fetch_optional(conn).await.map_err(failed("find an agent's key"))?;
    let key = |row| {
        Ok(AgentKey {
            session: AgentSessionId::new(column::<String>(&row, "id")?),
            tenant: TenantId::new(column::<String>(&row, "tenant")?),
            expires_at: Timestamp(column(&row, "expires_at")?),
        })
    };
    row.map(key).transpose()
}

/// Ends a session, unless it is over. Returns whether the session exists.
pub(crate) async fn end_agent_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &AgentSessionId,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- end_agent_session
        UPDATE agent_sessions SET ended = ended OR expires_at > $3,
            expires_at = CASE WHEN expires_at > $3 THEN $3 ELSE expires_at END
        WHERE id = $1 AND tenant = $2";
    let ended = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).bind(now.0).execute(conn).await;
    Ok(ended.map_err(failed("end an agent session"))? == 1)
}

/// Sets the reward of a whole session. Returns whether the session exists.
pub(crate) async fn reward_agent_session(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &AgentSessionId,
    reward: f64,
) -> Result<bool, Error> {
    const SQL: &str = "-- reward_agent_session
        UPDATE agent_sessions SET reward = $3 WHERE id = $1 AND tenant = $2";
    let set = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).bind(reward.to_string()).execute(conn).await;
    Ok(set.map_err(failed("store a reward"))? == 1)
}

/// Turns that are added to a session's counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddedTurns {
    pub(crate) turns: u64,
    pub(crate) tokens: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) bytes: u64,
}

/// Counts new turns of a session that was not ended. Returns the number of turns with them; `None` if the session does
/// not exist or was ended.
pub(crate) async fn count_agent_turns(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &AgentSessionId,
    added: AddedTurns,
) -> Result<Option<u64>, Error> {
    const SQL: &str = "-- count_agent_turns
        UPDATE agent_sessions SET turns = turns + $3, tokens = tokens + $4, prompt_tokens = prompt_tokens + $5,
            size_bytes = size_bytes + $6
        WHERE id = $1 AND tenant = $2 AND NOT ended RETURNING turns";
    let counted = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(as_i64(added.turns))
        .bind(as_i64(added.tokens))
        .bind(as_i64(added.prompt_tokens))
        .bind(as_i64(added.bytes))
        .scalar::<i64>(conn)
        .await;
    Ok(counted.map_err(failed("record a turn"))?.map(as_u64))
}

/// Deletes the turns of sessions that were over before `before`, then the sessions. Returns whether there may be more.
pub(crate) async fn collect_agent_sessions(conn: &mut Conn, before: Timestamp) -> Result<bool, Error> {
    const SQLITE: &str = "-- collect_agent_sessions
        SELECT id FROM agent_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2";
    const POSTGRES: &str = "-- collect_agent_sessions
        SELECT id FROM agent_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED";
    const DELETE_SQLITE: &str = "-- collect_agent_sessions: delete
        DELETE FROM agent_sessions WHERE id IN (SELECT value FROM json_each($1))";
    const DELETE_POSTGRES: &str = "-- collect_agent_sessions: delete
        DELETE FROM agent_sessions WHERE id = ANY($1)";
    let doing = "delete agent sessions";
    let found = sql_by(SQLITE, POSTGRES).bind(before.0).bind(SESSIONS).scalars(conn).await;
    let sessions: Vec<String> = found.map_err(failed(doing))?;
    if sessions.is_empty() {
        return Ok(false);
    }
    if super::agent_turns::delete_agent_turns(conn, &sessions).await? {
        return Ok(true);
    }
    let is_full = sessions.len() as u64 >= as_u64(SESSIONS);
    let deleted = sql_by(DELETE_SQLITE, DELETE_POSTGRES).bind(sessions).execute(conn).await;
    deleted.map_err(failed(doing))?;
    Ok(is_full)
}
