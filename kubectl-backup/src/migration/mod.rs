//! For those who come from other operators: their file of settings as our objects (`import`), and
//! what they run or left in the cluster (`foreign`). Nothing else needs this folder.

pub(crate) mod foreign;
pub(crate) mod import;
