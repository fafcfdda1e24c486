//! For those who come from other operators: their file of settings, and what they left in the
//! cluster. Nothing else needs it.

pub(crate) mod import;
pub(crate) mod leftovers;
