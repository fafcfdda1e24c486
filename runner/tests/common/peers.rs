//! Programs that real users have and no package brings, built by `tests/testbed peer` from the sources beside the checkout.

use std::path::PathBuf;

use super::testbed;

/// The directory with the programs of this peer. A test that calls it fails where the sources are not.
pub fn peer(name: &str) -> PathBuf {
    testbed(&["peer", name])
}
