//! The table `audit_log`, to which rows are appended.

use trainyard_protocol::TenantId;

use super::db::{Conn, Row, column, sql};
use super::{failed, from_json, parsed, to_json};
use crate::{Actor, AuditCategory, AuditEntry, Error, NewAuditEntry, Timestamp};

/// Most entries in one answer.
const MOST: i64 = 10_000;

/// Identification of an audited call.
pub(crate) struct AuditedCall<'a> {
    /// Time-ordered id of the entry.
    pub(crate) id: String,
    pub(crate) actor: &'a Actor,
    /// Header `x-request-id` of the call.
    pub(crate) request_id: Option<&'a str>,
}

pub(crate) async fn append_to_audit_log(
    conn: &mut Conn,
    call: &AuditedCall<'_>,
    new: &NewAuditEntry,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- append_to_audit_log
        INSERT INTO audit_log (id, at, organisation, category, event, subject, details, actor, key_id, request_id, address)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    sql(SQL)
        .bind(call.id.as_str())
        .bind(now.0)
        .bind(new.organisation.as_str())
        .bind(new.category.as_str())
        .bind(new.event)
        .bind(new.subject.as_str())
        .bind(to_json(&new.details)?)
        .bind(call.actor.name.as_str())
        .bind(call.actor.key)
        .bind(call.request_id)
        .bind(call.actor.address.as_deref())
        .execute(conn)
        .await
        .map(drop)
        .map_err(failed("write the audit log"))
}

/// Returns entries of an organisation from `from` to before `to`, oldest first, of one category if given; the last
/// [`MOST`] of them.
pub(crate) async fn audit_entries(
    conn: &mut Conn,
    organisation: &TenantId,
    category: Option<AuditCategory>,
    (from, to): (Timestamp, Timestamp),
) -> Result<Vec<AuditEntry>, Error> {
    const SQL: &str = "-- audit_entries
        SELECT at, category, event, subject, details, actor, key_id, request_id, address FROM audit_log
        WHERE organisation = $1 AND at >= $2 AND at < $3 AND ($4 IS NULL OR category = $4)
        ORDER BY at DESC, id DESC LIMIT $5";
    let rows = sql(SQL)
        .bind(organisation.as_str())
        .bind(from.0)
        .bind(to.0)
        .bind(category.map(AuditCategory::as_str))
        .bind(MOST)
        .fetch_all(conn)
        .await
        .map_err(failed("read the audit log"))?;
    rows.iter().rev().map(to_entry).collect()
}

fn to_entry(row: &Row) -> Result<AuditEntry, Error> {
    Ok(AuditEntry {
        at: Timestamp(column(row, "at")?),
        category: parsed(row, "category", AuditCategory::from_text)?,
        event: column(row, "event")?,
        subject: column(row, "subject")?,
        details: from_json(row, "details")?,
        actor: column(row, "actor")?,
        key: column(row, "key_id")?,
        request_id: column(row, "request_id")?,
        address: column(row, "address")?,
    })
}
