//! A MySQL or MariaDB server that is restored into: whether it is free and lets this user do what
//! the dump will do, the load itself, and whether what was loaded is there and unchanged. What can
//! stop a restore is looked for before its first statement.

pub mod compare;
pub mod failures;
pub mod frames;
mod part;
pub mod plain;
pub(crate) mod replay;
mod verify;

use crds::report::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;

use ::load::Shape;
use crds::restore::{Definers as Choice, RestoreVerify};

use crate::context::Context;
use crate::database::contents::Table;
use crate::database::mysql::connect::{self, Connection};
use crate::database::mysql::load;
use crate::database::mysql::source::{self, Flavour};
use crate::database::mysql::sql::{Definers, Found, Rewrite, Script};
use crate::database::server_identity::ServerIdentity;
use crate::failure::Failure;
use crate::settings::Source;

/// One dump, and what becomes of it.
pub(crate) struct Plan<'a> {
    /// What messages call it.
    pub(crate) what: String,
    /// What it holds.
    pub(crate) found: Found,
    /// What is changed on its way.
    pub(crate) wish: Rewrite,
    /// The databases it fills, by the names they get.
    pub(crate) names: Vec<String>,
    /// It names no database: the client is told one.
    pub(crate) bare: bool,
    /// What its server calls itself.
    pub(crate) server: &'a ServerIdentity,
    /// Arguments it was made with.
    pub(crate) arguments: Vec<String>,
    /// The native engine made it.
    pub(crate) native: bool,
    /// Ranges of its text that are not loaded.
    pub(crate) without: Vec<Range<u64>>,
    /// SHA-256 of its text.
    pub(crate) sha256: &'a str,
    /// How several sessions can load its text, or why the client has to, in words that follow "it".
    pub(crate) shape: Result<Shape, &'static str>,
    /// What is compared with it afterwards.
    pub(crate) verify: RestoreVerify,
}

impl Plan<'_> {
    /// Its databases have other names than they had.
    fn renamed(&self) -> bool {
        self.wish.rename.is_some()
    }

    /// The name a database of the dump gets.
    pub(crate) fn name_of<'b>(&'b self, database: &'b str) -> &'b str {
        match self.names.first() {
            Some(name) if self.renamed() || self.bare => name,
            _ => database,
        }
    }

    fn table(&self, number: usize) -> Option<(&str, &str)> {
        let (database, table) = self.found.tables.get(number.checked_sub(1)?)?;
        Some((self.name_of(database), table))
    }
}

/// What a restore does with definers, as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DefinersChoice {
    /// The choice; none is [`Choice::Keep`] where the server allows it.
    pub(crate) choice: Option<Choice>,
    /// `user@host` of [`Choice::To`].
    pub(crate) definer: Option<String>,
}

impl DefinersChoice {
    /// What is done with them.
    ///
    /// # Errors
    /// To without an account, or an account without To.
    pub(crate) fn parse(&self) -> Result<Definers, Failure> {
        match (self.choice, &self.definer) {
            (None | Some(Choice::Keep), None) => Ok(Definers::Keep),
            (Some(Choice::Drop), None) => Ok(Definers::Drop),
            (Some(Choice::To), Some(account)) => {
                let (user, host) = crds::restore::account(account).ok_or_else(|| {
                    Failure::settings(format!(
                        "options.restore.definer: {account:?} is no account: write user@host"
                    ))
                })?;
                let quoted = |text: &str| dump::sql::name(text);
                Ok(Definers::To(format!("{}@{}", quoted(user), quoted(host))))
            }
            (Some(Choice::To), None) => Err(Failure::settings(
                "definers To needs the account: set spec.definer (--definer) to user@host",
            )),
            (_, Some(_)) => Err(Failure::settings(
                "spec.definer (--definer) goes with definers To",
            )),
        }
    }
}

/// The server.
pub(crate) struct Target<'a> {
    context: &'a Context,
    source: &'a Source,
    connection: Connection,
    /// `user@host` as which the server knows this session.
    account: String,
    /// It keeps a binary log and trusts nobody to make functions.
    logs: bool,
    /// Accounts it has, where that may be read.
    accounts: Option<BTreeSet<String>>,
}

impl<'a> Target<'a> {
    /// Connects and asks.
    ///
    /// # Errors
    /// The server can't be reached or refuses.
    pub(crate) fn connect(context: &'a Context, source: &'a Source) -> Result<Self, Failure> {
        let connection = connect::connect(context, source).map_err(failures::of_target)?;
        let mut target = Self {
            context,
            source,
            account: String::new(),
            logs: false,
            accounts: None,
            connection,
        };
        target.ask_rest()?;
        Ok(target)
    }

