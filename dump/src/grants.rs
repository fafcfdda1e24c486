//! What the grants of a user let it see: what they do not, a dump lacks without a word. PURE.

use std::collections::BTreeSet;

/// Databases that a grant is on: a pattern, whose `%` and `_` stand for others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnDatabases {
    pattern: String,
    privileges: BTreeSet<String>,
}

/// Grants as SHOW GRANTS words them, those of the roles in use among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Privileges on everything.
    global: BTreeSet<String>,
    on_databases: Vec<OnDatabases>,
    /// What MySQL takes away again of those on everything (`partial_revokes`).
    revoked: Vec<OnDatabases>,
    /// Privileges on single tables: database, table.
    on_tables: Vec<(String, String, BTreeSet<String>)>,
    /// Nothing was understood, so nothing is known.
    known: bool,
}

impl Grants {
    /// Takes a line of SHOW GRANTS. It may hold the hash of a password, which is not looked at.
    pub fn take(&mut self, line: &str) {
        let (taken, rest) = match (line.strip_prefix("GRANT "), line.strip_prefix("REVOKE ")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return,
        };
        // A role that is granted has no ON.
        let Some((privileges, on)) = rest.split_once(" ON ") else {
            return;
        };
        let privileges = split(privileges);
        self.known = true;
        let Some((database, table)) = object(on) else {
            return;
        };
        match (database.as_str(), table.as_str()) {
            ("*", "*") if !taken => self.global.extend(privileges),
            (_, "*") => {
                let one = OnDatabases {
                    pattern: database,
                    privileges,
                };
                if taken {
                    self.revoked.push(one);
                } else {
                    self.on_databases.push(one);
                }
            }
            _ if !taken => self.on_tables.push((database, table, privileges)),
            _ => {}
        }
    }

    /// Privileges on everything.
    pub fn global(&self) -> &BTreeSet<String> {
        &self.global
    }

    /// One of these privileges is granted on all of this database.
    pub fn on_all_of(&self, database: &str, any: &[&str]) -> bool {
        let has = |set: &BTreeSet<String>| {
            set.contains("ALL PRIVILEGES") || any.iter().any(|p| set.contains(*p))
        };
        let on = |one: &&OnDatabases| is_like(database, &one.pattern);
        let revoked = self.revoked.iter().filter(on).any(|r| has(&r.privileges));
        !self.known
            || has(&self.global) && !revoked
            || self
                .on_databases
                .iter()
                .filter(on)
                .any(|d| has(&d.privileges))
    }

    /// One of these privileges is granted on this table, or on all of its database.
    pub fn on_table(&self, database: &str, table: &str, any: &[&str]) -> bool {
        self.on_all_of(database, any)
            || self.on_tables.iter().any(|(d, t, set)| {
                let is = d == database && t == table;
                is && (set.contains("ALL PRIVILEGES") || any.iter().any(|p| set.contains(*p)))
            })
    }
}

/// `SELECT (a, b), INSERT`: those on single columns are none on the table.
fn split(text: &str) -> BTreeSet<String> {
    let mut depth = 0u32;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|p| !p.contains('('))
        .map(str::to_owned)
        .collect()
}

/// `` `shop`.* TO … ``: database and table; `None` of what is neither.
pub(crate) fn object(text: &str) -> Option<(String, String)> {
    let (database, rest) = name(text)?;
    let (table, _) = name(rest.strip_prefix('.')?)?;
    Some((database, table))
}

/// The name a text begins with, and what follows it.
fn name(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some(("*".to_owned(), rest));
    }
    // With ANSI_QUOTES the server quotes names otherwise.
    let quote = text.chars().next().filter(|c| ['`', '"'].contains(c))?;
    let quoted = &text[1..];
    let mut name = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if c != quote {
            name.push(c);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            name.push(quote);
        } else {
            return Some((name, &quoted[at + 1..]));
        }
    }
    None
}

