//! The `gobackup.yml` of a run. PURE.
//!
//! gobackup expands `$` in the whole text of the file, quoted or not, and knows no escape for it:
//! every string stands in double quotes here, with `$` as `\x24`, which YAML alone reads. A
//! password that gobackup would put on a command line stands here as the file it is in, which
//! [`crate::gobackup::shims`] reads.

mod storages;
mod yaml;

use std::collections::BTreeMap;

use crds::plan::{Codec, Database, DatabaseType, Encrypt, Plan};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::database::mysql::restore_check::MYSQLDUMP;
use crate::failure::Failure;
use crate::settings::plan::expose;

/// Begins a value that stands for the content of the file after it.
pub(crate) const FILE: &str = "secret-file:";
/// gobackup's own layout of an archive's name, as Go writes times.
const TIMESTAMP: &str = "2006.01.02.15.04.05";

/// What the file is made of.
pub(crate) struct Config<'a> {
    /// What to do.
    pub(crate) plan: &'a Plan<SecretString>,
    /// The files the plan's secrets are in, by their names.
    pub(crate) files: &'a BTreeMap<String, String>,
    /// Where gobackup works.
    pub(crate) workdir: &'a str,
    /// Where the scripts of Databases are, see [`Config::scripts`].
    pub(crate) scripts: &'a str,
    /// End of the archive's name before its extension: letters that no layout of a time means.
    pub(crate) token: &'a str,
}

/// Type of a Database as gobackup is told, and its directory in the archive. `mariadb` would be
/// a physical copy, which needs the server's data directory.
pub(crate) fn type_of(database_type: DatabaseType) -> &'static str {
    match database_type {
        DatabaseType::Mariadb => DatabaseType::Mysql.as_str(),
        other => other.as_str(),
    }
}

/// An etcd member without its scheme, by which gobackup's file would be named.
pub(crate) fn endpoint(host: &str) -> &str {
    host.strip_prefix("http://").unwrap_or(host)
}

/// The variables that give a codec's program its level, for which gobackup has no key.
pub(crate) fn level(plan: &Plan<SecretString>) -> Vec<(&'static str, String)> {
    let Some(level) = plan.compress.level else {
        return vec![];
    };
    let option = format!("-{level}");
    match plan.compress.codec {
        Codec::Gzip => vec![("GZIP", option.clone()), ("PIGZ", option)],
        Codec::Bzip2 => vec![("BZIP2", option)],
        Codec::Xz | Codec::Lzma => vec![("XZ_OPT", option)],
        Codec::Zstd => vec![("ZSTD_CLEVEL", level.to_string())],
        Codec::Tar | Codec::Compress | Codec::Lzip | Codec::Lzop => vec![],
    }
}

