//! Scopes of the rows that a statement may see and change. On PostgreSQL, row-level security enforces them, whatever
//! the statement's own conditions are: every connection enters a scope before it touches a row of a tenant, and without
//! one such a statement fails. SQLite does not enforce scopes.

use sqlx::{AssertSqlSafe, Executor as _};
use trainyard_protocol::TenantId;

use super::deadline::{PROBE, STATEMENT};
use super::{Conn, Dialect, Remote, sql};
use crate::Error;
use crate::store::failed;

/// Scope of the rows that a connection sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowScope {
    /// Rows of all tenants, for work of the service itself, or before the caller is known.
    System,
    /// Rows of one tenant, and public rows of others, for work on the tenant's behalf.
    Tenant(TenantId),
}

impl RowScope {
    /// Returns the scope for work on behalf of one tenant.
    pub(crate) fn of(tenant: &TenantId) -> Self {
        Self::Tenant(tenant.clone())
    }

    /// Returns the tenant whose rows are visible; `None` for those of all.
    pub(super) fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::System => None,
            Self::Tenant(tenant) => Some(tenant),
        }
    }

    /// Returns the value of the setting `trainyard.scope`: `system`, or a PostgreSQL array with the tenant.
    fn setting(&self) -> String {
        match self {
            Self::System => "system".to_owned(),
            Self::Tenant(tenant) => {
                format!("{{\"{}\"}}", tenant.as_str().replace('\\', "\\\\").replace('"', "\\\""))
            }
        }
    }

    /// Returns the statement that enters the scope until the end of the transaction; `None` if the name contains a
    /// character that PostgreSQL can't store, so that no such tenant exists.
    fn local(&self) -> Option<String> {
        let setting = self.setting();
        (!setting.contains('\0')).then(|| format!("SET LOCAL trainyard.scope = {}", literal(&setting)))
    }
}

/// Returns a string literal for a statement.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Scopes that a connection has entered, as far as known.
#[derive(Clone, Debug, Default)]
pub(super) struct Entered {
    /// Scope outside of transactions.
    session: Option<RowScope>,
    /// Scope of the open transaction.
    transaction: Option<RowScope>,
    in_transaction: bool,
}

impl Entered {
    pub(super) fn is_in(&self, scope: &RowScope) -> bool {
        let entered = if self.in_transaction { &self.transaction } else { &self.session };
        entered.as_ref() == Some(scope)
    }

    fn set(&mut self, scope: Option<RowScope>) {
        *(if self.in_transaction { &mut self.transaction } else { &mut self.session }) = scope;
    }

    pub(super) fn began(&mut self) {
        (self.in_transaction, self.transaction) = (true, self.session.clone());
    }

    pub(super) fn ended(&mut self) {
        (self.in_transaction, self.transaction) = (false, None);
    }
}

impl Remote {
    /// Enters a scope as [`Conn::enter`] does.
    pub(super) async fn enter(&mut self, scope: &RowScope) -> Result<(), sqlx::Error> {
        const SQL: &str = "-- enter
        SELECT set_config('trainyard.scope', $1, $2)";
        if self.entered.is_in(scope) {
            return Ok(());
        }
        let local = self.entered.in_transaction;
        self.entered.set(None);
        self.run(PROBE, |conn| sqlx::query(SQL).bind(scope.setting()).bind(local).execute(conn)).await?;
        self.entered.set(Some(scope.clone()));
        Ok(())
    }
}

