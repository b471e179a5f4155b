//! Settings of a JSON object: each one is read, or known to be neutral, or refused.

use serde_json::{Map, Value};

use crate::preprocess::error::SettingsError;
use crate::preprocess::normalization::Normalization;

/// Settings that change no number.
const NEUTRAL: &[&str] = &[
    "auto_map",
    "data_format",
    "default_to_square",
    "device",
    "disable_grouping",
    "feature_extractor_type",
    "image_processor_type",
    "input_data_format",
    "model_input_names",
    "processor_class",
    "return_tensors",
];
/// Steps that every supported processor takes.
const STEPS: &[&str] = &["do_convert_rgb", "do_normalize", "do_rescale", "do_resize"];
/// Steps that none takes.
const OTHER_STEPS: &[&str] = &["do_center_crop", "do_pad"];
/// Number of bicubic resampling in PIL.
const BICUBIC: u64 = 3;
/// Maximum number of characters of a value in an error.
const SHOWN: usize = 60;

/// The settings of an object that were not read yet.
pub(super) struct Fields<'a> {
    left: Map<String, Value>,
    /// Names of the objects around this one, each with a dot behind it.
    path: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(settings: Map<String, Value>, path: &'a str) -> Self {
        Self { left: settings, path }
    }

    pub(super) fn refused(&self, field: &str, reason: String) -> SettingsError {
        SettingsError::Field { field: format!("{}{field}", self.path), reason }
    }

    pub(super) fn expected(&self, field: &str, wanted: &str, found: &Value) -> SettingsError {
        let found: String = found.to_string().chars().take(SHOWN).collect();
        self.refused(field, format!("expected {wanted}, found {found}"))
    }

    /// Reads an object; `None` if it is missing or null.
    pub(super) fn object(&mut self, field: &str) -> Result<Option<Map<String, Value>>, SettingsError> {
        match self.left.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(found) => Err(self.expected(field, "an object", &found)),
        }
    }

    /// Reads a whole number from 1 to `most`, or the default if it is missing or null.
    pub(super) fn number(&mut self, field: &str, default: u64, most: u64) -> Result<u64, SettingsError> {
        match self.left.get(field) {
            None | Some(Value::Null) => Ok(default),
            Some(_) => self.required(field, most),
        }
    }

    /// Reads a whole number from 1 to `most`.
    pub(super) fn required(&mut self, field: &str, most: u64) -> Result<u64, SettingsError> {
        let found = self.left.remove(field).unwrap_or_default();
        let number = found.as_u64().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| self.expected(field, &format!("a whole number from 1 to {most}"), &found))
    }

    /// Reads mean, deviation and factor of all channels.
    pub(super) fn normalization(
        &mut self,
        mean: [f64; 3],
        deviation: [f64; 3],
    ) -> Result<Normalization, SettingsError> {
        let mean = self.channels("image_mean", mean, |value| value.abs() <= 1e3)?;
        let deviation = self.channels("image_std", deviation, |value| (1e-3..=1e3).contains(&value))?;
        let factor = match self.left.remove("rescale_factor") {
            None => 1.0 / 255.0,
            Some(found) => found
                .as_f64()
                .filter(|factor| (1e-6..=1.0).contains(factor))
                .ok_or_else(|| self.expected("rescale_factor", "a number from 0.000001 to 1", &found))?,
        };
        Ok(Normalization::new(mean, deviation, factor))
    }

    /// Reads a number for each channel, or one for all.
    fn channels(
        &mut self,
        field: &str,
        default: [f64; 3],
        allowed: impl Fn(f64) -> bool,
    ) -> Result<[f64; 3], SettingsError> {
        let Some(found) = self.left.remove(field) else {
            return Ok(default);
        };
        let number = |value: &Value| value.as_f64().filter(|&number| allowed(number));
        let values = match &found {
            Value::Array(values) => values.iter().map(number).collect::<Option<Vec<f64>>>(),
            value => number(value).map(|number| vec![number; 3]),
        };
        let values = values.and_then(|values| <[f64; 3]>::try_from(values).ok());
        values.ok_or_else(|| self.expected(field, "three numbers in a plausible range", &found))
    }

    /// Refuses settings that are left, unless they are neutral, have the supported value or are null.
    pub(super) fn finish(self, neutral: &[&str]) -> Result<(), SettingsError> {
        for (field, value) in &self.left {
            let name = field.as_str();
            let wanted = if STEPS.contains(&name) {
                (value != &Value::Bool(true)).then_some("true")
            } else if OTHER_STEPS.contains(&name) {
                (!value.is_null() && value != &Value::Bool(false)).then_some("false")
            } else if name == "resample" {
                (value.as_u64() != Some(BICUBIC)).then_some("3 (bicubic)")
            } else {
                (!value.is_null() && !NEUTRAL.contains(&name) && !neutral.contains(&name)).then_some("no such setting")
            };
            if let Some(wanted) = wanted {
                let shown: String = name.chars().take(SHOWN).collect();
                return Err(self.expected(&shown, wanted, value));
            }
        }
        Ok(())
    }
}
