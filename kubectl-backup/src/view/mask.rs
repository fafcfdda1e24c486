//! Values that may be secret are never shown: the rule of all programs.

pub(crate) use crds::secret::{is_secret_field, mask as text, value};
