//! What the user's own arguments say to the dump client, and which of them leave something out of
//! the dump. Clients take every unambiguous beginning of an option's name, so a name is judged by
//! the options it can mean. PURE.

/// One argument: an option, on or off, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    name: String,
    on: bool,
    value: Option<String>,
    /// As it was written.
    text: String,
}

/// The arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Vec<Given>);

/// Prefixes that turn an option off, or on, or mean nothing here.
const PREFIXES: [(&str, bool); 4] = [
    ("loose-", true),
    ("skip-", false),
    ("disable-", false),
    ("enable-", true),
];

/// Short options and their long names.
const SHORT: [(char, &str); 18] = [
    ('a', "create-options"),
    ('c', "complete-insert"),
    ('C', "compress"),
    ('d', "no-data"),
    ('e', "extended-insert"),
    ('E', "events"),
    ('F', "flush-logs"),
    ('H', "dump-history"),
    ('K', "disable-keys"),
    ('l', "lock-tables"),
    ('n', "no-create-db"),
    ('N', "no-set-names"),
    ('q', "quick"),
    ('Q', "quote-names"),
    ('R', "routines"),
    ('t', "no-create-info"),
    ('v', "verbose"),
    ('x', "lock-all-tables"),
];

/// What the native engine does by itself, in the state it does it in, or does without a change to what is dumped and how
/// it loads. Of an option that may be on or off, both are here if it honours both.
const NATIVE: [(&str, bool); 37] = [
    ("add-drop-table", true),
    ("add-locks", false),
    ("column-statistics", false),
    ("compress", true),
    ("compress", false),
    ("create-options", true),
    ("delayed-insert", false),
    ("disable-keys", true),
    ("disable-keys", false),
    ("dump-date", true),
    ("dump-date", false),
    ("events", true),
    ("extended-insert", true),
    ("hex-blob", true),
    ("hex-blob", false),
    ("ignore-table", true),
    ("lock-all-tables", false),
    ("lock-tables", false),
    ("max-allowed-packet", true),
    ("net-buffer-length", true),
    ("no-create-db", false),
    ("no-create-info", false),
    ("no-data", false),
    ("no-tablespaces", true),
    ("opt", true),
    ("order-by-primary", true),
    ("order-by-primary", false),
    ("quick", true),
    ("quick", false),
    ("quote-names", true),
    ("routines", true),
    ("set-charset", true),
    ("single-transaction", true),
    ("triggers", true),
    ("tz-utc", true),
    ("verbose", true),
    ("verbose", false),
];

/// Options with a value, of which the native engine honours this one.
const NATIVE_VALUES: [(&str, &str); 3] = [
    ("default-character-set", "utf8mb4"),
    ("set-gtid-purged", "off"),
    ("set-gtid-purged", "commented"),
];

/// Options whose own names begin like a prefix.
const WHOLE: [&str; 4] = [
    "disable-keys",
    "enable-cleartext-plugin",
    "skip-definer",
    "skip-generated-invisible-primary-key",
];

impl Arguments {
    /// Reads them.
    #[must_use]
    pub fn new(args: &[String]) -> Self {
        Self(args.iter().flat_map(|arg| one(arg)).collect())
    }

    /// The last word on this option: on or off; `None` if none is said.
    #[must_use]
    pub fn says(&self, name: &str) -> Option<bool> {
        self.last(name).map(|g| g.on)
    }

    fn last(&self, name: &str) -> Option<&Given> {
        self.0.iter().rev().find(|g| g.means(name))
    }

