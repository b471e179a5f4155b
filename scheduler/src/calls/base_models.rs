//! Base models, shared by the processes on one store.

use std::collections::BTreeMap;

use trainyard_protocol::BaseModel;

use crate::context::core::Core;
use crate::store::base_models::{self, Files};
use crate::store::db::{Conn, RowScope};
use crate::store::{numerics, workers};
use crate::writer::write::Write;
use crate::{Error, Scheduler};

impl Scheduler {
    /// Publishes the base models that this process's worker serves, each with its tokenizer and configuration files by
    /// name. An API server sees either all of them or none.
    pub async fn put_base_models(&self, mut models: Vec<(BaseModel, BTreeMap<String, Vec<u8>>)>) -> Result<(), Error> {
        // Workers that publish the same ones at once lock rows in the same order.
        models.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        self.write(PutBaseModels { models }).await
    }

    /// Returns all base models that workers have published, by name.
    pub async fn base_models(&self) -> Result<Vec<BaseModel>, Error> {
        base_models::base_models(&mut self.core.system_reader().await?).await
    }

    /// Returns whether workers serve two base models with the same weights.
    pub async fn are_same_weights(&self, one: &str, other: &str) -> Result<bool, Error> {
        numerics::are_same_weights(&mut self.core.system_reader().await?, one, other).await
    }

    /// Returns how many workers of all processes currently have a lease.
    pub async fn live_workers(&self) -> Result<usize, Error> {
        Ok(workers::live_workers(&mut self.core.system_reader().await?).await?.len())
    }

    /// Returns the tokenizer and configuration files of a base model, by name.
    pub async fn base_model_files(&self, model: &str) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        base_models::base_model_files(&mut self.core.system_reader().await?, model).await
    }
}

struct PutBaseModels {
    models: Vec<(BaseModel, Files)>,
}

impl Write for PutBaseModels {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        for (model, files) in &self.models {
            base_models::put_base_model(conn, model, files).await?;
        }
        Ok(())
    }
}
