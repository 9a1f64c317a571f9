//! The forgiving reader.
