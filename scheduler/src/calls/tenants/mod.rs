//! Organisations with their projects, users and keys, accessed through a scheduler or, from the command line, while
//! schedulers are running.

mod agent_keys;
mod audit_log;
mod browser_sessions;
mod granted;
mod keys;
mod limits;
mod organisations;
mod projects;
pub(crate) mod refresh;
mod signing_keys;
mod users;

use std::future::Future;
use std::sync::Arc;

use serde_json::{Map, Value};
use trainyard_protocol::TenantId;
use uuid::{NoContext, Uuid};

use crate::context::core::Core;
use crate::processes::signals::{self, CHANNEL, Signal};
use crate::store::clock::database_now;
use crate::store::db::{Conn, Dialect, RowScope, connect, sql};
use crate::store::{failed, schema};
use crate::writer::audit::Audit;
use crate::writer::write::Write;
use crate::{AuditCategory, Database, Error, NewAuditEntry, Policies, Scheduler, Timestamp};

/// Longest name, email or note, in bytes.
const MAX_TEXT: usize = 200;

/// Organisations, projects, users and keys of a store. Every change is entered into the audit log under the current
/// [`crate::Actor`].
pub struct Directory(Access);

enum Access {
    Here(Arc<Core>),
    /// A database that running processes may be using.
    Beside {
        database: Database,
        /// Limits that the configuration file grants.
        file: Policies,
    },
}

/// Circumstances of a change.
pub(crate) struct Stage {
    pub(crate) now: Timestamp,
    /// Time-ordered id for a new object.
    pub(crate) new_id: Uuid,
}

/// A change with its audit entries.
pub(crate) trait Act: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Returns the scope of the objects concerned.
    fn scope(&self) -> RowScope;

    /// Makes the change, which may be undone and made again.
    fn make(&self, conn: &mut Conn, stage: &Stage) -> impl Future<Output = Result<Self::Output, Error>> + Send;

    /// Returns the audit entry, unless nothing was changed.
    fn entry(&self, output: &Self::Output) -> Option<NewAuditEntry>;

    /// Returns the audit entries of a change that concerns several organisations.
    fn entries(&self, output: &Self::Output) -> Vec<NewAuditEntry> {
        self.entry(output).into_iter().collect()
    }
}

impl Scheduler {
    /// Returns access to organisations, projects, users and keys.
    pub fn directory(&self) -> Directory {
        Directory(Access::Here(Arc::clone(&self.core)))
    }

    /// Returns the number of changes of keys, users and organisations that this process knows of. While it stays the
    /// same, nothing was changed here, and other processes have reported no change.
    pub fn directory_version(&self) -> u64 {
        self.core.grants.directory_version()
    }
}

impl Directory {
    /// Opens a database that other processes may be using. The schema of a SQLite file is brought up to date.
    ///
    /// # Errors
    /// The database can't be reached, or its schema is not current.
    pub async fn beside(database: Database) -> Result<Self, Error> {
        schema::connect_current(&database).await?.close().await.map_err(failed("close the database"))?;
        Ok(Self(Access::Beside { database, file: Policies::default() }))
    }

    /// Returns the present time of the database, by which keys expire.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        match &self.0 {
            Access::Here(core) => Ok(core.now()),
            Access::Beside { .. } => database_now(&mut self.system_reader().await?).await,
        }
    }

    async fn system_reader(&self) -> Result<Conn, Error> {
        self.reader_in(&RowScope::System).await
    }

    async fn reader_of(&self, organisation: &TenantId) -> Result<Conn, Error> {
        self.reader_in(&RowScope::of(organisation)).await
    }

    async fn reader_in(&self, scope: &RowScope) -> Result<Conn, Error> {
        match &self.0 {
            Access::Here(core) => core.reader_in(scope).await,
            Access::Beside { database, .. } => {
                let mut conn = connect(database).await?;
                conn.enter(scope).await.map_err(failed("open the database"))?;
                Ok(conn)
            }
        }
    }

    async fn act<A: Act>(&self, act: A) -> Result<A::Output, Error> {
        match &self.0 {
            Access::Here(core) => {
                let output = core.call(Recorded { act, audit: Audit::begin(core.now(), core.new_uuid()) }).await?;
                // The change takes effect in this process at once, or a moment later if this read fails.
                if let Err(error) = core.refresh_grants().await {
                    tracing::debug!(%error, "limits of organisations could not be read; retrying");
                }
                Ok(output)
            }
            Access::Beside { database, .. } => act_beside(database, &act).await,
        }
    }
}

