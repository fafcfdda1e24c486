//! `__complete`: answers a shell's question.

pub(crate) mod words;