    /// `HOST:PORT`, or the socket.
    pub(crate) fn place(&self) -> String {
        match &self.source.socket {
            Some(socket) => format!("socket {socket}"),
            None => format!("{}:{}", self.source.host, self.source.port),
        }
    }

    fn ask(&self, sql: &str) -> Result<String, Failure> {
        let client = self.connection.sql(self.context)?;
        let file = self
            .connection
            .options(self.context, self.source, client.flavour)?;
        let args = [
            file.argument(),
            "--batch".into(),
            "--skip-column-names".into(),
            "--default-character-set=utf8mb4".into(),
        ];
        let (text, ended) = client.run(self.context, &args, sql)?;
        if ended.good() {
            return Ok(text);
        }
        self.context.check()?;
        Err(failures::explain(&client.name(), &ended, self.source))
    }

    fn ask_rest(&mut self) -> Result<(), Failure> {
        let text =
            self.ask("SELECT CURRENT_USER(), @@log_bin, @@log_bin_trust_function_creators;\n")?;
        let row: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
        let [account, log, trust] = row[..] else {
            return Err(Failure::new(
                Reason::ClientFailed,
                "the target's server gave no answer to who the user is",
            ));
        };
        account.clone_into(&mut self.account);
        self.logs = log == "1" && trust == "0";
        if self.may(&["SELECT"]) {
            let text = self.ask("SELECT CONCAT(User, '@', Host) FROM mysql.user;\n");
            self.context.check()?;
            self.accounts = text.ok().map(|text| text.lines().map(unescaped).collect());
        }
        Ok(())
    }

    /// One of these privileges is granted on everything.
    fn may(&self, privileges: &[&str]) -> bool {
        self.connection.server.may(privileges)
    }

    fn flavour(&self) -> Flavour {
        self.connection.server.flavour()
    }

    /// The target is another server and holds no table of these databases.
    ///
    /// # Errors
    /// It is or does.
    pub(crate) fn free(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        if plan.wish.only.is_some() {
            return self.free_for_part(plan);
        }
        if plan.server.is(&self.connection.server.identity()) && !plan.renamed() {
            return Err(Failure::occupied(
                Reason::TargetIsSource,
                &format!("{} is the server this dump came from", self.place()),
            ));
        }
        let filled = self.tables(&plan.names)?;
        if let Some((database, table)) = filled.first() {
            return Err(Failure::occupied(
                Reason::TargetNotEmpty,
                &format!(
                    "{} tables are there already, {database}.{table} for one",
                    filled.len()
                ),
            ));
        }
        Ok(())
    }

    /// Nothing that is known beforehand will stop the load half-way.
    ///
    /// # Errors
    /// The dump can't get another name, or the user may not do what it does.
    pub(crate) fn ready(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        self.renamable(plan)?;
        self.allowed(plan)?;
        self.definers(plan)?;
        self.logged(plan)
    }

    fn renamable(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        let Some((from, to)) = &plan.wish.rename else {
            return Ok(());
        };
        let found = &plan.found;
        if !found.refusals.is_empty() {
            return Err(Failure::new(
                Reason::NotRenamable,
                format!(
                    "{} can't be restored as {to}: it refers to databases in a way that can't be renamed for sure: {}; nothing was changed. Restore it under its own name into another server, or have these changed and back up again",
                    plan.what,
                    some(&found.refusals)
                ),
            ));
        }
        if !found.doubts.is_empty() {
            self.context.reporter.warn(&format!(
                "{} name {from} in a string, which stays as it is: see that it means what it should in {to}",
                some(&found.doubts)
            ));
        }
        Ok(())
    }

    fn allowed(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        let server = &self.connection.server;
        let lower = server.variable("lower_case_table_names") != "0";
        for name in &plan.names {
            let known_as = if lower {
                name.to_lowercase()
            } else {
                name.clone()
            };
            let rights = plan.found.rights.iter().map(|right| right.as_str());
            let lacking: Vec<&str> = rights
                .filter(|right| !server.grants.on_all_of(&known_as, &[right]))
                .collect();
            if lacking.is_empty() {
                continue;
            }
            return Err(Failure::new(
                Reason::MissingPrivilege,
                format!(
                    "user {} lacks {} on database {name} at {}: grant it; {}; nothing was changed",
                    self.account,
                    lacking.join(", "),
                    self.place(),
                    failures::RIGHTS
                ),
            ));
        }
        Ok(())
    }

