//! Whose rows a statement may see and change. On PostgreSQL row-level security holds it to that, whatever its own
//! conditions say: every connection enters a scope before it touches a row of a tenant, and without one such a statement
//! fails. SQLite has no such wall.

use sqlx::{AssertSqlSafe, Executor as _};
use trainyard_protocol::TenantId;

use super::deadline::{PROBE, STATEMENT};
use super::{Conn, Dialect, Remote, sql};
use crate::Error;
use crate::store::failed;

/// Whose rows a connection sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowScope {
    /// Those of all tenants: what the service does of its own accord, or before it knows who is calling.
    System,
    /// Those of one tenant, and what others have made public: what is done on its behalf.
    Tenant(TenantId),
}

impl RowScope {
    /// What is done on behalf of one tenant.
    pub(crate) fn of(tenant: &TenantId) -> Self {
        Self::Tenant(tenant.clone())
    }

    /// The value of the setting `trainyard.scope`: `system`, or an array of PostgreSQL that has the tenant.
    fn setting(&self) -> String {
        match self {
            Self::System => "system".to_owned(),
            Self::Tenant(tenant) => {
                format!("{{\"{}\"}}", tenant.as_str().replace('\\', "\\\\").replace('"', "\\\""))
            }
        }
    }

    /// The statement that enters it until the end of the transaction; `None` when its text can't hold a name, which PostgreSQL
    /// knows nobody by.
    fn local(&self) -> Option<String> {
        let setting = self.setting();
        (!setting.contains('\0')).then(|| format!("SET LOCAL trainyard.scope = {}", literal(&setting)))
    }
}

/// A text within a statement.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// What a connection has entered, as far as is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Entered {
    /// Outside of transactions.
    session: Option<RowScope>,
    /// In the transaction that is open.
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
    /// See [`Conn::enter`].
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
    /// Enters a scope: until the end of the transaction, if one is open; otherwise until another is entered.
    pub(crate) async fn enter(&mut self, scope: &RowScope) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(remote) => remote.enter(scope).await,
            _ => Ok(()),
        }
    }

    /// Leaves its scope, outside of transactions: until another is entered, no tenant's rows are accessible.
    pub(crate) async fn leave(&mut self) -> Result<(), sqlx::Error> {
        const SQL: &str = "-- leave
        SELECT set_config('trainyard.scope', '', false)";
        let Self::Postgres(remote) = self else { return Ok(()) };
        remote.entered.set(None);
        sql(SQL).execute(self).await.map(drop)
    }

    /// Opens a transaction that may write, in a scope. A connection that was lost without a word is found out soon.
    pub(crate) async fn begin_in(&mut self, scope: &RowScope) -> Result<(), sqlx::Error> {
        let (Self::Postgres(remote), Some(local)) = (&mut *self, scope.local()) else {
            self.begin().await?;
            return self.enter(scope).await;
        };
        // In one message, because each costs the time to the server and back.
        let text = format!("BEGIN; {local}");
        remote.entered.began();
        remote.entered.set(None);
        remote.run(PROBE, |conn| conn.execute(AssertSqlSafe(text))).await?;
        remote.entered.set(Some(scope.clone()));
        Ok(())
    }

    /// Sets a savepoint, in a scope that holds behind it too when what follows is undone.
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

    /// Undoes what was done since the savepoint, which stays.
    pub(crate) async fn undo_to_savepoint(&mut self) -> Result<(), sqlx::Error> {
        if let Self::Postgres(remote) = self {
            // A scope that was entered since is undone as well.
            remote.entered.set(None);
        }
        sql("ROLLBACK TO SAVEPOINT one").execute(self).await.map(drop)
    }

    /// Lets go of the savepoint.
    pub(crate) async fn release_savepoint(&mut self) -> Result<(), sqlx::Error> {
        sql("RELEASE SAVEPOINT one").execute(self).await.map(drop)
    }
}

/// Why row-level security does not keep tenants apart on this connection: `None` when it does, and of SQLite.
///
/// # Errors
/// When the server can't be asked.
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

/// Warns when row-level security does not keep tenants apart.
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
