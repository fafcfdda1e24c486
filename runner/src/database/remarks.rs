//! What a client said though it ended well: all of it is a warning but what is known to say nothing.

use crate::process::Ended;

/// Parts of lines that say nothing of the dump: how clients greet, count and finish.
const HARMLESS: [&str; 25] = [
    // mysqldump, mariadb-dump
    "Using a password on the command line",
    "A partial dump from a server that has GTIDs",
    "Deprecated program name",
    "is deprecated and will be removed",
    "insecure passwordless login",
    // redis-cli --rdb
    "SYNC sent to master",
    "Transfer finished with success",
    "sending REPLCONF",
    "Sending replconf",
    "Keep the RDB transfer",
    "Warning: Using a password with '-a'",
    "Please input password:",
    // etcdctl logs by JSON
    "\"level\":\"info\"",
    "\"level\":\"debug\"",
    // mongodump tells all it does there
    "\twriting ",
    "\tdone dumping ",
    "\tdumping up to ",
    "\tWARNING: On some systems, a password provided directly",
    " documents)",
    "\t[",
    // influx
    "INFO: ",
    "\tINFO\t",
    "\tinfo\t",
    // pg_dump --verbose, openssl and tar have no word of their own for what is none
    "pg_dump: last built-in OID",
    "NOTICE: ",
];

/// What `client` said, as warnings. It may have said more than was kept.
pub fn remarks(client: &str, ended: &Ended) -> Vec<String> {
    let verbose = |m: &str| m.starts_with("-- ") && !m.contains("arning") && !m.contains("rror");
    let harmless = |m: &str| verbose(m) || HARMLESS.iter().any(|part| m.contains(part));
    ended
        .messages
        .iter()
        .filter(|m| !harmless(m))
        .map(|m| format!("{client} ended well but said: {m}"))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn t5_whatever_a_client_says_is_told_but_what_is_known_to_say_nothing() {
        let ended = |lines: &[&str]| Ended {
            status: std::process::Command::new("true").status().unwrap(),
            stalled: None,
            messages: lines.iter().map(|l| (*l).to_owned()).collect(),
        };
        let quiet = [
            "mysqldump: [Warning] Using a password on the command line interface can be insecure.",
            "-- Connecting to 127.0.0.1...",
            "SYNC sent to master, writes 175 bytes to '/x'",
            "Transfer finished with success.",
            "{\"level\":\"info\",\"ts\":\"2026-01-01\",\"msg\":\"saved\"}",
            "2026-11-28T21:00:00.000+0000\twriting app.t to out/app/t.bson",
            "2026-11-28T21:00:00.000+0000\tdone dumping app.t (3 documents)",
            "2026/11/28 21:00:00 INFO: Downloading metadata snapshot",
        ];
        assert_eq!(remarks("c", &ended(&quiet)), [""; 0]);
        for told in [
            "mysqldump: Couldn't find something",
            "-- Warning: column statistics not supported by the server.",
            "pg_dump: warning: there are circular foreign-key constraints on this table:",
            "pg_dump: warning: subscriptions not dumped because current user is not a superuser",
            "{\"level\":\"warn\",\"msg\":\"member is behind\"}",
        ] {
            let said = remarks("c", &ended(&[quiet[0], told]));
            assert_eq!(said, [format!("c ended well but said: {told}")]);
        }
    }
}
