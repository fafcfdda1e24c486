//! What is known of the cluster: of each object its spec and status as compact text, of its Jobs
//! and pods digests. Fed by watches and by the API server's answers to our own writes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::status::MAX_OPEN_RUNS;

use super::compressed::{CompressedObject, Compressor};
use super::queue::Key;
use crate::digest::Kept;
use crate::engine::{ForeignJob, JobDigest, Obstacle, PodDigest, StartFailure};
use crate::metrics::{Live, Series};
use crate::ownership;

/// One object and what belongs to it.
#[derive(Debug, Default)]
struct Entry {
    /// Index of the kind and the object; Jobs may be seen before it.
    object: Option<(usize, CompressedObject)>,
    resource_version: Box<str>,
    jobs: Vec<JobDigest>,
    pods: Vec<PodDigest>,
    failures: Vec<StartFailure>,
    /// What events said of Jobs that do not start.
    obstacles: Vec<Obstacle>,
    foreign_jobs: Vec<ForeignJob>,
    /// CronJobs that act on the object: UID and name.
    cron_jobs: Vec<(Box<str>, Box<str>)>,
    /// What /metrics shows of the object; made at a scrape, dropped when the object changes.
    series: Option<Arc<Series>>,
}

/// Bytes of a text that is kept even where there is no room: what tells an object apart.
const STUB: usize = 4096;

/// Appends without spare room: most objects have one Job, and the first push of a vector makes room
/// for four.
fn append<T>(list: &mut Vec<T>, item: T) {
    list.reserve_exact(1);
    list.push(item);
}

impl Entry {
    fn is_empty(&self) -> bool {
        let none = self.jobs.is_empty() && self.pods.is_empty();
        none && self.object.is_none() && self.foreign_jobs.is_empty() && self.cron_jobs.is_empty()
    }
}

/// A copy of one entry, to plan from.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) kind: usize,
    pub(crate) kept: Kept,
    pub(crate) jobs: Vec<JobDigest>,
    pub(crate) pods: Vec<PodDigest>,
    pub(crate) failures: Vec<StartFailure>,
    pub(crate) obstacles: Vec<Obstacle>,
    pub(crate) foreign_jobs: Vec<ForeignJob>,
    /// Names of CronJobs that act on the object.
    pub(crate) cron_jobs: Vec<Box<str>>,
}

/// The store.
#[derive(Debug, Default)]
pub(crate) struct Store {
    entries: Mutex<HashMap<Key, Entry>>,
    /// Every list was read: an object that is not known is not there, and what its pods say is of
    /// no use to anybody.
    complete: AtomicBool,
    /// Where objects become text.
    compressor: Mutex<Compressor>,
    /// Bytes of the texts, by namespace.
    bytes: Mutex<HashMap<Box<str>, usize>>,
}

/// Most bytes of texts that are kept of one namespace, so that nobody fills the memory for all. Ten
/// thousand usual objects take less than a third of it.
const NAMESPACE: usize = 32 << 20;

impl Store {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry<T>(&self, key: &str, change: impl FnOnce(&mut Entry) -> T) -> (Key, T) {
        let mut entries = self.lock();
        let key = match entries.get_key_value(key) {
            Some((key, _)) => key.clone(),
            None => Key::from(key),
        };
        let entry = entries.entry(key.clone()).or_default();
        let result = change(entry);
        if entry.is_empty() {
            entries.remove(&key);
        }
        (key, result)
    }

    /// Takes an object in, unless what is there is newer. True if anything but our own write's
    /// echo is new.
    pub(crate) fn set_object(&self, key: &str, kind: usize, kept: &Kept) -> (Key, bool) {
        self.entry(key, |entry| {
            let newer = is_newer(&kept.resource_version, &entry.resource_version);
            if entry.object.is_some() && !newer {
                return false;
            }
            entry.resource_version = kept.resource_version.as_str().into();
            let mut compressor = self
                .compressor
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let before = entry.object.take().map_or(0, |(_, text)| text.len());
            let text = compressor
                .write(kept)
                .filter(|text| self.fits(kept.object.namespace(), before, text.len()));
            let text = text.or_else(|| {
                let text = compressor.write(&kept.too_large("namespace"))?;
                self.fits(kept.object.namespace(), 0, text.len());
                Some(text)
            });
            entry.object = text.map(|text| (kind, text));
            entry.series = None;
            true
        })
    }

