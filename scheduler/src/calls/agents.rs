//! Sessions of agents: their keys, their turns and rewards.

use std::time::Duration;

use trainyard_protocol::{AgentSessionId, SessionId, TenantId};

use crate::budgets::AGENT_SESSIONS;
use crate::context::core::Core;
use crate::store::agent_sessions::{self, AddedTurns};
use crate::store::agent_turns::{self, TurnReward};
use crate::store::db::{Conn, RowScope};
use crate::store::quotas;
use crate::writer::write::Write;
use crate::{AgentMatch, AgentSession, AgentTurn, Error, NewAgentSession, NewAgentTurn, Page, Rewarded, Scheduler};

/// Kind of the objects in errors.
const SESSION: &str = "agent session";

impl Scheduler {
    /// Creates an agent session, which expires by the database's clock.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the tenant has [`AGENT_SESSIONS`] open ones.
    pub async fn create_agent_session(&self, tenant: &TenantId, new: NewAgentSession) -> Result<AgentSession, Error> {
        let id = AgentSessionId::from_uuid(self.core.new_uuid());
        self.write(CreateAgentSession { tenant: tenant.clone(), id, new }).await
    }

    /// Returns an agent session of the tenant.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session, or another tenant's.
    pub async fn agent_session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<AgentSession, Error> {
        agent_sessions::agent_session(&mut self.core.reader_of(tenant).await?, tenant, id, self.core.now()).await
    }

    /// Lists the tenant's agent sessions, newest first.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn agent_sessions(&self, tenant: &TenantId, page: Page) -> Result<Vec<AgentSession>, Error> {
        let conn = &mut self.core.reader_of(tenant).await?;
        agent_sessions::list_agent_sessions(conn, tenant, page, self.core.now()).await
    }

    /// Ends an agent session: its key is refused from now on. The call can be repeated.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session, or another tenant's.
    pub async fn end_agent_session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<(), Error> {
        self.write(EndAgentSession { tenant: tenant.clone(), id: id.clone() }).await
    }

    /// Returns the turns whose conversations, with the reply, have one of these digests, oldest first.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn agent_matches(
        &self,
        tenant: &TenantId,
        id: &AgentSessionId,
        digests: Vec<String>,
    ) -> Result<Vec<AgentMatch>, Error> {
        agent_turns::turns_with_digests(&mut self.core.reader_of(tenant).await?, tenant, id, digests).await
    }

    /// Returns a turn with those that it continues, from the first one.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn agent_path(
        &self,
        tenant: &TenantId,
        id: &AgentSessionId,
        number: u64,
    ) -> Result<Vec<AgentTurn>, Error> {
        agent_turns::agent_path(&mut self.core.reader_of(tenant).await?, id, number).await
    }

    /// Returns all turns of an agent session, oldest first.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn agent_turns(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<Vec<AgentTurn>, Error> {
        agent_turns::agent_turns(&mut self.core.reader_of(tenant).await?, tenant, id).await
    }

    /// Refuses further turns of a tenant whose storage quota is used up.
    ///
    /// # Errors
    /// [`Error::Quota`] if the quota is used up.
    pub async fn admit_agent_turn(&self, tenant: &TenantId) -> Result<(), Error> {
        let policy = self.core.grants.policy(tenant);
        if policy.max_storage_bytes.is_some() {
            let stored = quotas::stored_bytes(&mut self.core.reader_of(tenant).await?, tenant).await?;
            policy.admit_storage(stored, 1).map_err(Error::Quota)?;
        }
        Ok(())
    }

    /// Records the replies of one request in one transaction. Repeating the call changes nothing.
    ///
    /// # Errors
    /// [`Error::Gone`] if the session was ended or deleted.
    pub async fn record_agent_turns(
        &self,
        tenant: &TenantId,
        id: &AgentSessionId,
        turns: Vec<NewAgentTurn>,
    ) -> Result<(), Error> {
        self.write(RecordAgentTurns { tenant: tenant.clone(), session: id.clone(), turns }).await
    }

    /// Sets a reward, in place of a former one.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session or turn, or another tenant's; [`Error::Invalid`] if the reward is not
    /// finite.
    pub async fn reward_agent(
        &self,
        tenant: &TenantId,
        id: &AgentSessionId,
        rewarded: Rewarded,
        reward: f64,
    ) -> Result<(), Error> {
        if !reward.is_finite() {
            return Err(Error::Invalid(format!("reward: expected a finite number, found {reward}")));
        }
        self.write(Reward { tenant: tenant.clone(), session: id.clone(), rewarded, reward }).await
    }
}

