//! The reasons for which a model's settings are refused.

/// The reason why a model's `preprocessor_config.json` is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The text is not JSON.
    #[error("preprocessor_config.json: {0}")]
    Json(String),
    /// A setting has a value that is not supported.
    #[error("preprocessor_config.json: `{field}`: {reason}")]
    Field {
        /// Name of the setting, with those that contain it.
        field: String,
        /// What was expected, and what was found.
        reason: String,
    },
}
