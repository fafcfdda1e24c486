//! A snapshot of Redis or Valkey into a running server, value by value.

use crds::report::{Reason, exit};
use secrecy::ExposeSecret;

use crate::database::redis::rdb::Error;
use crate::database::redis::server as target;
use crate::database::redis::server::{Address, Loaded, Stop, Survey};
use crate::database::restore::{Hashed, Job, damaged};
use crate::failure::Failure;
use crate::report::Ticker;
use crate::settings::Source;

/// Restores.
///
/// # Errors
/// As the module above.
pub(crate) fn restore(job: &Job<'_>, source: &Source) -> Result<(), Failure> {
    if let Some(to) = &job.options.database {
        return Err(Failure::settings(format!(
            "spec.to.database (--database) {to}: databases of Redis are numbers, and keys go into those they were in; leave it out"
        )));
    }
    let now = u64::try_from(job.context.clock.now().timestamp_millis()).unwrap_or(0);
    let mut survey = Survey::default();
    job.compared(&mut |_, _, dump| {
        survey = target::survey(dump, now).map_err(|e| unreadable(job, e))?;
        Ok(())
    })?;
    for module in &survey.modules {
        job.context.reporter.warn(&format!(
            "data of module {module} that belongs to no key is not restored over the network; spec.to.volume (--to-volume) takes dump.rdb whole"
        ));
    }
    job.context.reporter.phase("Connecting");
    let address = Address {
        host: &source.host,
        port: job.port,
        socket: source.socket.as_deref(),
        username: &source.username,
        password: source.password.expose_secret(),
        tls: source.tls,
        authority: source.ca_file.as_deref(),
    };
    let mut server = target::Server::connect(job.context, &address)?;
    fits(&server, &survey, &address)?;
    let living = survey.living();
    let mut held = 0;
    for database in living.keys() {
        held += free(job, &mut server, *database)?;
    }
    if survey.functions > 0 && server.has_functions()? && !job.options.overwrite {
        return Err(Failure::occupied(
            Reason::TargetNotEmpty,
            "libraries of functions are there already",
        ));
    }
    if !job.options.overwrite {
        let ids = ["master_replid", "master_replid2"].map(|name| server.fact(name));
        let ours = survey.replication_id.as_deref();
        if ours.is_some() && ids.contains(&ours) {
            return Err(Failure::occupied(
                Reason::TargetIsSource,
                &format!("{} is the server this dump came from", address.text()),
            ));
        }
    }
    job.show_bytes();
    let keys: u64 = living.values().sum();
    let what = |keys: u64, expired: u64| {
        let mut what = format!(
            "{keys} keys in {} databases of {} into {}",
            living.len(),
            job.what(),
            address.text()
        );
        if survey.functions > 0 {
            what.push_str(&format!(
                ", with {} libraries of functions",
                survey.functions
            ));
        }
        if expired > 0 {
            what.push_str(&format!("; {expired} keys had expired and are left out"));
        }
        if held > 0 {
            what.push_str(&format!(
                "; of the {held} keys it held those of the same name are replaced"
            ));
        }
        what
    };
    if job.options.dry_run {
        let expired = survey.expired.values().sum();
        job.would(&what(keys, expired));
        return Ok(());
    }
    job.context.reporter.phase("Restoring");
    let _ticker = Ticker::start(std::sync::Arc::clone(&job.context.reporter), || {});
    let mut loaded = Loaded::default();
    job.walk(&mut |_, dump, entry| {
        let mut hashed = Hashed::new(job.context, entry);
        let outcome = target::load(&mut server, &mut hashed, job.options.overwrite, now);
        loaded = outcome.map_err(|stop| match stop {
            Stop::Snapshot(e) => partly(unreadable(job, e)),
            Stop::Server(e) => partly(e),
        })?;
        if hashed.is(dump) {
            return Ok(());
        }
        Err(incomplete(
            "what was loaded is not the dump that was checked before: the target is not to be trusted",
        ))
    })?;
    arrived(job, &mut server, &loaded)?;
    job.done(&what(loaded.total(), loaded.expired));
    Ok(())
}

/// Number of keys in a database that is to be filled.
fn free(job: &Job<'_>, server: &mut target::Server<'_>, database: u64) -> Result<u64, Failure> {
    let keys = server.keys(database)?;
    if keys > 0 && !job.options.overwrite {
        return Err(Failure::occupied(
            Reason::TargetNotEmpty,
            &format!("{keys} keys are in database {database} already"),
        ));
    }
    Ok(keys)
}

/// A server of an older format refuses every value: that is said before anything is written.
fn fits(
    server: &target::Server<'_>,
    survey: &Survey,
    address: &Address<'_>,
) -> Result<(), Failure> {
    let needed = match survey.version {
        ..=9 => return Ok(()),
        10 => (7, 0),
        11 => (7, 2),
        12..=79 => (7, 4),
        // Valkey's own, which calls itself Redis 7.2.
        80.. if server.fact("valkey_version").is_some() => return Ok(()),
        80.. => (u32::MAX, 0),
    };
    let Some(version) = server.fact("redis_version") else {
        return Ok(());
    };
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let there = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if there >= needed {
        return Ok(());
    }
    let made_by = survey.made_by.as_deref().unwrap_or("a newer server");
    Err(Failure::new(
        Reason::TargetTooOld,
        format!(
            "the dump is of {made_by} (RDB version {}), which {} with version {version} does not read: restore into a server as new, of the same maker",
            survey.version,
            address.text()
        ),
    ))
}

/// The keys are there that were sent.
fn arrived(job: &Job<'_>, server: &mut target::Server<'_>, loaded: &Loaded) -> Result<(), Failure> {
    let minutes = job.context.clock.elapsed().as_secs() / 60 + 1;
    for (database, sent) in &loaded.keys {
        let there = server.keys(*database)?;
        let least = loaded.at_least(*database, minutes);
        // With overwrite there may be others.
        let most = if job.options.overwrite {
            u64::MAX
        } else {
            *sent
        };
        if there < least || there > most {
            return Err(incomplete(&format!(
                "{sent} keys were sent to database {database} and it holds {there}: somebody else writes to the target, or it evicts keys (maxmemory)"
            )));
        }
    }
    Ok(())
}

fn partly(e: Failure) -> Failure {
    Failure {
        message: format!("{}; what was sent before it is in the target", e.message),
        ..e
    }
}

fn incomplete(text: &str) -> Failure {
    Failure::new(Reason::RestoreIncomplete, text)
}

/// Why the snapshot can't be read.
fn unreadable(job: &Job<'_>, e: Error) -> Failure {
    let name = job.dumps.first().map(|d| d.name()).unwrap_or_default();
    match e {
        Error::Io(e) => damaged(job.key(), e),
        e @ (Error::Cut(_) | Error::Bad(..)) => Failure::at(
            exit::VERIFICATION,
            Reason::IncompleteDump,
            format!("{name} of {} is no whole snapshot: {e}", job.key()),
        ),
        e @ (Error::Unknown(..) | Error::TooLarge(_)) => Failure::new(
            Reason::NotRestorable,
            format!(
                "{name} of {} can't be restored over the network: {e}; spec.to.volume (--to-volume) puts dump.rdb on a volume for a server to start with",
                job.key()
            ),
        ),
    }
}