    /// Values of this option, which may be given more than once.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.0.iter().filter(move |g| g.means(name));
        all.filter_map(|g| g.value.as_deref())
    }

    /// Arguments that only a dump client can honour, as they were written. An abbreviation may mean more than one option:
    /// it is the client's.
    #[must_use]
    pub fn client_only(&self) -> Vec<String> {
        let honoured = |given: &&Given| {
            let value = given.value.as_deref().unwrap_or_default();
            let by_value = |(name, wanted): &(&str, &str)| {
                given.name == *name && value.eq_ignore_ascii_case(wanted)
            };
            NATIVE.contains(&(given.name.as_str(), given.on)) || NATIVE_VALUES.iter().any(by_value)
        };
        let others = self.0.iter().filter(|given| !honoured(given));
        let mut named: Vec<String> = others.map(|given| given.text.clone()).collect();
        named.dedup();
        named
    }

    /// Why the native engine can't be had with these arguments; `None` where it can.
    #[must_use]
    pub fn against_native(&self) -> Option<String> {
        let only = self.client_only();
        (!only.is_empty()).then(|| format!("only the dump client knows {}", only.join(", ")))
    }

    /// What these arguments leave out of the dump, or change on its way back.
    #[must_use]
    pub fn partial(&self) -> Vec<Partial> {
        let mut found: Vec<Partial> = PARTIAL
            .iter()
            .filter_map(|(name, on, lacks)| {
                let given = self.last(name).filter(|g| g.on == *on)?;
                Some(Partial {
                    argument: given.text.clone(),
                    lacks: (*lacks).to_owned(),
                })
            })
            .collect();
        if self.says("lock-tables") == Some(false)
            && self.says("single-transaction") == Some(false)
            && self.says("lock-all-tables") != Some(true)
        {
            found.push(Partial {
                argument: "--skip-lock-tables --skip-single-transaction".to_owned(),
                lacks: "its tables are of different moments".to_owned(),
            });
        }
        found
    }
}

/// Tables that `--ignore-table` leaves out: database, table.
#[must_use]
pub fn ignored_tables(args: &[String]) -> Vec<(String, String)> {
    let given = Arguments::new(args);
    let named = given.values("ignore-table");
    named
        .filter_map(|table| table.split_once('.'))
        .map(|(database, table)| (database.to_owned(), table.to_owned()))
        .collect()
}

/// What these arguments leave out of the dump, a sentence each.
#[must_use]
pub fn partial(args: &[String]) -> Vec<String> {
    let all = Arguments::new(args).partial();
    all.iter().map(Partial::to_string).collect()
}

/// What an argument leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The argument, as it was written.
    pub argument: String,
    /// What the dump lacks by it, as a sentence.
    pub lacks: String,
}

impl std::fmt::Display for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.argument, self.lacks)
    }
}

/// Options that make a dump partial, in which state, and how. EXCLUDE_TABLES and `--ignore-table` are
/// not among them: they name what they leave out.
const PARTIAL: [(&str, bool, &str); 22] = [
    ("no-data", true, "no rows are in it"),
    (
        "where",
        true,
        "only rows that match the condition are in it",
    ),
    (
        "ignore-table-data",
        true,
        "the rows of these tables are not in it",
    ),
    ("as-of", true, "its rows are those of another moment"),
    (
        "no-create-info",
        true,
        "no tables are in it, only rows: it loads only where the tables are",
    ),
    (
        "no-create-db",
        true,
        "it makes no database: it loads only where the databases are",
    ),
    ("triggers", false, "no triggers are in it"),
    ("routines", false, "no procedures and functions are in it"),
    ("events", false, "no events are in it"),
    ("ignore-views", true, "no views are in it"),
    ("ignore-database", true, "these databases are not in it"),
    (
        "create-options",
        false,
        "engines, character sets and AUTO_INCREMENT of tables are not in it",
    ),
    (
        "opt",
        false,
        "engines, character sets and AUTO_INCREMENT of tables are not in it, nor its own character set",
    ),
    (
        "compatible",
        true,
        "what other servers do not know of tables and columns is not in it",
    ),
    (
        "set-charset",
        false,
        "it does not say its character set, so that a load may garble text",
    ),
    (
        "no-set-names",
        true,
        "it does not say its character set, so that a load may garble text",
    ),
    (
        "tz-utc",
        false,
        "TIMESTAMP is written in the server's zone, and is another moment where it is loaded in another",
    ),
    (
        "insert-ignore",
        true,
        "a load leaves rows that collide out, without an error",
    ),
    (
        "init-command",
        true,
        "what the command sets may change what is read, by sql_select_limit for one",
    ),
    ("skip-definer", true, "no definers are in it"),
    (
        "skip-generated-invisible-primary-key",
        true,
        "generated primary keys are not in it",
    ),
    (
        "show-create-skip-secondary-engine",
        true,
        "secondary engines of tables are not in it",
    ),
];

