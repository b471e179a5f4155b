//! Values that are bound to a statement's parameters.

/// A parameter. Absent values have a type too, because PostgreSQL requires it.
pub(crate) enum Value<'q> {
    Text(Option<&'q str>),
    OwnedText(Option<String>),
    Int(Option<i64>),
    Bool(Option<bool>),
    Bytes(Option<&'q [u8]>),
    /// A list: an array in PostgreSQL, a JSON array in SQLite.
    Texts(Vec<String>),
}

impl Value<'_> {
    /// Returns an absent value of the same type.
    pub(super) fn absent(&self) -> Self {
        match self {
            Self::Text(_) => Self::Text(None),
            Self::OwnedText(_) => Self::OwnedText(None),
            Self::Int(_) => Self::Int(None),
            Self::Bool(_) => Self::Bool(None),
            Self::Bytes(_) => Self::Bytes(None),
            Self::Texts(_) => Self::Texts(Vec::new()),
        }
    }
}

impl<'q> From<&'q str> for Value<'q> {
    fn from(text: &'q str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'q> From<Option<&'q str>> for Value<'q> {
    fn from(text: Option<&'q str>) -> Self {
        Self::Text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::OwnedText(Some(text))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::OwnedText(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Self::Bool(Some(truth))
    }
}

impl<'q> From<&'q [u8]> for Value<'q> {
    fn from(bytes: &'q [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'q> From<Option<&'q [u8]>> for Value<'q> {
    fn from(bytes: Option<&'q [u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<String>> for Value<'_> {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}
