//! How many objects a page of a list asks for: by the bytes of what came. PURE but for its memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a page of a list: it is dropped beyond them, unless it holds one object alone.
pub(super) const PAGE: usize = 1 << 20;

/// Objects of the first page of a kind.
const FIRST: u32 = 16;
/// Most objects of a page.
const MOST: u32 = 500;

/// The size of pages, by kind.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<HashMap<String, u32>>);

impl Pages {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Objects to ask for, at most `most`.
    pub(super) fn limit(&self, resource: &str, most: Option<u32>) -> u32 {
        let limit = self.lock().get(resource).copied().unwrap_or(FIRST);
        limit.min(most.unwrap_or(MOST)).max(1)
    }

    /// A page of `limit` had this number of bytes and objects.
    pub(super) fn read(&self, resource: &str, limit: u32, bytes: usize, objects: usize) {
        let next = after(limit, bytes, objects);
        self.lock().insert(resource.to_owned(), next);
    }

    /// A page of `limit` was too large to be read.
    pub(super) fn too_large(&self, resource: &str, limit: u32) {
        let next = (limit / 4).max(1);
        self.lock().insert(resource.to_owned(), next);
    }
}

/// As many as half a page holds of what came, but at most twice as many as before: the next ones may
/// be larger.
fn after(limit: u32, bytes: usize, objects: usize) -> u32 {
    let each = (bytes / objects.max(1)).max(1);
    let fit = u32::try_from(PAGE / 2 / each).unwrap_or(MOST);
    fit.min(limit.saturating_mul(2)).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o4_pages_grow_with_small_objects_and_shrink_with_large_ones() {
        let pages = Pages::default();
        let mut limits = vec![];
        for _ in 0..6 {
            let limit = pages.limit("a", Some(500));
            limits.push(limit);
            pages.read("a", limit, limit as usize * 2000, limit as usize);
        }
        // Half a MiB holds 262 objects of 2,000 bytes.
        assert_eq!(limits, [16, 32, 64, 128, 256, 262]);
        assert_eq!(pages.limit("a", Some(20)), 20);
        assert_eq!(pages.limit("b", None), 16);
        for wanted in [65, 16, 4, 1, 1] {
            pages.too_large("a", pages.limit("a", None));
            assert_eq!(pages.limit("a", None), wanted);
        }
        pages.read("a", 1, 1_200_000, 1);
        assert_eq!(pages.limit("a", None), 1);
        pages.read("a", 1, 2000, 1);
        assert_eq!(pages.limit("a", None), 2);
        pages.read("a", 2, 60, 0);
        assert_eq!(pages.limit("a", None), 4);
    }
}