struct Recorded<A> {
    act: A,
    audit: Audit,
}

impl<A: Act> Write for Recorded<A> {
    type Output = A::Output;

    fn scope(&self) -> RowScope {
        self.act.scope()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<A::Output, Error> {
        let stage = Stage { now: core.now(), new_id: core.new_uuid() };
        record(conn, &self.act, &self.audit, &stage).await
    }

    fn signals(&self, _output: &A::Output, signals: &mut Vec<Signal>) {
        signals.push(Signal::Directory);
    }

    fn committed(&mut self, _output: &A::Output, core: &Arc<Core>) {
        core.grants.directory_changed();
    }
}

async fn record<A: Act>(conn: &mut Conn, act: &A, audit: &Audit, stage: &Stage) -> Result<A::Output, Error> {
    let output = act.make(conn, stage).await?;
    for (index, entry) in act.entries(&output).iter().enumerate() {
        audit.part(index).append(conn, entry).await?;
    }
    Ok(output)
}

/// Makes a change in its own transaction and notifies other processes.
async fn act_beside<A: Act>(database: &Database, act: &A) -> Result<A::Output, Error> {
    let mut conn = connect(database).await?;
    conn.begin_in(&act.scope()).await.map_err(failed("write"))?;
    let now = database_now(&mut conn).await?;
    let stage = Stage { now, new_id: uuid_at(now) };
    let done = record(&mut conn, act, &Audit::begin(now, uuid_at(now)), &stage).await;
    let done = match done {
        Ok(output) => notify(&mut conn).await.map(|()| output),
        Err(error) => Err(error),
    };
    match done {
        Ok(output) => {
            conn.commit().await.map_err(failed("write"))?;
            conn.close().await.map_err(failed("close the database"))?;
            Ok(output)
        }
        Err(error) => {
            // Even if this fails, the end of the connection undoes the transaction.
            let _ = conn.rollback().await;
            Err(error)
        }
    }
}

async fn notify(conn: &mut Conn) -> Result<(), Error> {
    const SQL: &str = "-- notify_of_directory
        SELECT pg_notify($1, $2)";
    if conn.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    for text in signals::encode("directory", &[Signal::Directory]) {
        sql(SQL).bind(CHANNEL).bind(text).execute(conn).await.map_err(failed("notify other processes"))?;
    }
    Ok(())
}

fn uuid_at(now: Timestamp) -> Uuid {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    let nanos = u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, millis / 1000, nanos))
}

/// Refuses a text that is empty or too long.
fn check_text(field: &str, text: &str, may_be_empty: bool) -> Result<(), Error> {
    if text.is_empty() && !may_be_empty {
        return Err(Error::Invalid(format!("{field}: must not be empty")));
    }
    if text.len() > MAX_TEXT {
        return Err(Error::Invalid(format!("{field}: {} bytes, at most {MAX_TEXT} are allowed", text.len())));
    }
    if text.chars().any(char::is_control) {
        return Err(Error::Invalid(format!("{field}: must not contain control characters")));
    }
    Ok(())
}

fn entry<const N: usize>(
    organisation: &TenantId,
    category: AuditCategory,
    event: &'static str,
    subject: impl ToString,
    details: [(&str, Value); N],
) -> NewAuditEntry {
    let details: Map<String, Value> = details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    NewAuditEntry { organisation: organisation.clone(), category, event, subject: subject.to_string(), details }
}
