//! The table `api_keys`. The keys' own text is not stored anywhere.

use trainyard_protocol::TenantId;

use super::db::{Conn, Row, column, sql};
use super::{failed, parsed};
use crate::{ApiKey, Error, FoundKey, NewApiKey, Role, Scope, Timestamp, User};

/// Stores a key. Returns false if one with this id or digest exists.
pub(crate) async fn insert_api_key(
    conn: &mut Conn,
    organisation: &TenantId,
    new: &NewApiKey,
    role: Role,
    user: Option<&User>,
    now: Timestamp,
) -> Result<bool, Error> {
    const SQL: &str = "-- insert_api_key
        INSERT INTO api_keys (id, digest, organisation, user_id, name, note, hint, role, scopes, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
    let done = sql(SQL)
        .bind(new.id)
        .bind(new.digest.as_slice())
        .bind(organisation.as_str())
        .bind(user.map(|user| user.id.as_str()))
        .bind(new.name.as_str())
        .bind(new.note.as_str())
        .bind(new.hint.as_str())
        .bind(role.as_str())
        .bind(new.scopes.as_deref().map(scopes_text))
        .bind(now.0)
        .bind(new.expires_at.map(Timestamp::as_millis))
        .execute(conn)
        .await;
    Ok(done.map_err(failed("create a key"))? == 1)
}

/// Statement that reads a key with its user and its organisation.
macro_rules! select_key {
    () => {
        "SELECT api_keys.id AS id, api_keys.organisation AS organisation, users.email AS user_email,
            api_keys.name AS name, note, hint, api_keys.role AS role, scopes, api_keys.created_at AS created_at,
            expires_at, revoked_at, operator, user_id, users.name AS user_name, users.role AS user_role,
            users.created_at AS user_created_at, users.disabled_at AS user_disabled_at
        FROM api_keys JOIN organisations ON organisations.name = api_keys.organisation
            LEFT JOIN users ON users.id = api_keys.user_id"
    };
}

/// Returns the key with this digest, and its user.
pub(crate) async fn key_by_digest(conn: &mut Conn, digest: &[u8; 32]) -> Result<Option<FoundKey>, Error> {
    const SQL: &str = concat!(
        "-- key_by_digest
        ",
        select_key!(),
        " WHERE digest = $1"
    );
    let row = sql(SQL).bind(digest.as_slice()).fetch_optional(conn).await.map_err(failed("find a key"))?;
    row.as_ref().map(to_found_key).transpose()
}

/// Returns the key with this id, and its user.
pub(crate) async fn key_by_id(conn: &mut Conn, id: i64) -> Result<Option<FoundKey>, Error> {
    const SQL: &str = concat!(
        "-- key_by_id
        ",
        select_key!(),
        " WHERE api_keys.id = $1"
    );
    let row = sql(SQL).bind(id).fetch_optional(conn).await.map_err(failed("find a key"))?;
    row.as_ref().map(to_found_key).transpose()
}

/// Returns the keys of an organisation, oldest first.
pub(crate) async fn api_keys(conn: &mut Conn, organisation: &TenantId) -> Result<Vec<ApiKey>, Error> {
    const SQL: &str = "-- api_keys
        SELECT api_keys.id AS id, api_keys.organisation AS organisation, users.email AS user_email,
            api_keys.name AS name, note, hint, api_keys.role AS role, scopes, api_keys.created_at AS created_at,
            expires_at, revoked_at
        FROM api_keys LEFT JOIN users ON users.id = api_keys.user_id
        WHERE api_keys.organisation = $1 ORDER BY api_keys.created_at, api_keys.id";
    let rows = sql(SQL).bind(organisation.as_str()).fetch_all(conn).await.map_err(failed("list keys"))?;
    rows.iter().map(to_key).collect()
}

/// Revokes a key of an organisation. Returns its name, or `None` if it is unknown or already revoked.
pub(crate) async fn revoke_api_key(
    conn: &mut Conn,
    organisation: &TenantId,
    id: i64,
    now: Timestamp,
) -> Result<Option<String>, Error> {
    const SQL: &str = "-- revoke_api_key
        UPDATE api_keys SET revoked_at = $3 WHERE id = $1 AND organisation = $2 AND revoked_at IS NULL RETURNING name";
    let name = sql(SQL).bind(id).bind(organisation.as_str()).bind(now.0).scalar(conn).await;
    name.map_err(failed("revoke a key"))
}

/// Returns whether any key was ever created.
pub(crate) async fn has_api_keys(conn: &mut Conn) -> Result<bool, Error> {
    const SQL: &str = "-- has_api_keys
        SELECT EXISTS (SELECT 1 FROM api_keys)";
    Ok(sql(SQL).scalar(conn).await.map_err(failed("look for keys"))?.unwrap_or(false))
}

fn to_found_key(row: &Row) -> Result<FoundKey, Error> {
    let user = match column::<Option<String>>(row, "user_id")? {
        Some(id) => Some(User {
            id,
            email: column(row, "user_email")?,
            name: column(row, "user_name")?,
            role: parsed(row, "user_role", Role::from_text)?,
            created_at: Timestamp(column(row, "user_created_at")?),
            disabled_at: column::<Option<i64>>(row, "user_disabled_at")?.map(Timestamp),
        }),
        None => None,
    };
    Ok(FoundKey { key: to_key(row)?, user, operator: column(row, "operator")? })
}

fn to_key(row: &Row) -> Result<ApiKey, Error> {
    let scopes: Option<String> = column(row, "scopes")?;
    Ok(ApiKey {
        id: column(row, "id")?,
        organisation: TenantId::new(column::<String>(row, "organisation")?),
        user: column(row, "user_email")?,
        name: column(row, "name")?,
        note: column(row, "note")?,
        hint: column(row, "hint")?,
        role: parsed(row, "role", Role::from_text)?,
        scopes: scopes.map(|text| parse_scopes(&text)).transpose()?,
        created_at: Timestamp(column(row, "created_at")?),
        expires_at: column::<Option<i64>>(row, "expires_at")?.map(Timestamp),
        revoked_at: column::<Option<i64>>(row, "revoked_at")?.map(Timestamp),
    })
}

fn scopes_text(scopes: &[Scope]) -> String {
    serde_json::Value::from(scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>()).to_string()
}

fn parse_scopes(text: &str) -> Result<Vec<Scope>, Error> {
    let unknown = |what: &dyn std::fmt::Display| Error::store("read a key's scopes", what);
    let names: Vec<String> = serde_json::from_str(text).map_err(|error| unknown(&error))?;
    names.iter().map(|name| Scope::from_text(name).ok_or_else(|| unknown(name))).collect()
}
