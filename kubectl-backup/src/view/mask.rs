//! Values that may be secret are never shown: the rule of all programs.

pub(crate) use crds::secret::{
    MASK, is_secret_field, is_secret_name as is_secret, mask as text, value,
};
