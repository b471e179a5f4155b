//! Creates and reads custom losses.

use std::sync::Arc;

use bytes::Bytes;
use trainyard_protocol::{CustomLossId, SessionId, TenantId};

use super::heartbeat::ensure_alive;
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::{custom_losses, sessions};
use crate::writer::write::Write;
use crate::{Error, NewCustomLoss, Scheduler};

/// Most custom losses of one session.
pub const MAX_CUSTOM_LOSSES: i64 = 256;

impl Scheduler {
    /// Stores a custom loss, identified by (session, seq_id). It exists as long as its session's rows. Requests that
    /// use it carry a copy.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session, [`Error::Mismatch`] if the loss was created before with other
    /// content, [`Error::Invalid`] for a number beyond [`MAX_CUSTOM_LOSSES`].
    pub async fn create_custom_loss(&self, tenant: &TenantId, new: NewCustomLoss) -> Result<CustomLossId, Error> {
        self.write(CreateCustomLoss { tenant: tenant.clone(), new }).await
    }

    /// Returns the session and the definition of a custom loss.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown loss.
    pub async fn custom_loss(&self, tenant: &TenantId, id: &CustomLossId) -> Result<(SessionId, Bytes), Error> {
        let found = custom_losses::custom_loss(&mut self.core.reader_of(tenant).await?, tenant, id).await?;
        let (session, definition) = found.ok_or_else(|| Error::not_found("custom loss", id))?;
        Ok((session, definition.into()))
    }
}

struct CreateCustomLoss {
    tenant: TenantId,
    new: NewCustomLoss,
}

impl Write for CreateCustomLoss {
    type Output = CustomLossId;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<CustomLossId, Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.new.session).await?;
        let id = CustomLossId::of_session(&self.new.session, self.new.seq_id);
        if let Some((_, definition)) = custom_losses::custom_loss(conn, &self.tenant, &id).await? {
            if definition[..] != self.new.definition[..] {
                return Err(Error::Mismatch(format!("custom loss {id} was created before with other content")));
            }
            return Ok(id);
        }
        if self.new.seq_id >= MAX_CUSTOM_LOSSES {
            let text = format!("custom_loss_seq_id: a session has at most {MAX_CUSTOM_LOSSES} custom losses");
            return Err(Error::Invalid(text));
        }
        ensure_alive(conn, core, &session).await?;
        custom_losses::insert_custom_loss(conn, &self.tenant, &self.new, core.now()).await
    }

    fn committed(&mut self, _id: &CustomLossId, core: &Arc<Core>) {
        core.touch(&self.new.session);
    }
}