    /// Counts that a text of `before` bytes became one of `after`. If there is no room for it, false,
    /// and `before` alone is taken off; a stub is counted all the same.
    fn fits(&self, namespace: &str, before: usize, after: usize) -> bool {
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let used = all.entry(namespace.into()).or_default();
        *used = used.saturating_sub(before);
        let fits = *used + after <= NAMESPACE || after <= STUB;
        if fits {
            *used += after;
        }
        if *used == 0 {
            all.remove(namespace);
        }
        fits
    }

    /// Bytes of an object as it is kept.
    pub(crate) fn bytes_of(&self, key: &Key) -> usize {
        let entries = self.lock();
        let object = entries.get(key).and_then(|e| e.object.as_ref());
        object.map_or(0, |(_, text)| text.json_len())
    }

    /// Removes an object; its Jobs stay until they are gone.
    pub(crate) fn remove_object(&self, key: &str) -> Key {
        self.entry(key, |entry| {
            if let Some((_, text)) = entry.object.take() {
                self.fits(ownership::namespace(key), text.len(), 0);
            }
            entry.resource_version = Box::default();
            entry.failures = Vec::new();
            entry.pods = Vec::new();
            entry.series = None;
        })
        .0
    }

    /// Takes a Job in. True if it is news of an object that is known.
    pub(crate) fn set_job(&self, key: &str, job: JobDigest) -> (Key, bool) {
        self.entry(key, |entry| {
            match entry.jobs.iter_mut().find(|j| j.uid == job.uid) {
                // A late event of before its deletion or end is no news.
                Some(old) if old.deleting && !job.deleting => return false,
                Some(old) if !old.is_active() && job.is_active() => return false,
                Some(old) if *old == job => return false,
                Some(old) => *old = job,
                None => append(&mut entry.jobs, job),
            }
            entry.jobs.shrink_to_fit();
            entry.object.is_some()
        })
    }

    /// Removes a Job. True if it was there.
    pub(crate) fn remove_job(&self, key: &str, job_uid: &str) -> (Key, bool) {
        self.entry(key, |entry| {
            let before = entry.jobs.len();
            entry.jobs.retain(|j| *j.uid != *job_uid);
            entry.obstacles.retain(|o| *o.job_uid != *job_uid);
            entry.jobs.len() < before
        })
    }

    /// Marks a Job whose deletion was answered.
    pub(crate) fn job_deleting(&self, key: &str, job_uid: &str) {
        self.entry(key, |entry| {
            if let Some(job) = entry.jobs.iter_mut().find(|j| *j.uid == *job_uid) {
                job.deleting = true;
            }
        });
    }

    /// Takes a pod in; what an earlier state of it said of its end is kept. True if it is news.
    pub(crate) fn set_pod(&self, key: &str, mut pod: PodDigest) -> (Key, bool) {
        let complete = self.complete.load(Ordering::Acquire);
        self.entry(key, |entry| {
            if complete && entry.object.is_none() {
                return false;
            }
            match entry.pods.iter_mut().find(|p| p.uid == pod.uid) {
                Some(old) => {
                    pod.started |= old.started;
                    pod.ended = pod.ended.or_else(|| old.ended.clone());
                    let news = *old != pod;
                    *old = pod;
                    news
                }
                None => {
                    append(&mut entry.pods, pod);
                    true
                }
            }
        })
    }

    /// A pod is gone; what it said is kept until [`Store::settle`].
    pub(crate) fn pod_gone(&self, key: &str, mut pod: PodDigest) -> Key {
        pod.gone = true;
        self.set_pod(key, pod).0
    }

    /// Drops what events said of Jobs that have begun.
    pub(crate) fn begun(&self, key: &str, waiting: &HashSet<&str>) {
        self.entry(key, |entry| {
            entry.obstacles.retain(|o| waiting.contains(&*o.job_uid));
            entry.obstacles.shrink_to_fit();
        });
    }

    /// Every list was read. What pods of objects say that are not there is dropped, and not taken in
    /// any more: it would be kept for as long as the process lives.
    pub(crate) fn completed(&self) {
        let mut entries = self.lock();
        self.complete.store(true, Ordering::Release);
        for entry in entries.values_mut().filter(|e| e.object.is_none()) {
            entry.pods = Vec::new();
        }
        entries.retain(|_, entry| !entry.is_empty());
    }