struct CreateAgentSession {
    tenant: TenantId,
    id: AgentSessionId,
    new: NewAgentSession,
}

impl Write for CreateAgentSession {
    type Output = AgentSession;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, _core: &Core) -> Vec<String> {
        vec![self.tenant.to_string()]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<AgentSession, Error> {
        let now = core.now();
        let open = agent_sessions::open_agent_sessions(conn, &self.tenant, now, AGENT_SESSIONS).await?;
        if open >= AGENT_SESSIONS {
            return Err(Error::Invalid(format!(
                "agent_sessions: {open} of at most {AGENT_SESSIONS} are open; end some, or wait until they expire"
            )));
        }
        let expires_at = now.plus(Duration::from_secs(self.new.limits.seconds));
        agent_sessions::insert_agent_session(conn, &self.tenant, &self.id, &self.new, now, expires_at).await?;
        agent_sessions::agent_session(conn, &self.tenant, &self.id, now).await
    }
}

/// Returns the name under which a change of a session excludes others, so that no two transactions wait for each other.
fn locked(id: &AgentSessionId) -> Vec<SessionId> {
    vec![SessionId::new(id.as_str())]
}

struct EndAgentSession {
    tenant: TenantId,
    id: AgentSessionId,
}

impl Write for EndAgentSession {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn sessions(&self) -> Vec<SessionId> {
        locked(&self.id)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        match agent_sessions::end_agent_session(conn, &self.tenant, &self.id, core.now()).await? {
            true => Ok(()),
            false => Err(Error::not_found(SESSION, &self.id)),
        }
    }
}

struct RecordAgentTurns {
    tenant: TenantId,
    session: AgentSessionId,
    turns: Vec<NewAgentTurn>,
}

impl Write for RecordAgentTurns {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn rows(&self) -> usize {
        self.turns.len()
    }

    fn sessions(&self) -> Vec<SessionId> {
        locked(&self.session)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let Some(first) = self.turns.first() else { return Ok(()) };
        if agent_turns::has_agent_turns(conn, &self.session, &first.request).await? {
            return Ok(());
        }
        let added = self.turns.iter().fold(AddedTurns::default(), |sum, turn| AddedTurns {
            turns: sum.turns + 1,
            tokens: sum.tokens + turn.sampled.len() as u64,
            prompt_tokens: sum.prompt_tokens + turn.prompt.len() as u64,
            bytes: sum.bytes + turn.size_bytes(),
        });
        let counted = agent_sessions::count_agent_turns(conn, &self.tenant, &self.session, added).await?;
        let gone = || Error::Gone { what: SESSION, id: self.session.to_string() };
        let number = counted.ok_or_else(gone)? - added.turns + 1;
        for (number, turn) in (number..).zip(&self.turns) {
            agent_turns::insert_agent_turn(conn, &self.tenant, &self.session, number, turn, core.now()).await?;
        }
        Ok(())
    }
}

struct Reward {
    tenant: TenantId,
    session: AgentSessionId,
    rewarded: Rewarded,
    reward: f64,
}

impl Write for Reward {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn sessions(&self) -> Vec<SessionId> {
        locked(&self.session)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let (tenant, session, reward) = (&self.tenant, &self.session, self.reward);
        agent_sessions::agent_session(conn, tenant, session, core.now()).await?;
        let (request, choice, is_branch) = match &self.rewarded {
            Rewarded::Session => {
                agent_sessions::reward_agent_session(conn, tenant, session, reward).await?;
                return Ok(());
            }
            Rewarded::Turn(request, choice) => (request, *choice, false),
            Rewarded::Branch(request, choice) => (request, *choice, true),
        };
        let new = TurnReward { request, choice, reward, is_branch };
        match agent_turns::reward_agent_turn(conn, tenant, session, &new).await? {
            true => Ok(()),
            false => Err(Error::not_found("turn", format!("{request}.{choice}"))),
        }
    }
}
