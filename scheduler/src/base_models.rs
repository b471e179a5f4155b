//! Base models and secrets, which the processes on one store share.

use std::collections::BTreeMap;

use trainyard_protocol::BaseModel;

use crate::core::Core;
use crate::store::base_models::{self, Files};
use crate::store::db::Conn;
use crate::store::{numerics, workers};
use crate::write::Write;
use crate::{Error, Scheduler};

impl Scheduler {
    /// Publishes a base model that this process's worker serves, with its tokenizer and configuration files by name.
    pub async fn put_base_model(&self, model: BaseModel, files: BTreeMap<String, Vec<u8>>) -> Result<(), Error> {
        self.write(PutBaseModel { model, files }).await
    }

    /// All base models that workers have published, by name.
    pub async fn base_models(&self) -> Result<Vec<BaseModel>, Error> {
        base_models::base_models(&mut self.core.reader().await?).await
    }

    /// Whether workers serve two base models with the same weights.
    pub async fn are_same_weights(&self, one: &str, other: &str) -> Result<bool, Error> {
        numerics::are_same_weights(&mut self.core.reader().await?, one, other).await
    }

    /// How many workers, of all processes, hold a lease now.
    pub async fn live_workers(&self) -> Result<usize, Error> {
        Ok(workers::live_workers(&mut self.core.reader().await?).await?.len())
    }

    /// Tokenizer and configuration files of a base model, by name.
    pub async fn base_model_files(&self, model: &str) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        base_models::base_model_files(&mut self.core.reader().await?, model).await
    }

    /// A secret that all processes on the store share: `candidate`, unless there is one already.
    pub async fn shared_secret(&self, name: &'static str, candidate: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.write(SharedSecret { name, candidate }).await
    }
}

struct PutBaseModel {
    model: BaseModel,
    files: Files,
}

impl Write for PutBaseModel {
    type Output = ();

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        base_models::put_base_model(conn, &self.model, &self.files).await
    }
}

struct SharedSecret {
    name: &'static str,
    candidate: Vec<u8>,
}

impl Write for SharedSecret {
    type Output = Vec<u8>;

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<Vec<u8>, Error> {
        base_models::shared_secret(conn, self.name, &self.candidate).await
    }
}
