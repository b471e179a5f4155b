//! The table `audit_log`, to which rows are appended.

use trainyard_protocol::TenantId;

use super::db::{Conn, Row, column, sql};
use super::{failed, from_json, parsed, to_json};
use crate::budgets::AUDIT_ENTRIES;
use crate::{Actor, AuditCategory, AuditEntry, Error, NewAuditEntry, Timestamp};

/// Maximum number of entries that are exported or deleted at once.
const PAGE: i64 = 5_000;

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
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING";
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
/// [`AUDIT_ENTRIES`] of them.
pub(crate) async fn audit_entries(
    conn: &mut Conn,
    organisation: &TenantId,
    category: Option<AuditCategory>,
    from: Timestamp,
    to: Timestamp,
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
        .bind(AUDIT_ENTRIES)
        .fetch_all(conn)
        .await
        .map_err(failed("read the audit log"))?;
    rows.iter().rev().map(to_entry).collect()
}

/// An entry, with its id and organisation.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedEntry {
    /// Time-ordered id of the entry.
    pub id: String,
    /// Organisation that owns the object.
    pub organisation: TenantId,
    /// Content of the entry, without its organisation and id.
    pub entry: AuditEntry,
}

/// Returns entries of all organisations from before a time, in the order of their ids, behind a given one.
pub(crate) async fn exported_entries(
    conn: &mut Conn,
    after: &str,
    before: Timestamp,
) -> Result<Vec<ExportedEntry>, Error> {
    const SQL: &str = "-- exported_entries
        SELECT id, organisation, at, category, event, subject, details, actor, key_id, request_id, address FROM audit_log
        WHERE id > $1 AND at < $2 ORDER BY id LIMIT $3";
    let rows = sql(SQL).bind(after).bind(before.0).bind(PAGE).fetch_all(conn).await;
    let exported = |row: &Row| {
        let organisation = TenantId::new(column::<String>(row, "organisation")?);
        Ok(ExportedEntry { id: column(row, "id")?, organisation, entry: to_entry(row)? })
    };
    rows.map_err(failed("read the audit log"))?.iter().map(exported).collect()
}

/// Returns the organisations with entries from before a time.
pub(crate) async fn audited_organisations(conn: &mut Conn, before: Timestamp) -> Result<Vec<TenantId>, Error> {
    const SQL: &str = "-- audited_organisations
        SELECT DISTINCT organisation FROM audit_log WHERE at < $1 ORDER BY organisation";
    let names: Vec<String> = sql(SQL).bind(before.0).scalars(conn).await.map_err(failed("read the audit log"))?;
    Ok(names.into_iter().map(TenantId::new).collect())
}

/// Deletes the first entries from before a time, in the open transaction. Returns their number, and whether there may be
/// more.
pub(crate) async fn delete_entries(conn: &mut Conn, before: Timestamp) -> Result<(u64, bool), Error> {
    const PERMIT: &str = "-- delete_entries: permit
        INSERT INTO audit_prunes (before_at) VALUES ($1)";
    const SQL: &str = "-- delete_entries
        DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < $1 ORDER BY id LIMIT $2)";
    const FORBID: &str = "-- delete_entries: forbid
        DELETE FROM audit_prunes";
    let doing = || failed("prune the audit log");
    sql(PERMIT).bind(before.0).execute(conn).await.map_err(doing())?;
    let deleted = sql(SQL).bind(before.0).bind(PAGE).execute(conn).await.map_err(doing())?;
    sql(FORBID).execute(conn).await.map_err(doing())?;
    Ok((deleted, deleted >= PAGE.unsigned_abs()))
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
