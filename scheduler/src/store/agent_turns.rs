//! Access to the table `agent_turns`.

use trainyard_protocol::{AgentSessionId, RequestId, TenantId};

use super::agent_sessions::number;
use super::db::{Conn, Row, Sql, column, sql, sql_by};
use super::{as_i64, as_u64, failed};
use crate::{AgentMatch, AgentTurn, Error, NewAgentTurn, Timestamp};

/// Maximum number of turns that one statement deletes: each may take some hundred KiB.
const ROWS: i64 = 100;

/// Inserts a turn with the number `number`.
pub(crate) async fn insert_agent_turn(
    conn: &mut Conn,
    tenant: &TenantId,
    session: &AgentSessionId,
    number: u64,
    new: &NewAgentTurn,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_agent_turn
        INSERT INTO agent_turns (session_id, number, tenant, request_id, choice, parent, branch_reason, digest, messages,
            weights, finish_reason, content, prompt, sampled, logprobs, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    let (prompt, sampled) = (bytes_of(&new.prompt), bytes_of(&new.sampled));
    let logprobs: Vec<u8> = new.logprobs.iter().flat_map(|logprob| logprob.to_le_bytes()).collect();
    let inserted = sql(SQL)
        .bind(session.as_str())
        .bind(as_i64(number))
        .bind(tenant.as_str())
        .bind(new.request.as_str())
        .bind(i64::from(new.choice))
        .bind(new.parent.map(as_i64))
        .bind(new.branch_reason.as_deref())
        .bind(new.digest.as_str())
        .bind(as_i64(new.messages))
        .bind(new.weights.as_str())
        .bind(new.finish_reason.as_str())
        .bind(new.content.as_str())
        .bind(prompt.as_slice())
        .bind(sampled.as_slice())
        .bind(logprobs.as_slice())
        .bind(now.0)
        .execute(conn)
        .await;
    inserted.map(drop).map_err(failed("record a turn"))
}

/// Returns whether a request's turns are recorded.
pub(crate) async fn has_agent_turns(
    conn: &mut Conn,
    session: &AgentSessionId,
    request: &RequestId,
) -> Result<bool, Error> {
    const SQL: &str = "-- has_agent_turns
        SELECT EXISTS (SELECT 1 FROM agent_turns WHERE session_id = $1 AND request_id = $2)";
    let found = sql(SQL).bind(session.as_str()).bind(request.as_str()).scalar(conn).await;
    Ok(found.map_err(failed("find a turn"))?.unwrap_or(false))
}

/// Returns the turns of a session whose conversations have one of these digests, oldest first.
pub(crate) async fn turns_with_digests(
    conn: &mut Conn,
    tenant: &TenantId,
    session: &AgentSessionId,
    digests: Vec<String>,
) -> Result<Vec<AgentMatch>, Error> {
    const SQLITE: &str = "-- turns_with_digests
        SELECT number, digest, request_id, choice FROM agent_turns
        WHERE session_id = $1 AND tenant = $2 AND digest IN (SELECT value FROM json_each($3)) ORDER BY number";
    const POSTGRES: &str = "-- turns_with_digests
        SELECT number, digest, request_id, choice FROM agent_turns
        WHERE session_id = $1 AND tenant = $2 AND digest = ANY($3) ORDER BY number";
    let found = sql_by(SQLITE, POSTGRES).bind(session.as_str()).bind(tenant.as_str()).bind(digests).fetch_all(conn);
    let read = |row: &Row| {
        Ok(AgentMatch {
            number: as_u64(column(row, "number")?),
            digest: column(row, "digest")?,
            request: RequestId::new(column::<String>(row, "request_id")?),
            choice: choice(row)?,
        })
    };
    found.await.map_err(failed("find a turn"))?.iter().map(read).collect()
}

macro_rules! columns {
    ($of:literal) => {
        concat!(
            "SELECT ",
            $of,
            "number AS number, request_id, choice, ",
            $of,
            "parent AS parent, branch_reason, digest, messages,
            weights, finish_reason, content, prompt, sampled, logprobs, reward, branch_reward, created_at "
        )
    };
}

/// Returns a turn with those that it continues, from the first one.
pub(crate) async fn agent_path(
    conn: &mut Conn,
    session: &AgentSessionId,
    number: u64,
) -> Result<Vec<AgentTurn>, Error> {
    const SQL: &str = concat!(
        "-- agent_path
        WITH RECURSIVE path (number, parent) AS (
            SELECT number, parent FROM agent_turns WHERE session_id = $1 AND number = $2
            UNION ALL
            SELECT agent_turns.number, agent_turns.parent FROM path CROSS JOIN agent_turns
            WHERE agent_turns.session_id = $1 AND agent_turns.number = path.parent)
        ",
        columns!("agent_turns."),
        "FROM path CROSS JOIN agent_turns
        WHERE agent_turns.session_id = $1 AND agent_turns.number = path.number ORDER BY path.number"
    );
    read_turns(sql(SQL).bind(session.as_str()).bind(as_i64(number)), conn).await
}

/// Returns all turns of a session, oldest first. A session has few: see
/// [`AGENT_TURNS`](crate::budgets::AGENT_TURNS).
pub(crate) async fn agent_turns(
    conn: &mut Conn,
    tenant: &TenantId,
    session: &AgentSessionId,
) -> Result<Vec<AgentTurn>, Error> {
    const SQL: &str = concat!(
        "-- agent_turns
        ",
        columns!(""),
        "FROM agent_turns WHERE session_id = $1 AND tenant = $2 ORDER BY number"
    );
    read_turns(sql(SQL).bind(session.as_str()).bind(tenant.as_str()), conn).await
}

async fn read_turns(statement: Sql<'_>, conn: &mut Conn) -> Result<Vec<AgentTurn>, Error> {
    let rows = statement.fetch_all(conn).await.map_err(failed("read turns"))?;
    rows.iter().map(to_turn).collect()
}

fn to_turn(row: &Row) -> Result<AgentTurn, Error> {
    let turn = NewAgentTurn {
        request: RequestId::new(column::<String>(row, "request_id")?),
        choice: choice(row)?,
        parent: column::<Option<i64>>(row, "parent")?.map(as_u64),
        branch_reason: column(row, "branch_reason")?,
        digest: column(row, "digest")?,
        messages: as_u64(column(row, "messages")?),
        weights: column(row, "weights")?,
        finish_reason: column(row, "finish_reason")?,
        content: column(row, "content")?,
        prompt: words(row, "prompt")?.into_iter().map(u32::from_le_bytes).collect(),
        sampled: words(row, "sampled")?.into_iter().map(u32::from_le_bytes).collect(),
        logprobs: words(row, "logprobs")?.into_iter().map(f32::from_le_bytes).collect(),
    };
    Ok(AgentTurn {
        number: as_u64(column(row, "number")?),
        turn,
        reward: number(row, "reward")?,
        branch_reward: number(row, "branch_reward")?,
        created_at: Timestamp(column(row, "created_at")?),
    })
}

fn choice(row: &Row) -> Result<u32, Error> {
    let choice: i64 = column(row, "choice")?;
    u32::try_from(choice).map_err(|_| Error::store("read a row", format!("column choice holds {choice}")))
}

fn bytes_of(tokens: &[u32]) -> Vec<u8> {
    tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
}

/// Returns the words of four bytes that a column consists of.
fn words(row: &Row, name: &'static str) -> Result<Vec<[u8; 4]>, Error> {
    let bytes: Vec<u8> = column(row, name)?;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::store(
            "read a row",
            format!("column {name} has {} bytes, not a multiple of 4", bytes.len()),
        ));
    }
    Ok(words.to_vec())
}