impl Config<'_> {
    /// The text of the file.
    ///
    /// # Errors
    /// A value that gobackup can't be given.
    pub(crate) fn render(&self) -> Result<String, Failure> {
        let (mut databases, mut storages) = (Map::new(), Map::new());
        for database in &self.plan.databases {
            databases.insert(database.directory().to_owned(), self.database(database)?);
        }
        for storage in &self.plan.storages {
            storages.insert(storage.name.clone(), self.storage(storage));
        }
        let mut model = Map::new();
        let compress = json!({
            "type": compression(self.plan.compress.codec)?,
            "filename_format": format!("{TIMESTAMP}.{}", self.token),
        });
        model.insert("compress_with".to_owned(), compress);
        if let Some(encrypt) = &self.plan.encrypt {
            model.insert("encrypt_with".to_owned(), self.encryption(encrypt)?);
        }
        model.insert("databases".to_owned(), Value::Object(databases));
        model.insert("storages".to_owned(), Value::Object(storages));
        let mut models = Map::new();
        models.insert(self.plan.model.clone(), Value::Object(model));
        let whole = json!({"workdir": self.workdir, "web": {"enabled": false}, "models": models});
        let mut text = String::new();
        yaml::write(&mut text, &whole, 0);
        Ok(text)
    }

    fn script(&self, d: &Database<SecretString>, key: &str) -> String {
        let mut all = self.plan.databases.iter();
        let at = all.position(|other| other.name == d.name).unwrap_or(0);
        format!("{}/{key}-{at}", self.scripts)
    }

    /// The files that the settings name, with their text. A failing script after a good dump is no
    /// failure, as with the native engine, and gobackup would end the run: it leaves its status in a
    /// file instead, see [`Config::failed_scripts`].
    pub(crate) fn scripts(&self) -> Vec<(String, String)> {
        let mut files = vec![];
        for d in &self.plan.databases {
            if let Some(text) = &d.before_script {
                files.push((self.script(d, "before_script"), text.clone()));
            }
            if let Some(text) = &d.after_script {
                let file = self.script(d, "after_script");
                let wrapper =
                    format!("/bin/sh {file}.text 2>&1 || echo $? >{file}.failed\nexit 0\n");
                files.push((format!("{file}.text"), text.clone()));
                files.push((file, wrapper));
            }
        }
        files
    }

    /// Databases and the files that hold the status of their script, where it failed.
    pub(crate) fn failed_scripts(&self) -> Vec<(&str, String)> {
        let with = self
            .plan
            .databases
            .iter()
            .filter(|d| d.after_script.is_some());
        with.map(|d| {
            (
                d.name.as_str(),
                format!("{}.failed", self.script(d, "after_script")),
            )
        })
        .collect()
    }

    /// What stands for a secret that the client's own program reads, if it is set.
    fn file(&self, name: &str, secret: Option<&SecretString>) -> Option<String> {
        expose(secret)?;
        self.files.get(name).map(|path| format!("{FILE}{path}"))
    }

    fn encryption(&self, encrypt: &Encrypt<SecretString>) -> Result<Value, Failure> {
        let Encrypt::Openssl {
            password,
            bits,
            base64,
            ..
        } = encrypt
        else {
            return Err(unable("encodeWith", "is not openssl"));
        };
        // Digest and iterations are the encrypting program's, which reads them elsewhere.
        let password = self
            .file("encrypt/password", Some(password))
            .ok_or_else(|| unable("encodeWith", "has an empty password"))?;
        Ok(json!({
            "type": "openssl", "password": password, "salt": true, "base64": base64,
            "chiper": format!("aes-{bits}-cbc"), "args": "-pbkdf2",
        }))
    }

    fn database(&self, d: &Database<SecretString>) -> Result<Value, Failure> {
        let at = format!("Database {}", d.name);
        let named = |field: &str| format!("databases/{}/{field}", d.name);
        let mut map = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        let user = expose(d.username.as_ref());
        if user.is_some_and(|u| u.contains(char::is_whitespace)) {
            return Err(unable(
                &at,
                "has a blank in its user name, at which gobackup breaks a client's arguments",
            ));
        }
        let mut args = vec![];
        set("type", Some(type_of(d.database_type).into()));
        let host = match d.database_type {
            DatabaseType::Etcd => None,
            _ => d.host.as_deref(),
        };
        set("host", host.map(Value::from));
        set("port", d.port.map(Value::from));
        set("socket", d.socket.as_deref().map(Value::from));
        match d.database_type {
            DatabaseType::Mysql | DatabaseType::Mariadb => {
                args.extend(MYSQLDUMP.map(str::to_owned));
                args.extend(excluded(d));
                set("username", user.map(Value::from));
                set(
                    "password",
                    self.file(&named("password"), d.password.as_ref())
                        .map(Value::from),
                );
                one_or_all(d, &mut set);
                set("tables", list(&d.tables).filter(|_| d.database.is_some()));
            }
            DatabaseType::Postgresql => {
                if !d.tables.is_empty() && d.database.is_some() {
                    args.push("--strict-names".to_owned());
                }
                set("username", user.map(Value::from));
                // Handed to the client by its environment.
                set("password", expose(d.password.as_ref()).map(Value::from));
                one_or_all(d, &mut set);
                let one = d.database.is_some();
                set("tables", list(&d.tables).filter(|_| one));
                set("exclude_tables", list(&d.exclude_tables).filter(|_| one));
            }
            DatabaseType::Redis => {
                let mode = if d.copy_from.is_some() {
                    "copy"
                } else {
                    "sync"
                };
                set("mode", Some(mode.into()));
                set("rdb_path", d.copy_from.as_deref().map(Value::from));
                // Asked to save, gobackup dumps twice.
                set("invoke_save", Some(false.into()));
                set(
                    "password",
                    self.file(&named("password"), d.password.as_ref())
                        .map(Value::from),
                );
                args.extend(user.map(|u| format!("--user {u}")));
            }
            DatabaseType::Mongodb => {
                set(
                    "uri",
                    self.file(&named("uri"), d.uri.as_ref()).map(Value::from),
                );
                set("username", user.map(Value::from));
                set(
                    "password",
                    self.file(&named("password"), d.password.as_ref())
                        .map(Value::from),
                );
                set("authdb", d.auth_db.as_deref().map(Value::from));
                one_or_all(d, &mut set);
                set("oplog", d.oplog.then(|| true.into()));
                set("exclude_tables", list(&d.exclude_tables));
                set("exclude_tables_prefix", list(&d.exclude_prefixes));
            }
            DatabaseType::Influxdb2 => {
                set(
                    "token",
                    self.file(&named("password"), d.password.as_ref())
                        .map(Value::from),
                );
                set("bucket", d.database.as_deref().map(Value::from));
                set("all_databases", d.database.is_none().then(|| true.into()));
                set("org", d.org.as_deref().map(Value::from));
                set("skip_verify", d.skip_verify.then(|| true.into()));
            }
            DatabaseType::Etcd => set("endpoint", d.host.as_deref().map(endpoint).map(Value::from)),
            DatabaseType::Mssql => {
                return Err(unable(
                    &at,
                    "is mssql, whose client takes the password on the command line alone",
                ));
            }
        }
        args.extend(d.args.iter().cloned());
        set("args", (!args.is_empty()).then(|| args.join(" ").into()));
        for (key, script) in [
            ("before_script", &d.before_script),
            ("after_script", &d.after_script),
        ] {
            let file = script.as_ref().map(|_| self.script(d, key));
            // gobackup up to 2.15 splits it into words and starts the first one, newer ones have `sh` read it.
            set(key, file.map(|file| format!("/bin/sh {file}").into()));
        }
        set("on_exit", d.after_script.is_some().then(|| "always".into()));
        Ok(Value::Object(map))
    }
}