    /// Drops pods whose Job is neither open nor awaited.
    pub(crate) fn settle(&self, key: &str, open: &HashSet<&str>) {
        self.entry(key, |entry| {
            entry.pods.retain(|p| open.contains(&*p.job_uid));
            entry.pods.shrink_to_fit();
        });
    }

    /// Notes what events said of a Job; what they said before is replaced. True if it is news.
    pub(crate) fn set_obstacle(&self, key: &str, obstacle: Obstacle) -> bool {
        self.entry(key, |entry| {
            let known = entry.jobs.iter().any(|j| j.uid == obstacle.job_uid);
            let same = |o: &Obstacle| o.job_uid == obstacle.job_uid;
            let before = entry.obstacles.iter().find(|o| same(o));
            let news = before.and_then(|b| b.words.as_ref()) != obstacle.words.as_ref();
            entry.obstacles.retain(|o| !same(o));
            if known {
                append(&mut entry.obstacles, obstacle);
            }
            news && known
        })
        .1
    }

    /// Notes a start that failed; an older one of the name is replaced.
    pub(crate) fn set_failure(&self, key: &str, failure: StartFailure) {
        self.entry(key, |entry| {
            entry.failures.retain(|f| f.name != failure.name);
            entry.failures.push(failure);
            let surplus = entry.failures.len().saturating_sub(8);
            entry.failures.drain(..surplus);
        });
    }

    /// Forgets the failures of an object for which a Job was made: what stood in its way does so no
    /// more. Names that others have stay so.
    pub(crate) fn clear_failures(&self, key: &str, name: &str) {
        self.entry(key, |entry| {
            entry.failures.retain(|f| f.taken && f.name != name)
        });
    }

    /// Replaces the Jobs of an object by what a live list said.
    pub(crate) fn set_jobs(&self, key: &str, mut jobs: Vec<JobDigest>) {
        jobs.shrink_to_fit();
        self.entry(key, |entry| entry.jobs = jobs);
    }

    /// Notes a Job the object owns that does not carry our label. True if it is news.
    pub(crate) fn set_foreign_job(&self, key: &str, foreign_job: ForeignJob) -> (Key, bool) {
        self.entry(key, |entry| {
            let news = !entry.foreign_jobs.contains(&foreign_job);
            entry.foreign_jobs.retain(|s| s.uid != foreign_job.uid);
            append(&mut entry.foreign_jobs, foreign_job);
            news
        })
    }

    /// Forgets such a Job. True if it was known.
    pub(crate) fn remove_foreign_job(&self, key: &str, job_uid: &str) -> (Key, bool) {
        self.entry(key, |entry| {
            let before = entry.foreign_jobs.len();
            entry.foreign_jobs.retain(|s| *s.uid != *job_uid);
            entry.foreign_jobs.len() < before
        })
    }

    /// Notes a CronJob that acts on the object, or that it does no more. True if it is news.
    pub(crate) fn set_cron_job(
        &self,
        key: &str,
        cron_job: (&str, &str),
        acts: bool,
    ) -> (Key, bool) {
        self.entry(key, |entry| {
            let known = entry.cron_jobs.iter().any(|(u, _)| **u == *cron_job.0);
            entry.cron_jobs.retain(|(u, _)| **u != *cron_job.0);
            if acts {
                entry.cron_jobs.push((cron_job.0.into(), cron_job.1.into()));
            }
            known != acts
        })
    }

    /// Owners and UIDs of Jobs without our label and of CronJobs in a scope.
    pub(crate) fn others(&self, scope: Option<&str>, cron_jobs: bool) -> Vec<(Key, Box<str>)> {
        let entries = self.lock();
        let mut found = vec![];
        for (key, entry) in entries.iter().filter(|(k, _)| is_in(k, scope)) {
            let uids: Vec<Box<str>> = if cron_jobs {
                entry.cron_jobs.iter().map(|(uid, _)| uid.clone()).collect()
            } else {
                entry.foreign_jobs.iter().map(|s| s.uid.clone()).collect()
            };
            found.extend(uids.into_iter().map(|uid| (key.clone(), uid)));
        }
        found
    }

