//! What the SET statements of a dump have set so far. Clients keep a setting in a variable of the user's while they set another,
//! and put it back from there: around each routine, trigger and event. PURE.

use std::collections::BTreeMap;

use crate::kind::{Assigned, Kind};

/// Longest value that is kept.
const LONGEST: usize = 4096;
/// Most variables that are kept; of more, nothing is known.
const MOST: usize = 256;

/// Variables of the session by their name, of the user's by `@` and theirs. One that is not here has the server's own value, or
/// one that is not known.
#[derive(Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Heeds a statement.
    pub(crate) fn heed(&mut self, kind: &Kind) {
        let Kind::Set(all) = kind else { return };
        for one in all {
            match one {
                Assigned::User(name, value) => self.assign(format!("@{name}"), value),
                Assigned::Session(name, value) => self.assign(name.clone(), value),
                Assigned::Else => {}
            }
        }
    }

    /// What a variable of the session was set to; `None` where it is the server's own, or not known.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The modes of SQL, in upper case; empty where they are the server's own.
    pub(crate) fn mode(&self) -> String {
        self.get("sql_mode")
            .unwrap_or_default()
            .to_ascii_uppercase()
    }

    fn assign(&mut self, name: String, value: &str) {
        let value = match value.strip_prefix('@') {
            None => Some(value.to_owned()),
            Some(of) => self.0.get(&read(of)).cloned(),
        };
        match value.filter(|v| v.len() <= LONGEST) {
            Some(value) if self.0.len() < MOST || self.0.contains_key(&name) => {
                self.0.insert(name, value);
            }
            _ => {
                self.0.remove(&name);
            }
        }
    }
}

/// The name here of the variable that is read, of which the first `@` is cut off.
fn read(of: &str) -> String {
    let of = of.to_ascii_lowercase();
    let Some(session) = of.strip_prefix('@') else {
        return format!("@{of}");
    };
    let scoped = ["session.", "local."];
    let bare = scoped.iter().find_map(|s| session.strip_prefix(s));
    bare.unwrap_or(session).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::kind;

    fn mode(statements: &[&str]) -> String {
        let mut settings = Settings::default();
        for statement in statements {
            settings.heed(&kind(statement.as_bytes()));
        }
        settings.mode()
    }

    const HEAD: &str = "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */";

    #[test]
    fn what_is_put_back_is_what_was_kept() {
        let around = [
            HEAD,
            "/*!50003 SET @saved_sql_mode       = @@sql_mode */",
            "/*!50003 SET sql_mode              = 'ANSI,NO_BACKSLASH_ESCAPES' */",
        ];
        assert_eq!(mode(&around), "ANSI,NO_BACKSLASH_ESCAPES");
        let put_back = "/*!50003 SET sql_mode              = @saved_sql_mode */";
        assert_eq!(
            mode(&[&around[..], &[put_back]].concat()),
            "NO_AUTO_VALUE_ON_ZERO"
        );
        for way in ["@@session.sql_mode", "@@LOCAL.SQL_MODE", "@@SQL_MODE"] {
            let keep = format!("SET @A = {way}");
            assert_eq!(
                mode(&[HEAD, &keep, "SET sql_mode=''", "SET @b=@a, sql_mode=@B"]),
                "NO_AUTO_VALUE_ON_ZERO",
                "{way}"
            );
        }
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for back in [
            "SET SQL_MODE=@OLD_SQL_MODE",
            "SET sql_mode = @nobody",
            "SET sql_mode = @@global.sql_mode",
            "SET sql_mode = @saved_sql_mode",
        ] {
            let other = "SET @saved_sql_mode = @@global.sql_mode";
            assert_eq!(mode(&[HEAD, other, back]), "", "{back}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut settings = Settings::default();
        settings.heed(&kind(HEAD.as_bytes()));
        for n in 0..2 * MOST {
            settings.heed(&kind(format!("SET @a{n} = @@sql_mode").as_bytes()));
        }
        assert_eq!(settings.0.len(), MOST);
        settings.heed(&kind(b"SET sql_mode = @a1"));
        assert_eq!(settings.mode(), "NO_AUTO_VALUE_ON_ZERO");
        settings.heed(&kind(b"SET sql_mode = @a511"));
        assert_eq!(settings.mode(), "");
        let long = format!("SET sql_mode = '{}'", "x".repeat(LONGEST + 1));
        settings.heed(&kind(long.as_bytes()));
        assert_eq!(settings.mode(), "");
    }
}