/// A reward for a turn, or for the branch that ends with it.
pub(crate) struct TurnReward<'a> {
    pub(crate) request: &'a RequestId,
    pub(crate) choice: u32,
    pub(crate) reward: f64,
    pub(crate) is_branch: bool,
}

/// Sets the reward of a turn, or of the branch that ends with it. Returns whether the turn exists.
pub(crate) async fn reward_agent_turn(
    conn: &mut Conn,
    tenant: &TenantId,
    session: &AgentSessionId,
    new: &TurnReward<'_>,
) -> Result<bool, Error> {
    const TURN: &str = "-- reward_agent_turn
        UPDATE agent_turns SET reward = $5 WHERE session_id = $1 AND request_id = $2 AND choice = $3 AND tenant = $4";
    const BRANCH: &str = "-- reward_agent_turn: branch
        UPDATE agent_turns SET branch_reward = $5
        WHERE session_id = $1 AND request_id = $2 AND choice = $3 AND tenant = $4";
    let set = sql(if new.is_branch { BRANCH } else { TURN })
        .bind(session.as_str())
        .bind(new.request.as_str())
        .bind(i64::from(new.choice))
        .bind(tenant.as_str())
        .bind(new.reward.to_string())
        .execute(conn)
        .await;
    Ok(set.map_err(failed("store a reward"))? == 1)
}

/// Deletes some of the turns of some sessions. Returns whether there may be more.
pub(crate) async fn delete_agent_turns(conn: &mut Conn, sessions: &[String]) -> Result<bool, Error> {
    const SQLITE: &str = "-- delete_agent_turns
        DELETE FROM agent_turns WHERE (session_id, number) IN (
            SELECT session_id, number FROM agent_turns WHERE session_id IN (SELECT value FROM json_each($1)) LIMIT $2)";
    const POSTGRES: &str = "-- delete_agent_turns
        DELETE FROM agent_turns WHERE (session_id, number) IN (
            SELECT found.session_id, found.number FROM unnest($1) AS ended (id)
            CROSS JOIN LATERAL (
                SELECT session_id, number FROM agent_turns WHERE session_id = ended.id LIMIT $2) AS found LIMIT $2)";
    let deleted = sql_by(SQLITE, POSTGRES).bind(sessions.to_vec()).bind(ROWS).execute(conn).await;
    Ok(deleted.map_err(failed("delete turns"))? >= as_u64(ROWS))
}
