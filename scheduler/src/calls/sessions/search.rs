//! Searches for sessions, moves them into projects, and reads their timelines.

use trainyard_protocol::{SessionId, TenantId};

use crate::budgets::{PAGE_BYTES, SEARCHED_BYTES, SEARCHED_ENTRIES, TIMELINE_REQUESTS};
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::session_search;
use crate::writer::write::Write;
use crate::{
    Error, FoundSession, FoundSessions, Scheduler, SearchPosition, SessionSearch, SessionStatus, SessionTimeline,
    StatusFilter,
};

/// Number of sessions that are read at once.
const BATCH: u32 = 500;

impl Scheduler {
    /// Searches the tenant's sessions, newest first. A page may be shorter than requested although it is not the last.
    pub async fn search_sessions(&self, tenant: &TenantId, search: &SessionSearch) -> Result<FoundSessions, Error> {
        let conn = &mut self.core.reader_of(tenant).await?;
        let mut found = match (&search.session_id, &search.display_name) {
            (Some(id), None) => one(conn, tenant, id, search).await?,
            _ => scan(conn, tenant, search).await?,
        };
        let ids = found.sessions.iter().map(|session| session.id.to_string()).collect();
        let counts = session_search::checkpoints_of_sessions(conn, ids, self.core.now()).await?;
        for session in &mut found.sessions {
            (session.checkpoints, session.checkpoint_bytes) =
                counts.get(session.id.as_str()).copied().unwrap_or_default();
        }
        Ok(found)
    }

    /// Moves a session into a project, together with its runs and sampling sessions.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session.
    pub async fn assign_project(&self, tenant: &TenantId, session: &SessionId, project_id: &str) -> Result<(), Error> {
        let project_id = project_id.to_owned();
        self.write(AssignProject { tenant: tenant.clone(), session: session.clone(), project_id }).await
    }

    /// Returns the requests of a session that are still in the store.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session.
    pub async fn session_timeline(&self, tenant: &TenantId, session: &SessionId) -> Result<SessionTimeline, Error> {
        session_search::timeline(&mut self.core.reader_of(tenant).await?, tenant, session, TIMELINE_REQUESTS).await
    }
}

/// Finds a session by its id and checks the other conditions.
async fn one(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &SessionId,
    search: &SessionSearch,
) -> Result<FoundSessions, Error> {
    let found = session_search::searched_session(conn, tenant, id).await?;
    let is_behind = |session: &FoundSession| {
        search
            .after
            .as_ref()
            .is_none_or(|after| (session.created_at, session.id.as_str()) < (after.created_at, after.session.as_str()))
    };
    let sessions = found.into_iter().filter(|session| is_behind(session) && search.matches(session)).collect();
    Ok(FoundSessions { sessions, next: None })
}

/// Examines the sessions in their order.
async fn scan(conn: &mut Conn, tenant: &TenantId, search: &SessionSearch) -> Result<FoundSessions, Error> {
    let limit = search.limit.max(1) as usize;
    let (mut found, mut found_bytes, mut after) = (Vec::new(), 0, search.after.clone());
    let (mut seen, mut seen_bytes) = (0, 0);
    loop {
        // One more than the page, to know whether it is the last.
        let batch = if search.has_conditions() { BATCH } else { BATCH.min(search.limit.max(1) + 1) };
        let batch = session_search::sessions_behind(conn, tenant, after.as_ref(), batch).await?;
        for (session, bytes) in batch.sessions {
            (seen, seen_bytes) = (seen + 1, seen_bytes + bytes);
            let place = SearchPosition { created_at: session.created_at, session: session.id.clone() };
            if search.matches(&session) {
                found_bytes += bytes;
                if found.len() == limit || (found_bytes > PAGE_BYTES && !found.is_empty()) {
                    return Ok(FoundSessions { sessions: found, next: after });
                }
                found.push(session);
            }
            after = Some(place);
        }
        if batch.is_last || seen >= SEARCHED_ENTRIES || seen_bytes >= SEARCHED_BYTES {
            return Ok(FoundSessions { sessions: found, next: after.filter(|_| !batch.is_last) });
        }
    }
}

impl SessionSearch {
    /// Whether some sessions of the tenant may not match.
    fn has_conditions(&self) -> bool {
        let Self { session_id, display_name, project_ids, user_metadata, statuses, limit: _, after: _ } = self;
        session_id.is_some()
            || display_name.is_some()
            || project_ids.is_some()
            || statuses.is_some()
            || !user_metadata.is_empty()
    }

    fn matches(&self, session: &FoundSession) -> bool {
        self.matches_name(session)
            && self
                .project_ids
                .as_ref()
                .is_none_or(|projects| session.project_id.as_ref().is_some_and(|project| projects.contains(project)))
            && self.user_metadata.iter().all(|(key, value)| has_entry(&session.user_metadata, key, value))
            && self
                .statuses
                .as_ref()
                .is_none_or(|statuses| statuses.iter().any(|status| status.matches(&session.status)))
    }

    fn matches_name(&self, session: &FoundSession) -> bool {
        let by_id = self.session_id.as_ref().map(|id| *id == session.id);
        let by_name = self.display_name.as_ref().map(|words| {
            let name = session.display_name.as_deref().unwrap_or_default().to_lowercase();
            words.to_lowercase().split_whitespace().all(|word| name.contains(word))
        });
        match (by_id, by_name) {
            (None, None) => true,
            (by_id, by_name) => by_id.unwrap_or(false) || by_name.unwrap_or(false),
        }
    }
}

/// Returns whether metadata contains an entry with this text.
fn has_entry(metadata: &serde_json::Value, key: &str, text: &str) -> bool {
    metadata.get(key).is_some_and(|value| {
        let json = value.to_string();
        value.as_str().unwrap_or(&json) == text
    })
}

impl StatusFilter {
    fn matches(&self, status: &SessionStatus) -> bool {
        match (self, status) {
            (Self::Active, SessionStatus::Active) => true,
            (Self::Finished(reasons), SessionStatus::Finished { reason, .. }) => {
                reasons.as_ref().is_none_or(|reasons| reasons.contains(reason))
            }
            _ => false,
        }
    }
}

struct AssignProject {
    tenant: TenantId,
    session: SessionId,
    project_id: String,
}

impl Write for AssignProject {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        session_search::set_project(conn, &self.tenant, &self.session, &self.project_id).await
    }
}