    /// True if an account is this session's own.
    fn is_own(&self, account: &str) -> bool {
        account == self.account || account.eq_ignore_ascii_case("CURRENT_USER")
    }

    fn may_define(&self) -> bool {
        let privileges: &[&str] = match self.flavour() {
            Flavour::MariaDb => &["SUPER", "SET USER"],
            Flavour::MySql => &["SUPER", "SET_USER_ID", "SET_ANY_DEFINER"],
        };
        self.may(privileges)
    }

    fn definers(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        let definers = &plan.found.definers;
        let wanted: Vec<(&str, Vec<&String>)> = match &plan.wish.definers {
            Definers::Drop => return Ok(()),
            Definers::Keep => definers
                .iter()
                .map(|(who, what)| (who.as_str(), what.iter().collect()))
                .collect(),
            Definers::To(_) if definers.is_empty() => return Ok(()),
            Definers::To(who) => vec![(who.as_str(), definers.values().flatten().collect())],
        };
        let plain = |who: &str| match who.strip_prefix('`') {
            Some(_) => who
                .replace("``", "\u{1}")
                .replace('`', "")
                .replace('\u{1}', "`"),
            None => who.to_owned(),
        };
        for (who, what) in wanted {
            let who = plain(who);
            if self.is_own(&who) {
                continue;
            }
            let names: Vec<String> = what.iter().map(|w| (*w).clone()).collect();
            if !self.may_define() {
                let (right, or) = match self.flavour() {
                    Flavour::MariaDb => ("SET USER", ""),
                    Flavour::MySql => ("SET_ANY_DEFINER", " (before 8.2 SET_USER_ID)"),
                };
                return Err(Failure::new(
                    Reason::DefinerNotAllowed,
                    format!(
                        "{} would be defined by {who}, and user {} may not make objects of others: set spec.definers Drop (--definers Drop), which makes {} their definer, or restore as a user with {right}{or}; nothing was changed",
                        some(&names),
                        self.account,
                        self.account
                    ),
                ));
            }
            let known = self.accounts.as_ref();
            let role = format!("{who}@");
            if known.is_some_and(|known| !known.contains(&who) && !known.contains(&role)) {
                if self.flavour() == Flavour::MySql && !self.may_define_nobody() {
                    return Err(Failure::new(
                        Reason::DefinerNotAllowed,
                        format!(
                            "{} would be defined by {who}, whom {} does not know: make that user first, set spec.definers Drop (--definers Drop), or grant ALLOW_NONEXISTENT_DEFINER; nothing was changed",
                            some(&names),
                            self.place()
                        ),
                    ));
                }
                self.context.reporter.warn(&format!(
                    "{} are defined by {who}, whom {} does not know: what runs with the definer's rights fails until that user is made; spec.definers Drop (--definers Drop) or To gives them another",
                    some(&names),
                    self.place()
                ));
            }
        }
        Ok(())
    }

    /// MySQL from 8.2 on asks for another privilege where the definer does not exist.
    fn may_define_nobody(&self) -> bool {
        self.may(&["SUPER", "SET_USER_ID", "ALLOW_NONEXISTENT_DEFINER"])
    }

    fn logged(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        if !self.logs {
            return Ok(());
        }
        let found = &plan.found;
        let refuse = |names: &[String], why: &str| {
            Err(Failure::new(
                Reason::MissingPrivilege,
                format!(
                    "{} at {} may not be made: the server keeps a binary log, and {why}; set its log_bin_trust_function_creators, or restore {}; nothing was changed",
                    some(names),
                    self.place(),
                    if why.contains("SUPER") {
                        "as a user with SUPER"
                    } else {
                        "into a server that has it"
                    }
                ),
            ))
        };
        if !found.unsafe_functions.is_empty() {
            return refuse(
                &found.unsafe_functions,
                "they do not say DETERMINISTIC, NO SQL or READS SQL DATA",
            );
        }
        if !found.logged.is_empty() && !self.may(&["SUPER"]) {
            return refuse(&found.logged, &format!("user {} lacks SUPER", self.account));
        }
        Ok(())
    }

