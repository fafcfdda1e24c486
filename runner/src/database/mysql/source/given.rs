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
pub(crate) struct Arguments(Vec<Given>);

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

/// Options whose own names begin like a prefix.
const WHOLE: [&str; 4] = [
    "disable-keys",
    "enable-cleartext-plugin",
    "skip-definer",
    "skip-generated-invisible-primary-key",
];

impl Arguments {
    /// Reads them.
    pub(crate) fn new(args: &[String]) -> Self {
        Self(args.iter().flat_map(|arg| one(arg)).collect())
    }

    /// The last word on this option: on or off; `None` if none is said.
    pub(crate) fn says(&self, name: &str) -> Option<bool> {
        self.last(name).map(|g| g.on)
    }

    fn last(&self, name: &str) -> Option<&Given> {
        self.0.iter().rev().find(|g| g.means(name))
    }

    /// Values of this option, which may be given more than once.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.0.iter().filter(move |g| g.means(name));
        all.filter_map(|g| g.value.as_deref())
    }

    /// What these arguments leave out of the dump, or change on its way back.
    pub(crate) fn partial(&self) -> Vec<Partial> {
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

/// What these arguments leave out of the dump, a sentence each.
pub(crate) fn partial(args: &[String]) -> Vec<String> {
    let all = Arguments::new(args).partial();
    all.iter().map(Partial::to_string).collect()
}

/// What an argument leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partial {
    /// The argument, as it was written.
    pub(crate) argument: String,
    /// What the dump lacks by it, as a sentence.
    pub(crate) lacks: String,
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
}
