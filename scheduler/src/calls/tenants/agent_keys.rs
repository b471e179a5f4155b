//! Keys of agent sessions.

use super::Directory;
use crate::store::agent_sessions;
use crate::{AgentKey, Error};

impl Directory {
    /// Returns the holder of an agent session's key by the key's SHA-256, whether or not the key is still accepted.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn agent_key(&self, digest: &[u8; 32]) -> Result<Option<AgentKey>, Error> {
        agent_sessions::agent_key(&mut self.system_reader().await?, digest).await
    }
}
