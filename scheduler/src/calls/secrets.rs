//! Secrets of the service, shared by the processes on one store.

use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::secrets;
use crate::writer::write::Write;
use crate::{Error, Scheduler};

impl Scheduler {
    /// Returns a secret that all processes on the store share: `candidate`, unless one exists already.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn shared_secret(&self, name: impl Into<String>, candidate: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.write(SharedSecret { name: name.into(), candidate }).await
    }

    /// Returns all secrets whose name begins with `prefix`, by name.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn secrets(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
        secrets::secrets(&mut self.core.system_reader().await?, prefix).await
    }

    /// Deletes a secret if it exists.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn delete_secret(&self, name: String) -> Result<(), Error> {
        self.write(DeleteSecret { name }).await
    }
}

struct SharedSecret {
    name: String,
    candidate: Vec<u8>,
}

impl Write for SharedSecret {
    type Output = Vec<u8>;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<Vec<u8>, Error> {
        secrets::shared_secret(conn, &self.name, &self.candidate).await
    }
}

struct DeleteSecret {
    name: String,
}

impl Write for DeleteSecret {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        secrets::delete_secret(conn, &self.name).await
    }
}
