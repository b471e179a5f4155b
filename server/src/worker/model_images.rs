//! Rules by which the models of a worker accept images.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_images::Preprocessor;
use trainyard_protocol::{BaseModel, OpError};
use trainyard_wire::images::{ImageLimits, ImageRules, read_settings};

/// Rules and preprocessors by the name of the base model.
pub struct ModelImages(BTreeMap<String, ModelRules>);

struct ModelRules {
    rules: ImageRules,
    /// `None` for a model that takes no images.
    preprocessor: Option<Result<Arc<Preprocessor>, OpError>>,
}

impl ModelImages {
    /// Reads the settings of models.
    pub fn new(models: &[BaseModel], limits: ImageLimits) -> Self {
        let rules = |model: &BaseModel| {
            let read = |vision| read_settings(&model.name, vision).map(Arc::new);
            ModelRules { rules: ImageRules::new(model, limits), preprocessor: model.vision.as_ref().map(read) }
        };
        Self(models.iter().map(|model| (model.name.clone(), rules(model))).collect())
    }

    /// Returns the rules of a model.
    ///
    /// # Errors
    /// A server error if the model is not served.
    pub(super) fn rules(&self, base_model: &str) -> Result<&ImageRules, OpError> {
        self.find(base_model).map(|model| &model.rules)
    }

    /// Returns the preprocessor of a model.
    ///
    /// # Errors
    /// A user error if the model takes no images; a server error if it is not served or its settings can't be read.
    pub(super) fn preprocessor(&self, base_model: &str) -> Result<Arc<Preprocessor>, OpError> {
        match &self.find(base_model)?.preprocessor {
            Some(read) => read.clone(),
            None => Err(OpError::user(format!("model {base_model} does not take images"))),
        }
    }

    fn find(&self, base_model: &str) -> Result<&ModelRules, OpError> {
        let missing = || OpError::server(format!("base model {base_model:?} is not served by this engine"));
        self.0.get(base_model).ok_or_else(missing)
    }
}
