//! Words of fieldless enum values: the ones that serde writes for them, used to show, store and read them.

use serde::Serialize;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::confidence::ConfidenceClass;
use crate::record::{ServerStatus, ServerTransport};
use crate::{AnswerClassification, CaseClass, CaseHazard};

/// A fieldless enum value with its word.
pub(crate) trait Word: Serialize {
    /// Returns its word.
    fn word(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            _ => String::new(),
        }
    }
}

impl Word for AnswerClassification {}
impl Word for CaseClass {}
impl Word for CaseHazard {}
impl Word for ConfidenceClass {}
impl Word for ServerStatus {}
impl Word for ServerTransport {}
impl Word for args::RepairClass {}
impl Word for args::ToolEffect {}

/// Returns the value of a word.
///
/// # Errors
/// Fails if no value has this word.
pub(crate) fn of_word<T: DeserializeOwned>(word: &str) -> Result<T, Error> {
    T::deserialize(word.into_deserializer())
}