impl Conn {
    /// Enters a scope until the end of the transaction, if one is open, otherwise until another is entered.
    pub(crate) async fn enter(&mut self, scope: &RowScope) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(remote) => remote.enter(scope).await,
            _ => Ok(()),
        }
    }

    /// Leaves the scope, outside of transactions: until another is entered, rows of tenants are inaccessible.
    pub(crate) async fn leave(&mut self) -> Result<(), sqlx::Error> {
        const SQL: &str = "-- leave
        SELECT set_config('trainyard.scope', '', false)";
        let Self::Postgres(remote) = self else { return Ok(()) };
        remote.entered.set(None);
        sql(SQL).execute(self).await.map(drop)
    }

    /// Opens a transaction that may write, in a scope. A silently lost connection is detected soon.
    pub(crate) async fn begin_in(&mut self, scope: &RowScope) -> Result<(), sqlx::Error> {
        let (Self::Postgres(remote), Some(local)) = (&mut *self, scope.local()) else {
            self.begin().await?;
            return self.enter(scope).await;
        };
        // Both go in one message, because each message costs a round trip.
        let text = format!("BEGIN; {local}");
        remote.entered.began();
        remote.entered.set(None);
        remote.run(PROBE, |conn| conn.execute(AssertSqlSafe(text))).await?;
        remote.entered.set(Some(scope.clone()));
        Ok(())
    }

    /// Sets a savepoint, and enters a scope that remains if later changes are undone.
    pub(crate) async fn savepoint_in(&mut self, scope: &RowScope) -> Result<(), sqlx::Error> {
        const SAVEPOINT: &str = "SAVEPOINT one";
        if let Self::Postgres(remote) = self
            && !remote.entered.is_in(scope)
            && let Some(local) = scope.local()
        {
            let text = format!("{local}; {SAVEPOINT}");
            remote.entered.set(None);
            remote.run(STATEMENT, |conn| conn.execute(AssertSqlSafe(text))).await?;
            remote.entered.set(Some(scope.clone()));
            return Ok(());
        }
        self.enter(scope).await?;
        sql(SAVEPOINT).execute(self).await.map(drop)
    }

    /// Undoes all changes since the savepoint, which stays.
    pub(crate) async fn undo_to_savepoint(&mut self) -> Result<(), sqlx::Error> {
        if let Self::Postgres(remote) = self {
            // Scopes entered since the savepoint are undone as well.
            remote.entered.set(None);
        }
        sql("ROLLBACK TO SAVEPOINT one").execute(self).await.map(drop)
    }

    /// Releases the current savepoint.
    pub(crate) async fn release_savepoint(&mut self) -> Result<(), sqlx::Error> {
        sql("RELEASE SAVEPOINT one").execute(self).await.map(drop)
    }
}

/// Returns why row-level security does not separate tenants on this connection; `None` if it does, and for SQLite.
///
/// # Errors
/// Fails if the server can't be asked.
pub(crate) async fn bypass(conn: &mut Conn) -> Result<Option<String>, sqlx::Error> {
    const POSTGRES: &str = "-- bypass
        SELECT coalesce(
            (SELECT 'the role ' || rolname || CASE WHEN rolsuper THEN ' is a superuser' ELSE ' has BYPASSRLS' END
                FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)),
            (SELECT 'it is switched off for the table ' || min(relname) FROM pg_class
                WHERE oid IN (SELECT polrelid FROM pg_policy) AND relnamespace = current_schema()::regnamespace
                    AND NOT (relrowsecurity AND relforcerowsecurity)))";
    if conn.dialect() == Dialect::Sqlite {
        return Ok(None);
    }
    sql(POSTGRES).scalar::<Option<String>>(conn).await.map(Option::flatten)
}

/// Warns if row-level security does not separate tenants.
pub(super) async fn warn_of_bypass(conn: &mut Conn) -> Result<(), Error> {
    if let Some(reason) = bypass(conn).await.map_err(failed("open the database"))? {
        tracing::warn!(reason, "row-level security does not keep tenants apart: see docs/operators/operations.md");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_tenant_stays_one_element_of_one_text() {
        for (tenant, setting) in [
            ("plain", r#"{"plain"}"#),
            ("a,b", r#"{"a,b"}"#),
            ("{", r#"{"{"}"#),
            ("\"", r#"{"\""}"#),
            ("\\", r#"{"\\"}"#),
            ("it's", r#"{"it's"}"#),
            ("system", r#"{"system"}"#),
            ("", r#"{""}"#),
        ] {
            assert_eq!(RowScope::of(&TenantId::new(tenant)).setting(), setting);
        }
        assert_eq!(literal(r"\'"), r"E'\\'''");
    }
}
