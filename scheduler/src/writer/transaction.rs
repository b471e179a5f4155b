//! One transaction of the writer: a batch of writes, applied so that the failure of one does not fail its neighbours.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::Error;
use crate::context::core::{Core, QueuedWrite, Urgency};
use crate::processes::signals::{self, Signal};
use crate::store::db::{Conn, Dialect};
use crate::store::{self, failed, locks};

/// Writes the whole batch in an open transaction, or nothing, and ends the transaction.
pub(super) async fn transact(conn: &mut Conn, core: &Core, batch: &mut [Box<dyn QueuedWrite>]) -> Result<(), Error> {
    let names: BTreeSet<String> = batch.iter().flat_map(|write| write.locks(core)).collect();
    let mut done = locks::lock_names(conn, names.into_iter().collect()).await;
    if done.is_ok() {
        done = apply_all(conn, core, batch).await;
    }
    if done.is_ok() {
        let mut signals = Vec::new();
        batch.iter().for_each(|write| write.signals(&mut signals));
        done = notify(conn, core, &signals).await;
    }
    if done.is_ok() {
        let asked = Instant::now();
        done = conn.commit().await.map_err(failed("write"));
        core.metrics.store.committed(asked.elapsed());
    }
    if done.is_err() {
        // After some errors SQLite has already rolled back, and reports an error here.
        let _ = conn.rollback().await;
    }
    done
}

/// Applies each write so that its failure does not fail its neighbours, in a savepoint if necessary. Writes that join
/// are applied at once, as far as they are in one scope. A record that fails fails them all: later writes must not
/// become durable before it.
async fn apply_all(conn: &mut Conn, core: &Core, batch: &mut [Box<dyn QueuedWrite>]) -> Result<(), Error> {
    let mut left = batch;
    while !left.is_empty() {
        let len = group_len(conn, core, left);
        let (group, rest) = left.split_at_mut(len);
        left = rest;
        match group {
            [] => {}
            [write] => apply_one(conn, core, write.as_mut()).await?,
            [write, others @ ..] => apply_group(conn, core, write.as_mut(), others).await?,
        }
    }
    Ok(())
}

/// Returns the number of leading writes that are made together. No statement on behalf of a tenant sees rows of
/// another: where scopes apply, each tenant's writes form a group, in the order in which the tenants first appear.
fn group_len(conn: &Conn, core: &Core, batch: &mut [Box<dyn QueuedWrite>]) -> usize {
    let Some(kind) = batch.first().and_then(|first| first.joins(core)) else { return batch.len().min(1) };
    let joined = batch.iter().take_while(|write| write.joins(core) == Some(kind)).count();
    let (joining, _) = batch.split_at_mut(joined);
    let Some(scope) = joining.first().map(|first| first.scope()).filter(|_| conn.dialect() == Dialect::Postgres) else {
        return joined;
    };
    // The sort is stable: writes of one tenant stay in order.
    joining.sort_by_key(|write| write.scope() != scope);
    joining.iter().take_while(|write| write.scope() == scope).count()
}

async fn apply_one(conn: &mut Conn, core: &Core, write: &mut dyn QueuedWrite) -> Result<(), Error> {
    let undo = write.undo();
    let entered = match undo {
        true => conn.savepoint_in(&write.scope()).await,
        false => conn.enter(&write.scope()).await,
    };
    entered.map_err(failed("write"))?;
    if let Err(error) = write.apply(conn, core).await {
        if write.urgency() != Urgency::Call || fails_all(&error) {
            return Err(error);
        }
        // PostgreSQL does not continue after an error, yet would report the commit as a success.
        if !undo && is_of_statement(&error) && conn.dialect() == Dialect::Postgres {
            return Err(error);
        }
        if undo {
            conn.undo_to_savepoint().await.map_err(failed("write"))?;
        }
    }
    if undo {
        conn.release_savepoint().await.map_err(failed("write"))?;
    }
    Ok(())
}

/// Applies writes that join. A failure may affect only one of them: then they are written one by one.
async fn apply_group(
    conn: &mut Conn,
    core: &Core,
    write: &mut dyn QueuedWrite,
    others: &mut [Box<dyn QueuedWrite>],
) -> Result<(), Error> {
    let urgency = write.urgency();
    conn.enter(&write.scope()).await.map_err(failed("write"))?;
    for done in write.apply_with(others, conn, core).await? {
        match done {
            Err(error) if urgency != Urgency::Call || fails_all(&error) || is_of_statement(&error) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether the database may have refused a statement.
fn is_of_statement(error: &Error) -> bool {
    matches!(error, Error::Store(_) | Error::Invalid(_))
}

/// Notifies other processes if the transaction is committed.
async fn notify(conn: &mut Conn, core: &Core, signals: &[Signal]) -> Result<(), Error> {
    if conn.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    store::notify::notify(conn, signals::CHANNEL, signals::encode(&core.process, signals)).await
}

/// Returns whether an error concerns the transaction, not only the write that met it.
pub(super) fn fails_all(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::NoSpace(_) | Error::Conflict(_))
}