    /// Tables and views in these databases.
    fn tables(&self, names: &[String]) -> Result<Vec<(String, String)>, Failure> {
        if names.is_empty() {
            return Ok(vec![]);
        }
        let text = self.ask(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({});\n",
            source::literals(names)
        ))?;
        let pairs = text.lines().filter_map(|l| l.split_once('\t'));
        Ok(pairs.map(|(d, t)| (unescaped(d), unescaped(t))).collect())
    }

    /// Loads a dump, and compares. Gives what is to be said of how it was loaded.
    ///
    /// # Errors
    /// The server refuses, or what is there then is not what the dump holds.
    pub(crate) fn load(&self, plan: &Plan<'_>, dump: &mut dyn Read) -> Result<String, Failure> {
        let why = match &plan.shape {
            Ok(shape) if self.takes_sessions(plan) => {
                return self.load_plain(plan, shape.clone(), dump);
            }
            Ok(_) => format!(
                "user {} lacks one of {} on all that it fills",
                self.account,
                frames::RIGHTS.join(", ")
            ),
            Err(flaw) => format!("it {flaw}"),
        };
        let said = self.load_by_client(plan, dump)?;
        Ok(format!(
            "; the client loaded it in one session, since {why}{said}"
        ))
    }

    /// The same by the client.
    fn load_by_client(&self, plan: &Plan<'_>, dump: &mut dyn Read) -> Result<String, Failure> {
        let context = self.context;
        let client = self.connection.sql(self.context)?.clone();
        let file = self
            .connection
            .options(context, self.source, client.flavour)?;
        let mut args = vec![file.argument()];
        args.extend(load::arguments(&client));
        let name = plan.names.first().map_or("", String::as_str);
        if plan.bare {
            let name = dump::sql::name(name);
            self.ask(&format!("CREATE DATABASE IF NOT EXISTS {name};\n"))?;
        }
        if plan.bare {
            args.push(format!("--database={name}"));
        }
        context.reporter.leaves(&format!(
            "{} may be in part in {} at {}: restore again with overwrite",
            plan.what,
            plan.names.join(", "),
            self.place()
        ));
        let script = Script::knowing(plan.wish.clone(), &plan.found).without(&plan.without);
        let loaded = load::load(context, &client, &args, dump, Some(script));
        let loaded = loaded.map_err(|e| self.incomplete(plan, e, ""))?;
        context.check()?;
        if !loaded.ended.good() {
            let e = failures::explain(&client.name(), &loaded.ended, self.source);
            return Err(self.incomplete(plan, e, &stopped(plan, &loaded.heard)));
        }
        if loaded.sha256 != plan.sha256 || !loaded.summary.whole {
            let e = Failure::new(
                Reason::RestoreIncomplete,
                format!(
                    "what was loaded of {} is not the dump that was stored",
                    plan.what
                ),
            );
            return Err(self.incomplete(plan, e, ""));
        }
        self.arrived(plan)?;
        let warned = self.unchanged(plan, &loaded.heard, &loaded.summary.tables)?;
        // Of a text that is not followed, nobody knows what it makes; without a right to read, nobody counts.
        let said = match plan.verify {
            RestoreVerify::Whole => self.verified(plan, &loaded.summary.tables, None)?,
            RestoreVerify::Counts | RestoreVerify::None => String::new(),
        };
        Ok(said + &warned)
    }

    /// The failure of a load that was begun.
    fn incomplete(&self, plan: &Plan<'_>, e: Failure, where_: &str) -> Failure {
        Failure {
            message: format!(
                "{}; the target is incomplete: {where_}what {} holds of {} is not the whole dump. Restore again with overwrite",
                e.message,
                self.place(),
                plan.names.join(", ")
            ),
            ..e
        }
    }

    /// Every table of the dump is there now.
    fn arrived(&self, plan: &Plan<'_>) -> Result<(), Failure> {
        let there = self.tables(&plan.names)?;
        // A server on a file system that knows no case may have changed it.
        let lower = |(d, t): (&str, &str)| (d.to_lowercase(), t.to_lowercase());
        let there: BTreeSet<(String, String)> = there.iter().map(|(d, t)| lower((d, t))).collect();
        let numbers = 1..=plan.found.tables.len();
        let gone = numbers
            .filter_map(|n| plan.table(n))
            .find(|table| !there.contains(&lower(*table)));
        match gone {
            None => Ok(()),
            Some((database, table)) => Err(Failure::new(
                Reason::RestoreIncomplete,
                format!("table {database}.{table} is not there after the restore"),
            )),
        }
    }

    /// The server took every row as it was. Where it warned, the rows are read again and compared, and the warnings are told.
    /// Gives what is to be said of them.
    fn unchanged(
        &self,
        plan: &Plan<'_>,
        heard: &load::LoadOutput,
        tables: &[Table],
    ) -> Result<String, Failure> {
        for text in warnings(plan, heard) {
            self.context.reporter.warn(&text);
        }
        let told: Vec<(usize, &load::TableOutput)> = heard
            .told
            .iter()
            .filter(|(_, of)| !of.rows.is_empty())
            .map(|(number, of)| (*number, of))
            .collect();
        if told.is_empty() {
            return Ok(String::new());
        }
        self.context.reporter.phase("Comparing");
        let mut differing = vec![];
        for (number, of) in told {
            let Some((database, table)) = plan.table(number) else {
                continue;
            };
            let expected = plan
                .found
                .tables
                .get(number - 1)
                .and_then(|(d, t)| tables.iter().find(|e| (&e.database, &e.name) == (d, t)));
            let equal = match expected {
                Some(expected) => compare::equal(self, plan, (database, table), expected)?,
                None => false,
            };
            if !equal {
                differing.push(format!("{database}.{table} ({})", of.rows.join("; ")));
            }
        }
        if differing.is_empty() {
            let all: u64 = heard.of_rows.values().map(|kind| kind.count).sum();
            return Ok(format!(
                "; the server warned {} of rows that it took, and their tables were read back equal",
                times(all)
            ));
        }
        Err(Failure::new(
            Reason::RestoreDiffers,
            format!(
                "the server at {} changed what {} holds: {}; all else is restored. It is of another version or has other settings than the dump's server: restore into one that keeps these values",
                self.place(),
                plan.what,
                some(&differing)
            ),
        ))
    }

    pub(super) fn parts(&self) -> (&Context, &Source, &Connection) {
        (self.context, self.source, &self.connection)
    }
}

