//! Compares what a load left in the target with what the dump holds, as far as was asked for: the rows of each table counted, or
//! read back whole.

use std::collections::HashMap;

use crds::report::Reason;
use crds::restore::RestoreVerify;
use wire::Connection;

use crate::database::contents::Table;
use crate::database::mysql::native;
use crate::database::mysql::source;
use crate::database::mysql::target::{Plan, Target, compare, some};
use crate::failure::Failure;

/// Engines whose rows are others' rows.
const OF_OTHERS: [&str; 2] = ["MRG_MYISAM", "FEDERATED"];

/// How a table is counted.
struct Counted {
    /// What its rows had before: system versioning.
    history: bool,
    others: bool,
}

impl Target<'_> {
    /// Compares; gives what is to be said of it. `changed` are the first words of a statement by which the dump changes rows
    /// itself: then its text does not say what is there.
    ///
    /// # Errors
    /// A table differs, or can't be read.
    pub(super) fn verified(
        &self,
        plan: &Plan<'_>,
        tables: &[Table],
        changed: Option<&str>,
    ) -> Result<String, Failure> {
        let whole = match plan.verify {
            RestoreVerify::None => return Ok(String::new()),
            RestoreVerify::Counts => false,
            RestoreVerify::Whole => true,
        };
        if let Some(words) = changed {
            let text = format!(
                "what is in the target was not compared with {}: it changes rows by statements of its own, {words} for one",
                plan.what
            );
            if whole {
                self.context.reporter.warn(&text);
            }
            return Ok(format!("; {text}"));
        }
        self.context.reporter.phase("Comparing");
        let mut differing = self.counted(plan, tables)?;
        if whole && differing.is_empty() {
            differing = self.read_back(plan, tables)?;
        }
        if differing.is_empty() {
            return Ok(match whole {
                true => "; read back whole and equal".to_owned(),
                false => String::new(),
            });
        }
        Err(Failure::new(
            Reason::RestoreDiffers,
            format!(
                "what is at {} is not what {} holds: {}; all of it was loaded: another program may write there, or the server changes what it stores",
                self.place(),
                plan.what,
                some(&differing)
            ),
        ))
    }

    /// Tables whose rows are not as many as the dump's.
    fn counted(&self, plan: &Plan<'_>, tables: &[Table]) -> Result<Vec<String>, Failure> {
        let settings = source::session_settings(self.source, self.context)?;
        let mut settings = settings;
        settings.limits.idle = None;
        let failed = |e: wire::Error| {
            self.context.check().err().unwrap_or_else(|| {
                let e = source::failure_of(&e, self.source);
                Failure {
                    message: format!("counting what was restored: {}", e.message),
                    ..e
                }
            })
        };
        let mut session = Connection::open(&settings).map_err(failed)?;
        let kinds = kinds(&mut session, &plan.names).map_err(failed)?;
        let mut differing = vec![];
        for table in tables {
            let (database, name) = (plan.name_of(&table.database), table.name.as_str());
            // A server on a file system that knows no case may have changed it.
            let key = (database.to_lowercase(), name.to_lowercase());
            let kind = kinds.get(&key);
            if kind.is_some_and(|kind| kind.others) {
                continue;
            }
            let history = kind.is_some_and(|kind| kind.history && table.rows > 0);
            let place = dump::sql::table(database, name);
            let now = count(&mut session, &place, false).map_err(failed)?;
            // A dump may be with what its rows had been before, or without.
            if now == table.rows
                || history && count(&mut session, &place, true).map_err(failed)? == table.rows
            {
                continue;
            }
            differing.push(format!(
                "{database}.{name} has {now} rows, and {} in the dump",
                table.rows
            ));
        }
        Ok(differing)
    }

    /// Tables whose rows are not those of the dump.
    fn read_back(&self, plan: &Plan<'_>, tables: &[Table]) -> Result<Vec<String>, Failure> {
        let mut differing = vec![];
        if !plan.native {
            for table in tables.iter().filter(|t| t.rows > 0 && !t.hash.is_empty()) {
                let name = (plan.name_of(&table.database), table.name.as_str());
                if !compare::equal(self, plan, name, table)? {
                    differing.push(format!("{}.{} has other rows", name.0, name.1));
                }
            }
            return Ok(differing);
        }
        let mut options = native::options(self.source);
        options.databases.clone_from(&plan.names);
        options.exclude.clear();
        options.accounts = false;
        let found = native::sums(self.context, self.source, options).map_err(|e| Failure {
            message: format!("reading back what was restored: {}", e.message),
            ..e
        })?;
        let key = |database: &str, name: &str| (database.to_lowercase(), name.to_lowercase());
        let found: HashMap<(String, String), &Table> = found
            .tables
            .iter()
            .map(|t| (key(&t.database, &t.name), t))
            .collect();
        for table in tables.iter().filter(|t| t.rows > 0) {
            let (database, name) = (plan.name_of(&table.database), table.name.as_str());
            let equal = found
                .get(&key(database, name))
                .is_some_and(|t| (t.rows, &t.hash) == (table.rows, &table.hash));
            if !equal {
                differing.push(format!("{database}.{name} has other rows"));
            }
        }
        Ok(differing)
    }
}

/// What the tables of these databases are, by their names in lower case.
fn kinds(
    session: &mut Connection,
    names: &[String],
) -> Result<HashMap<(String, String), Counted>, wire::Error> {
    let mut all = HashMap::new();
    if names.is_empty() {
        return Ok(all);
    }
    let asked = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({})",
        source::literals(names)
    );
    let mut rows = session.query(&asked)?;
    while let Some(mut row) = rows.read()? {
        let mut next = || -> Result<String, wire::Error> {
            let value = row.value()?.unwrap_or_default();
            Ok(String::from_utf8_lossy(value).into_owned())
        };
        let (database, name, kind, engine) = (next()?, next()?, next()?, next()?);
        let of = Counted {
            history: kind == "SYSTEM VERSIONED",
            others: OF_OTHERS.iter().any(|e| engine.eq_ignore_ascii_case(e)),
        };
        all.insert((database.to_lowercase(), name.to_lowercase()), of);
    }
    Ok(all)
}

fn count(session: &mut Connection, place: &str, history: bool) -> Result<u64, wire::Error> {
    let all = if history { " FOR SYSTEM_TIME ALL" } else { "" };
    let mut rows = session.query(&format!("SELECT count(*) FROM {place}{all}"))?;
    let Some(mut row) = rows.read()? else {
        return Err(wire::Error::Malformed("a count has no row"));
    };
    let count = row.text()?.parse();
    while rows.read()?.is_some() {}
    count.map_err(|_| wire::Error::Malformed("a count is no number"))
}