fn compression(codec: Codec) -> Result<&'static str, Failure> {
    Ok(match codec {
        Codec::Tar => "tar",
        Codec::Gzip => "tgz",
        Codec::Bzip2 => "tbz2",
        Codec::Lzma => "lzma",
        Codec::Xz => "xz",
        Codec::Zstd => "zst",
        Codec::Compress | Codec::Lzip | Codec::Lzop => {
            return Err(unable(
                "compressWith.type",
                "can't be looked into afterwards",
            ));
        }
    })
}

fn one_or_all(d: &Database<SecretString>, set: &mut impl FnMut(&str, Option<Value>)) {
    match &d.database {
        Some(name) => set("database", Some(name.as_str().into())),
        None => set("all_databases", Some(true.into())),
    }
}

fn list(values: &[String]) -> Option<Value> {
    (!values.is_empty()).then(|| values.into())
}

/// gobackup's key takes tables of one database alone.
fn excluded(d: &Database<SecretString>) -> Vec<String> {
    let whole = |table: &String| match (&d.database, table.contains('.')) {
        (Some(database), false) => format!("--ignore-table={database}.{table}"),
        _ => format!("--ignore-table={table}"),
    };
    d.exclude_tables.iter().map(whole).collect()
}

fn unable(what: &str, why: &str) -> Failure {
    Failure::settings(format!("{what} {why}: set spec.job.engine: native"))
}

#[cfg(test)]
mod tests;