/// More kinds of warnings are told by their numbers.
const KINDS: usize = 3;

/// What the server warned about, a line for each kind: how often, and one of it with its table.
fn warnings(plan: &Plan<'_>, heard: &load::LoadOutput) -> Vec<String> {
    let place = |kind: &load::KindOutput| {
        let name = plan.table(kind.first.0);
        let name = name.map_or("a definition".to_owned(), |(d, t)| format!("{d}.{t}"));
        match kind.tables.len().saturating_sub(1) {
            0 => name,
            more => format!("{name} and {more} more"),
        }
    };
    let mut all = vec![];
    let sorted = |kinds: &BTreeMap<u32, load::KindOutput>| {
        let mut kinds: Vec<(u32, load::KindOutput)> = kinds.clone().into_iter().collect();
        kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.count));
        kinds
    };
    let kinds = sorted(&heard.of_rows);
    for (_, kind) in kinds.iter().take(KINDS) {
        all.push(format!(
            "the server warned {} of rows of {}, for one: {}",
            times(kind.count),
            place(kind),
            kind.first.1
        ));
    }
    if let Some(rest) = kinds.get(KINDS..).filter(|rest| !rest.is_empty()) {
        let rest: Vec<String> = rest.iter().map(|(number, _)| number.to_string()).collect();
        all.push(format!("it warned of rows by numbers {} too", some(&rest)));
    }
    for (_, kind) in sorted(&heard.of_definitions).into_iter().take(KINDS) {
        let text = &kind.first.1;
        all.push(format!(
            "the server made something else of {}: {text}",
            place(&kind)
        ));
    }
    all
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Where the load stopped.
fn stopped(plan: &Plan<'_>, heard: &load::LoadOutput) -> String {
    match plan.table(heard.last) {
        Some((database, table)) => format!(
            "the load stopped in table {database}.{table}, {} of {}; ",
            heard.last,
            plan.found.tables.len()
        ),
        None => String::new(),
    }
}

/// A value as the client prints it in batch mode.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\') {
            (_, true) => match characters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('0') => out.push('\0'),
                Some(c) => out.push(c),
                None => out.push('\\'),
            },
            (c, false) => out.push(c),
        }
    }
    out
}

/// The first of a list, and how many more there are.
pub(super) fn some(names: &[String]) -> String {
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(5) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l7_names_are_read_as_the_client_escapes_them() {
        assert_eq!(unescaped("a\\nb\\\\n\\tc"), "a\nb\\n\tc");
        assert_eq!(unescaped("日本 \"`' --;%"), "日本 \"`' --;%");
    }
}
