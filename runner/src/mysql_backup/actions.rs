//! The dumps of a MysqlBackup at its destination, as they are listed, verified and pruned; and Probe.

use std::sync::Arc;

use crds::parts::Retention;

use crate::artefact::{self, Artefacts, KnownArtefact, Listed, Origin, Replayed};
use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::binlogs::place::SegmentPlace;
use crate::mysql_backup::dumps::DumpCandidates;
use crate::mysql_backup::manifest::{self, Manifest};
use crate::mysql_backup::stored::StoredDumps;
use crate::mysql_backup::{artefacts, backup, replay_check, restore_check};
use crate::notify::outcome;
use crate::retention::{Candidates, Content, Facts, Records, owner};
use crate::store::Store;

impl Artefacts for StoredDumps<'_> {
    type Artefact = Manifest;

    fn context(&self) -> &Context {
        self.context
    }

    fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    fn storage(&self) -> Option<&str> {
        None
    }

    fn records(&self) -> Records {
        Records {
            directory: self.context.settings.identity.directory(),
            schema: manifest::SCHEMA,
            fits: |at, facts| Manifest::artefact_of(at) == Some(&facts.key),
            read_back: false,
        }
    }

    fn by_key(&self, key: &str) -> Result<Option<KnownArtefact>, Failure> {
        if key.split('/').any(|part| part == "..") || key.starts_with('/') {
            return Err(Failure::settings(format!(
                "{key:?} is not a key below the destination"
            )));
        }
        let at = Manifest::key_of(key);
        let found = manifest::read(self.store(), &at)?.filter(|m| m.key == key);
        Ok(found.map(|m| KnownArtefact {
            manifest: at,
            owner: owner(&m.cluster_id, &m.object, &self.context.settings.identity),
            facts: Facts {
                key: m.key,
                run: m.run,
                started_at: m.started_at,
                stored_bytes: m.stored_bytes,
                stored_sha256: m.stored_sha256,
                read_back: Some(m.read_back),
                ..Facts::default()
            },
            failed: false,
            content: Content::Whole,
            origin: Origin::Own,
        }))
    }

    fn read(&self, known: &KnownArtefact) -> Result<Option<Manifest>, Failure> {
        manifest::read(self.store(), &known.manifest)
    }

    fn details(&self, m: &Manifest) -> Listed {
        Listed {
            encryption: m.encryption.clone(),
            trigger: Some(m.trigger.clone()),
            tables: Some(m.tables.len() as u64),
            rows: Some(m.tables.iter().map(|t| t.rows).sum()),
            files: None,
        }
    }

    fn check(&self, m: &Manifest) -> Result<String, Failure> {
        artefacts::check(self.store(), m)?;
        let bytes = m.stored_bytes;
        Ok(format!("{bytes} bytes of {} have their SHA-256", m.key))
    }

    fn restore(&self, m: &Manifest) -> Result<String, Failure> {
        restore_check::verify(self.context, self.store(), m)
    }

    fn replay(&self, m: &Manifest) -> Result<Replayed, Failure> {
        replay_check::verify(self, m)
    }

    fn rules(&self) -> Option<Retention> {
        self.context.settings.retention.clone()
    }

    fn candidates(&self) -> Box<dyn Candidates + '_> {
        Box::new(DumpCandidates::new(self))
    }

    fn forget(&self) -> Result<(), Failure> {
        outcome::forget(self.store(), &self.records().directory)?;
        SegmentPlace::own(self.context, Arc::clone(&self.store)).remove_all(self.context)?;
        backup::clean(self.context, self.store(), true).map(drop)
    }
}

/// Logs in to the source and writes, reads and removes a small object at the destination.
///
/// # Errors
/// One of them can't be used.
pub fn probe(context: &Context) -> Result<(), Failure> {
    let source = context.settings.source()?;
    let store = context.open_store()?;
    let databases = backup::probe(context, source)?;
    context.reporter.phase("Storing");
    artefact::probe(
        context,
        store.as_ref(),
        &context.settings.identity.directory(),
    )?;
    let message = format!(
        "user {:?} sees {databases} databases; {} can be written, read and removed from",
        source.username,
        store.describe()
    );
    context.reporter.update(|r| r.message = message);
    Ok(())
}