impl Given {
    /// It is this option, or may be.
    fn means(&self, name: &str) -> bool {
        self.name == name || name.starts_with(&self.name) && !exact(&self.name)
    }
}

/// The name is one by itself, and no beginning of another.
fn exact(name: &str) -> bool {
    const NAMES: [&str; 3] = ["ignore-table", "single-transaction", "master-data"];
    NAMES.contains(&name)
        || PARTIAL.iter().any(|(full, ..)| *full == name)
        || SHORT.iter().any(|(_, full)| *full == name)
}

fn one(arg: &str) -> Vec<Given> {
    let Some(long) = arg.strip_prefix("--") else {
        return short(arg);
    };
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (long, None),
    };
    let mut name = name.to_ascii_lowercase().replace('_', "-");
    let mut on = true;
    while let Some((prefix, state)) = PREFIXES.iter().find(|(p, _)| name.starts_with(p)) {
        if WHOLE.contains(&name.as_str()) {
            break;
        }
        on = on == *state;
        name.drain(..prefix.len());
    }
    let off = ["0", "off", "false"];
    if value
        .as_ref()
        .is_some_and(|v| off.contains(&v.to_ascii_lowercase().as_str()))
    {
        on = !on;
    }
    vec![Given {
        name,
        on,
        value,
        text: arg.to_owned(),
    }]
}

