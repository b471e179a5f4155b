//! The hold that a running backup places on the storage.

use std::time::Duration;

use uuid::Uuid;

use super::BackupError;
use crate::Error;
use crate::store::backup_holds;
use crate::store::db::{Conn, Database, connect_as_system};
use crate::store::failed;

/// Duration of a hold that is not renewed, for example because the process ended.
const LASTING: Duration = Duration::from_secs(300);
/// Interval between renewals of the hold.
const PERIOD: Duration = Duration::from_secs(60);

/// Keeps the storage's objects from being removed until it is released, or its process ends.
pub(super) struct Hold {
    database: Database,
    id: String,
}

impl Hold {
    /// Places the hold. Returns once every process respects it.
    pub(super) async fn place(database: &Database) -> Result<Self, Error> {
        let hold = Self { database: database.clone(), id: Uuid::now_v7().to_string() };
        let mut conn = hold.begin().await?;
        backup_holds::place_hold(&mut conn, &hold.id, LASTING).await?;
        commit(conn).await?;
        Ok(hold)
    }

    /// Renews the hold for as long as it is needed. Returns only if renewal fails for too long.
    pub(super) async fn keep(&self) -> BackupError {
        loop {
            tokio::time::sleep(PERIOD).await;
            match self.renew().await {
                Err(BackupError::Store(error)) => tracing::warn!(%error, "a hold was not renewed; retrying"),
                Err(error) => return error,
                Ok(()) => {}
            }
        }
    }

    /// # Errors
    /// [`BackupError::HoldLost`] if the hold has expired.
    pub(super) async fn renew(&self) -> Result<(), BackupError> {
        let mut conn = self.begin().await?;
        let renewed = backup_holds::renew_hold(&mut conn, &self.id, LASTING).await?;
        commit(conn).await?;
        if renewed { Ok(()) } else { Err(BackupError::HoldLost) }
    }

    pub(super) async fn release(&self) {
        let released = async {
            let mut conn = self.begin().await?;
            backup_holds::release_hold(&mut conn, &self.id).await?;
            commit(conn).await
        };
        if let Err(error) = released.await {
            tracing::warn!(%error, "a hold was not released; it expires in {} s", LASTING.as_secs());
        }
    }

    /// Opens a new connection: the previous one may have been lost.
    async fn begin(&self) -> Result<Conn, Error> {
        let mut conn = connect_as_system(&self.database).await?;
        conn.begin().await.map_err(failed("write"))?;
        Ok(conn)
    }
}

async fn commit(mut conn: Conn) -> Result<(), Error> {
    conn.commit().await.map_err(failed("write"))?;
    conn.close().await.map_err(failed("close the database"))
}
