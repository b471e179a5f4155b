//! Creates and reads custom losses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trainyard_protocol::{CustomLossId, SessionId, TenantId};

use super::heartbeat::ensure_alive;
use crate::context::core::{Core, Urgency};
use crate::store::db::{Conn, RowScope};
use crate::store::{custom_losses, sessions};
use crate::writer::write::Write;
use crate::{Error, NewCustomLoss, Scheduler};

/// Maximum number of custom losses of one session. A further one replaces the least recently used one.
pub const MAX_CUSTOM_LOSSES: i64 = 256;

/// Time after which another use of a loss is recorded.
const USE_RECORDED: Duration = Duration::from_secs(60);

impl Scheduler {
    /// Stores a custom loss, identified by (session, seq_id). It exists as long as its session's rows, while it is among
    /// the [`MAX_CUSTOM_LOSSES`] that were used last. Requests that use it carry a copy.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session, [`Error::Mismatch`] if the loss was created before with other content.
    pub async fn create_custom_loss(&self, tenant: &TenantId, new: NewCustomLoss) -> Result<CustomLossId, Error> {
        self.write(CreateCustomLoss { tenant: tenant.clone(), new }).await
    }

    /// Returns the session and the definition of a custom loss that is about to be used.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown loss.
    pub async fn custom_loss(&self, tenant: &TenantId, id: &CustomLossId) -> Result<(SessionId, Bytes), Error> {
        let found = custom_losses::custom_loss(&mut self.core.reader_of(tenant).await?, tenant, id).await?;
        let found = found.ok_or_else(|| Error::not_found("custom loss", id))?;
        if found.used_at.until(self.core.now()) >= USE_RECORDED {
            self.core.record(UseCustomLoss { tenant: tenant.clone(), id: id.clone() });
        }
        Ok((found.session, found.definition.into()))
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
        if let Some(found) = custom_losses::custom_loss(conn, &self.tenant, &id).await? {
            if found.definition[..] != self.new.definition[..] {
                return Err(Error::Mismatch(format!("custom loss {id} was created before with other content")));
            }
            return Ok(id);
        }
        ensure_alive(conn, core, &session).await?;
        custom_losses::keep_custom_losses(conn, &self.tenant, &self.new.session, MAX_CUSTOM_LOSSES - 1).await?;
        custom_losses::insert_custom_loss(conn, &self.tenant, &self.new, core.now()).await
    }

    fn committed(&mut self, _id: &CustomLossId, core: &Arc<Core>) {
        core.touch(&self.new.session);
    }
}

/// A note that a custom loss was used.
struct UseCustomLoss {
    tenant: TenantId,
    id: CustomLossId,
}

impl Write for UseCustomLoss {
    type Output = ();
    const URGENCY: Urgency = Urgency::Note;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        custom_losses::use_custom_loss(conn, &self.tenant, &self.id, core.now()).await
    }
}
