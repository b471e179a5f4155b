//! Logged-out sessions of browsers.

use super::{Act, Directory, Stage};
use crate::store::browser_sessions;
use crate::store::db::{Conn, RowScope};
use crate::{Error, NewAuditEntry, Timestamp};

/// Time for which an ended session is remembered after its token expires, because clocks differ.
const MARGIN_MS: i64 = 10 * 60_000;

impl Directory {
    /// Ends the session of a browser whose token has this id and expires at this time. Every process refuses the token
    /// from now on.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn end_browser_session(&self, token_id: String, expires_at: Timestamp) -> Result<(), Error> {
        let until = Timestamp(expires_at.as_millis().saturating_add(MARGIN_MS));
        self.act(EndBrowserSession { token_id, until }).await
    }

    /// Returns whether the session whose token has this id was ended.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn browser_session_has_ended(&self, token_id: &str) -> Result<bool, Error> {
        browser_sessions::has_ended(&mut self.system_reader().await?, token_id).await
    }
}

struct EndBrowserSession {
    token_id: String,
    until: Timestamp,
}

impl Act for EndBrowserSession {
    type Output = ();

    /// Returns the system's scope: the token may belong to any tenant.
    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<(), Error> {
        browser_sessions::end_browser_session(conn, &self.token_id, self.until, stage.now).await
    }

    /// Returns no entry: a logout does not change the organisation.
    fn entry(&self, (): &()) -> Option<NewAuditEntry> {
        None
    }
}