    /// A copy to plan from; `None` if the object is unknown or gone.
    pub(crate) fn view(&self, key: &Key) -> Option<View> {
        let entries = self.lock();
        let entry = entries.get(key)?;
        let (kind, text) = entry.object.as_ref()?;
        Some(View {
            kind: *kind,
            kept: text.read()?,
            jobs: entry.jobs.clone(),
            pods: entry.pods.clone(),
            failures: entry.failures.clone(),
            obstacles: entry.obstacles.clone(),
            foreign_jobs: entry.foreign_jobs.clone(),
            cron_jobs: entry
                .cron_jobs
                .iter()
                .map(|(_, name)| name.clone())
                .collect(),
        })
    }

    /// Keys of all objects.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let entries = self.lock();
        let known = entries.iter().filter(|(_, e)| e.object.is_some());
        known.map(|(k, _)| k.clone()).collect()
    }

    /// What /metrics shows of an object. `make` is called, outside the lock, if the object changed
    /// since the last scrape.
    pub(crate) fn series(
        &self,
        key: &Key,
        make: impl FnOnce(usize, &Kept) -> Series,
    ) -> Option<(Arc<Series>, Live)> {
        let (live, kind, text) = {
            let entries = self.lock();
            let entry = entries.get(key)?;
            let live = Live::of(&entry.jobs, &entry.pods);
            if let Some(series) = &entry.series {
                return Some((series.clone(), live));
            }
            let (kind, text) = entry.object.as_ref()?;
            (live, *kind, text.clone())
        };
        let kept = text.read()?;
        let series = Arc::new(make(kind, &kept));
        let mut entries = self.lock();
        let unchanged =
            |e: &&mut Entry| e.object.is_some() && *e.resource_version == *kept.resource_version;
        if let Some(entry) = entries.get_mut(key).filter(unchanged) {
            entry.series = Some(series.clone());
        }
        Some((series, live))
    }

    /// Keys of all objects of a kind in a scope.
    pub(crate) fn objects(&self, kind: usize, scope: Option<&str>) -> Vec<Key> {
        let entries = self.lock();
        let of_kind = |e: &Entry| e.object.as_ref().is_some_and(|(k, _)| *k == kind);
        let all = entries
            .iter()
            .filter(|(k, e)| of_kind(e) && is_in(k, scope));
        all.map(|(k, _)| k.clone()).collect()
    }

    /// Owners and UIDs of all Jobs in a scope.
    pub(crate) fn jobs(&self, scope: Option<&str>) -> Vec<(Key, Box<str>)> {
        let entries = self.lock();
        let all = entries.iter().filter(|(k, _)| is_in(k, scope));
        all.flat_map(|(k, e)| e.jobs.iter().map(move |j| (k.clone(), j.uid.clone())))
            .collect()
    }

    /// Owners and all pods not known to be gone in a scope.
    pub(crate) fn pods(&self, scope: Option<&str>) -> Vec<(Key, PodDigest)> {
        let entries = self.lock();
        let all = entries.iter().filter(|(k, _)| is_in(k, scope));
        let pods = all.flat_map(|(k, e)| e.pods.iter().map(move |p| (k.clone(), p.clone())));
        pods.filter(|(_, p)| !p.gone).collect()
    }

    /// Runs that are active now: in all and in a namespace. Only objects that are there have runs,
    /// and none has more than may be open, whatever Jobs somebody made in its name.
    pub(crate) fn active_runs(&self, namespace: &str) -> (usize, usize) {
        let entries = self.lock();
        let (mut all, mut here) = (0, 0);
        for (key, entry) in entries.iter().filter(|(_, e)| e.object.is_some()) {
            let active = entry.jobs.iter().filter(|j| j.takes_a_place()).count();
            let active = active.min(MAX_OPEN_RUNS);
            all += active;
            here += if ownership::namespace(key) == namespace {
                active
            } else {
                0
            };
        }
        (all, here)
    }

    /// Objects and Jobs, for gauges.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let entries = self.lock();
        let objects = entries.values().filter(|e| e.object.is_some()).count();
        (objects, entries.values().map(|e| e.jobs.len()).sum())
    }
}

fn is_in(key: &str, scope: Option<&str>) -> bool {
    scope.is_none_or(|namespace| ownership::namespace(key) == namespace)
}

/// Resource versions are numbers in every API server there is; others count as newer.
fn is_newer(new: &str, old: &str) -> bool {
    match (new.parse::<u64>(), old.parse::<u64>()) {
        (Ok(new), Ok(old)) => new > old,
        _ => new != old,
    }
}

/// Shared.
pub(crate) type SharedStore = Arc<Store>;

#[cfg(test)]
mod room;
#[cfg(test)]
mod tests;
