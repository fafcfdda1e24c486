//! A directory of a store as a store of its own: keys are below it.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::failure::Failure;
use crate::store::{Condition, Entry, OpenUpload, Own, Store, Upload, key_in};

/// A directory of a store.
pub struct Below {
    inner: Arc<dyn Store>,
    directory: String,
    name: String,
}

impl Below {
    /// `directory` of `inner`, without slashes at its ends; "" is its root. Messages call it `name`.
    pub fn new(inner: Arc<dyn Store>, directory: impl Into<String>, name: String) -> Self {
        Self {
            inner,
            directory: directory.into(),
            name,
        }
    }

    /// A key, or a directory, where "" is this store's root.
    fn at(&self, key: &str) -> String {
        if key.is_empty() {
            self.directory.clone()
        } else {
            key_in(&self.directory, key)
        }
    }

    fn strip(&self, key: String) -> String {
        let below = key.strip_prefix(self.directory.as_str());
        match below.map(|k| k.trim_start_matches('/').to_owned()) {
            Some(below) => below,
            None => key,
        }
    }
}

impl Store for Below {
    fn describe(&self) -> String {
        let place = self.inner.describe();
        if self.directory.is_empty() {
            format!("{} ({place})", self.name)
        } else {
            format!("{} ({place}, below {})", self.name, self.directory)
        }
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Upload>, Failure> {
        self.inner.begin(&self.at(key))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, Failure> {
        let mut found = self.inner.list(&self.at(directory))?;
        for entry in &mut found {
            entry.key = self.strip(std::mem::take(&mut entry.key));
        }
        Ok(found)
    }

    fn directories(&self, directory: &str) -> Result<Vec<String>, Failure> {
        let found = self.inner.directories(&self.at(directory))?;
        Ok(found.into_iter().map(|key| self.strip(key)).collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        self.inner.modified(&self.at(key))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        self.inner.open(&self.at(key))
    }

    fn open_part(
        &self,
        key: &str,
        part: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send>>, Failure> {
        self.inner.open_part(&self.at(key), part)
    }

    fn put(&self, key: &str, content: &[u8]) -> Result<(), Failure> {
        self.inner.put(&self.at(key), content)
    }

    fn create(&self, key: &str, content: &[u8]) -> Result<bool, Failure> {
        self.inner.create(&self.at(key), content)
    }

    fn try_condition(&self, key: &str, content: &[u8]) -> Result<Condition, Failure> {
        self.inner.try_condition(&self.at(key), content)
    }

    fn publishes_alone(&self) -> bool {
        self.inner.publishes_alone()
    }

    fn mark(&self, directory: &str, name: &str) -> Result<bool, Failure> {
        self.inner.mark(&self.at(directory), name)
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        self.inner.remove(&self.at(key))
    }

    fn own(&self, directory: &str) -> Result<Vec<Own>, Failure> {
        let mut found = self.inner.own(&self.at(directory))?;
        for own in &mut found {
            own.key = self.strip(std::mem::take(&mut own.key));
        }
        Ok(found)
    }

    fn abort_uploads(
        &self,
        directory: &str,
        dead: &(dyn Fn(&OpenUpload) -> bool + Sync),
    ) -> Result<u64, Failure> {
        self.inner.abort_uploads(&self.at(directory), &|upload| {
            dead(&OpenUpload {
                key: self.strip(upload.key.clone()),
                ..upload.clone()
            })
        })
    }

    fn dead_after(&self) -> Duration {
        self.inner.dead_after()
    }

    fn keep_alive(&self) {
        self.inner.keep_alive();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::super::{Attempt, VolumeStore};
    use super::*;

    /// What is written through it is where the store itself has it, and comes back under its own key.
    #[test]
    fn keys_are_below_the_directory_and_told_without_it() {
        let root = tempfile::tempdir_in("/dev/shm").unwrap();
        let attempt = Attempt {
            run: "r".into(),
            pod: "p".into(),
            nonce: "n".into(),
        };
        let inner: Arc<dyn Store> = Arc::new(VolumeStore::open(root.path(), attempt).unwrap());
        for (directory, place) in [("site/a", "site/a/ns/x"), ("", "ns/x")] {
            let store = Below::new(Arc::clone(&inner), directory, "Storage s".into());
            let mut upload = store.begin("ns/x").unwrap();
            upload.write(b"content").unwrap();
            upload.close().unwrap();
            assert!(upload.publish().unwrap());
            let content = std::fs::read(root.path().join(place)).unwrap();
            assert_eq!(content, b"content");
            let listed = store.list("ns").unwrap();
            assert_eq!(
                listed,
                [Entry {
                    key: "ns/x".into(),
                    size: 7
                }]
            );
            let mut text = String::new();
            let mut reader = store.open(&listed[0].key).unwrap().unwrap();
            reader.read_to_string(&mut text).unwrap();
            assert_eq!(text, "content");
            assert!(store.mark("ns", "told").unwrap() && !store.mark("ns", "told").unwrap());
            store.put("top", b"").unwrap();
            assert_eq!(store.list("").unwrap()[0].key, "top");
            store.remove("top").unwrap();
            store.remove("ns/x").unwrap();
            assert!(!root.path().join(place).exists());
            assert!(store.describe().starts_with("Storage s ("));
        }
    }
}
