//! Whom to speak to, as whom, and within which limits.

use secrecy::SecretString;

use crate::limits::{Limits, Pulse, Stop};
use crate::stream::{Address, Tls};

/// Whom to speak to, and as whom.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Where the server listens.
    pub address: Address,
    /// The user's name.
    pub user: String,
    /// The user's password; empty for none.
    pub password: SecretString,
    /// The database in which statements begin.
    pub database: Option<String>,
    /// TLS; `None` speaks in plain text.
    pub tls: Option<Tls>,
    /// How the server's list of processes calls this program.
    pub program: String,
    /// What is taken from the server at most.
    pub limits: Limits,
    /// Ends what is waited for.
    pub stop: Stop,
    /// Says whether the server is waited for.
    pub pulse: Pulse,
}

impl Settings {
    /// Without TLS, under the usual limits.
    #[must_use]
    pub fn new(address: Address, user: &str, password: SecretString) -> Self {
        Self {
            address,
            user: user.to_owned(),
            password,
            database: None,
            tls: None,
            program: "backup-runner".to_owned(),
            limits: Limits::default(),
            stop: Stop::default(),
            pulse: Pulse::default(),
        }
    }
}
