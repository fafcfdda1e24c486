//! What the pods of runs and restores are made with. PURE.

pub(crate) mod pod;