/// `-qd`, or `-wid<5`: the value follows its option.
fn short(arg: &str) -> Vec<Given> {
    let mut found = vec![];
    let letters = arg.strip_prefix('-').unwrap_or_default();
    for (at, letter) in letters.char_indices() {
        let given = |name: &str, value: Option<String>| Given {
            name: name.to_owned(),
            on: true,
            value,
            text: arg.to_owned(),
        };
        if letter == 'w' {
            let rest = letters[at + 1..].to_owned();
            found.push(given("where", Some(rest)));
            break;
        }
        let long = SHORT.iter().find(|(short, _)| *short == letter);
        found.extend(long.map(|(_, name)| given(name, None)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Arguments {
        let all: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Arguments::new(&all)
    }

    #[test]
    fn the_last_word_on_an_option_counts_under_every_spelling() {
        for (text, name, expected) in [
            ("--skip-lock-tables", "lock-tables", Some(false)),
            ("--lock_tables=0", "lock-tables", Some(false)),
            ("--LOCK-TABLES=FALSE", "lock-tables", Some(false)),
            (
                "--lock-tables --skip-lock-tables",
                "lock-tables",
                Some(false),
            ),
            (
                "--skip-lock-tables --lock-tables",
                "lock-tables",
                Some(true),
            ),
            ("--skip-lock-tables=0", "lock-tables", Some(true)),
            ("--loose-skip-triggers", "triggers", Some(false)),
            ("--skip-trig", "triggers", Some(false)),
            ("--disable-keys", "disable-keys", Some(true)),
            ("--skip-disable-keys", "disable-keys", Some(false)),
            ("-qd", "no-data", Some(true)),
            ("--no-dat", "no-data", Some(true)),
            ("--no-data", "no-data-med", None),
            ("--quick", "lock-tables", None),
            ("-l", "lock-tables", Some(true)),
        ] {
            assert_eq!(arguments(text).says(name), expected, "{text}");
        }
    }

    #[test]
    fn t5_what_makes_a_dump_partial_is_named_under_every_spelling() {
        for (text, lacks) in [
            ("--no-data", "no rows"),
            ("--no_data", "no rows"),
            ("-d", "no rows"),
            ("-qd", "no rows"),
            ("--where=id<5", "only rows that match"),
            ("-wid<5", "only rows that match"),
            ("-t", "no tables"),
            ("--no-create-info", "no tables"),
            ("-n", "no database"),
            ("--ignore-table-data=a.b", "rows of these tables"),
            ("--skip-triggers", "no triggers"),
            ("--triggers=0", "no triggers"),
            ("--skip-routines", "no procedures"),
            ("--skip-events", "no events"),
            ("--skip-opt", "engines"),
            ("--skip-create-options", "engines"),
            ("--skip-set-charset", "character set"),
            ("-N", "character set"),
            ("--skip-tz-utc", "zone"),
            ("--compatible=ansi", "other servers"),
            ("--insert-ignore", "collide"),
            ("--init-command=SET sql_select_limit=1", "sql_select_limit"),
            (
                "--skip-lock-tables --skip-single-transaction",
                "different moments",
            ),
        ] {
            // A command is one word, whatever blanks it has.
            let words = if text.starts_with("--init") {
                Arguments::new(&[text.to_owned()])
            } else {
                arguments(text)
            };
            let found = words.partial();
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].lacks.contains(lacks), "{text}: {found:?}");
        }
        for text in [
            "--quick",
            "--routines --events --triggers",
            "--hex-blob -eK",
            "--skip-lock-tables",
            "--no-data=0",
            "--ignore-table=a.b",
            "--max-allowed-packet=1G",
            "--set-gtid-purged=OFF",
            "--column-statistics=0",
            "--no-tablespaces",
            "--skip-add-locks --skip-disable-keys --skip-extended-insert",
            "--complete-insert",
        ] {
            assert_eq!(arguments(text).partial(), [], "{text}");
        }
    }

    #[test]
    fn tables_that_are_left_out_are_known_by_database_and_name() {
        let args = [
            "--ignore-table=shop.a",
            "--ignore_table=shop.b.c",
            "--quick",
        ];
        let named = ignored_tables(&args.map(str::to_owned));
        let pair = |d: &str, t: &str| (d.to_owned(), t.to_owned());
        assert_eq!(named, [pair("shop", "a"), pair("shop", "b.c")]);
    }

    #[test]
    fn what_only_a_client_can_do_is_named() {
        for text in [
            "--single-transaction",
            "--quick -q --skip-quick",
            "--routines --events --triggers -RE",
            "--hex-blob",
            "--no-tablespaces",
            "--skip-lock-tables",
            "--lock-tables=0",
            "--ignore-table=shop.a --ignore-table=shop.b",
            "--max-allowed-packet=1G",
            "--column-statistics=0",
            "--skip-column-statistics",
            "--set-gtid-purged=OFF",
            "--default-character-set=utf8mb4",
            "--loose-skip_add_locks",
            "--opt",
        ] {
            assert!(arguments(text).client_only().is_empty(), "{text}");
        }
        for text in [
            "--where=id<5",
            "-wid<5",
            "--no-data",
            "-d",
            "--skip-triggers",
            "--skip-routines",
            "--events=0",
            "--skip-single-transaction",
            "--lock-all-tables",
            "-x",
            "--lock-tables",
            "--master-data=2",
            "--set-gtid-purged=ON",
            "--default-character-set=latin1",
            "--complete-insert",
            "--insert-ignore",
            "--replace",
            "--no-autocommit",
            "--skip-opt",
            "--skip-extended-insert",
            "--skip-tz-utc",
            "--add-drop-database",
            "--ignore-table-data=a.b",
            "--skip-ssl",
            "--tls-version=TLSv1.2",
            "--trig",
            "--brand-new",
        ] {
            assert_eq!(arguments(text).client_only(), [text], "{text}");
        }
        // Of letters in one word, the word is named; of many arguments, those.
        assert_eq!(arguments("-qd").client_only(), ["-qd"]);
        let mixed = arguments("--quick --where=1 --hex-blob --replace");
        assert_eq!(mixed.client_only(), ["--where=1", "--replace"]);
    }
}
