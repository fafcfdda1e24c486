//! kubectl's templates of output: JSONPath and custom columns.

pub(crate) mod columns;
pub(crate) mod jsonpath;