/// As LIKE compares: `%` for any text, `_` for a character, a backslash before what stands for itself.
fn is_like(name: &str, pattern: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut parts = vec![];
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        parts.push(match c {
            '%' => (None, true),
            '_' => (None, false),
            '\\' => (Some(characters.next().unwrap_or('\\')), false),
            c => (Some(c), false),
        });
    }
    // ends[i]: the pattern so far matches the first i characters.
    let mut ends = vec![false; name.len() + 1];
    ends[0] = true;
    for (literal, any) in parts {
        if any {
            let first = ends.iter().position(|e| *e).unwrap_or(ends.len());
            ends[first..].fill(true);
            continue;
        }
        for i in (1..ends.len()).rev() {
            let fits = literal.is_none_or(|l| l == name[i - 1]);
            ends[i] = ends[i - 1] && fits;
        }
        ends[0] = false;
    }
    ends[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(lines: &[&str]) -> Grants {
        let mut grants = Grants::default();
        lines.iter().for_each(|line| grants.take(line));
        grants
    }

    #[test]
    fn grants_cover_what_they_name() {
        let found = grants(&[
            "GRANT `reader` TO `bk`@`%`",
            "GRANT RELOAD, PROCESS ON *.* TO `bk`@`%` IDENTIFIED BY PASSWORD '*AA ON `x`.*'",
            r"GRANT SELECT, LOCK TABLES ON `shop\_%`.* TO `bk`@`%`",
            "GRANT TRIGGER ON `b``c`.* TO `reader`",
            "GRANT ALL PRIVILEGES ON `own`.* TO `bk`@`%`",
            "GRANT SELECT (`a`, `b`), INSERT, TRIGGER ON `one`.`t` TO `bk`@`%`",
            "GRANT EXECUTE ON PROCEDURE `d`.`p` TO `bk`@`%`",
            "GRANT PROXY ON ''@'%' TO 'root'@'localhost'",
        ]);
        assert!(found.global().contains("PROCESS"));
        let ansi = grants(&[r#"GRANT SELECT ON "own".* TO "bk"@"%""#]);
        assert!(ansi.on_all_of("own", &["SELECT"]));
        for (database, privilege, expected) in [
            ("shop_1", "SELECT", true),
            ("shopx1", "SELECT", false),
            ("shop_1", "TRIGGER", false),
            ("b`c", "TRIGGER", true),
            ("own", "EVENT", true),
            ("one", "INSERT", false),
            ("any", "RELOAD", true),
            ("d", "EXECUTE", false),
        ] {
            let covered = found.on_all_of(database, &[privilege]);
            assert_eq!(covered, expected, "{database} {privilege}");
        }
        assert!(found.on_table("one", "t", &["TRIGGER"]));
        assert!(
            !found.on_table("one", "t", &["SELECT"]) && !found.on_table("one", "u", &["INSERT"])
        );
    }

    #[test]
    fn what_is_taken_away_again_is_not_granted() {
        let found = grants(&[
            "GRANT SELECT, TRIGGER ON *.* TO `bk`@`%`",
            "REVOKE SELECT ON `secret`.* FROM `bk`@`%`",
        ]);
        assert!(!found.on_all_of("secret", &["SELECT"]) && found.on_all_of("shop", &["SELECT"]));
        assert!(found.on_all_of("secret", &["TRIGGER"]));
        assert!(grants(&[]).on_all_of("any", &["SELECT"]));
    }

    #[test]
    fn patterns_are_compared_as_like_does() {
        for (name, pattern, expected) in [
            ("shop", "shop", true),
            ("shop", "sho_", true),
            ("shop", "%", true),
            ("shop", "s%p", true),
            ("shop", "s%x", false),
            ("shop", "shop_", false),
            ("a%b", r"a\%b", true),
            ("axb", r"a\%b", false),
            ("", "%", true),
            ("", "_", false),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
        }
    }
}
