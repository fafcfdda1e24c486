//! `create mysql -i`: questions with what the cluster has to offer, each answer checked at once.
//! It ends in a command line, which is shown, parsed and carried out like any other.

use crate::cluster::{Cluster, Offers};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ui::Ui;
use crate::view::preview;
use crds::schedule::Schedule;

/// Schedules that are offered by name.
const PRESETS: [(&str, &str); 5] = [
    ("every night at 02:00", "0 2 * * *"),
    ("every 6 hours", "0 */6 * * *"),
    ("every hour", "0 * * * *"),
    ("every Sunday at 03:00", "0 3 * * 0"),
    ("something else", ""),
];

/// The answer that keeps every artefact.
const ALL: &str = "all";

/// Asks, and gives the arguments of the equivalent `create mysql`.
///
/// # Errors
/// Nobody to ask; the user gave up.
pub(crate) async fn arguments(context: &Context, name: Option<&str>) -> Result<Vec<String>> {
    let ui = &context.ui;
    if !ui.can_ask() {
        return Err(
            Error::usage("-i asks questions, and stdin is not a terminal")
                .hint("give the flags instead: kubectl backup create mysql --help"),
        );
    }
    let cluster = context.cluster().await?;
    let offers = cluster.offers().await;
    let mut line: Vec<String> = vec!["create".into(), "mysql".into()];
    let name = ui.input("Name", name.unwrap_or_default(), |text| {
        match (text.is_empty(), crds::validate::name(text)) {
            (true, _) => Err("a name is needed".to_owned()),
            (_, Some(problem)) => Err(problem.message),
            _ => crate::build::bad_name(text).map_or(Ok(()), Err),
        }
    })?;
    line.push(name);
    database(ui, &offers, &mut line)?;
    schedule(context, &mut line)?;
    store(ui, &cluster, &offers, &mut line)?;
    let retention = ui.input(
        "Keep (rules, or all)",
        "keep-last=7,keep-daily=14",
        |text| {
            if text == ALL {
                return Ok(());
            }
            let rules: Vec<String> = text
                .split(',')
                .filter(|r| !r.is_empty())
                .map(str::to_owned)
                .collect();
            crate::build::mysql::retention(&rules)
                .map(|_| ())
                .map_err(|e| e.message)
        },
    )?;
    if retention != ALL {
        flag(&mut line, "--retention", &retention);
    }
    let key = ui.input(
        "Encrypt to an age public key (empty for no encryption)",
        "",
        |text| match crds::parts::recipient_fault(text) {
            Some(fault) if !text.is_empty() => Err(format!("this {fault}")),
            _ => Ok(()),
        },
    )?;
    flag(&mut line, "--encrypt-to", &key);
    Ok(line)
}

fn flag(line: &mut Vec<String>, flag: &str, value: &str) {
    if !value.is_empty() {
        line.extend([flag.to_owned(), value.to_owned()]);
    }
}

fn database(ui: &Ui, offers: &Offers, line: &mut Vec<String>) -> Result<()> {
    let mut hosts: Vec<String> = offers
        .services
        .iter()
        .map(|(host, port)| format!("{host}:{port}"))
        .collect();
    let (mut host, mut port) = (String::new(), "3306".to_owned());
    if !hosts.is_empty() {
        hosts.push("another host".to_owned());
        let picked = ui
            .select("Database server", &hosts)?
            .and_then(|i| offers.services.get(i));
        if let Some((name, number)) = picked {
            (host, port) = (name.clone(), number.to_string());
        }
    }
    if host.is_empty() {
        host = ui.input("Host", "", |text| {
            crds::host::bare(text)
                .map(|_| ())
                .map_err(|fault| format!("{text:?} {fault}"))
        })?;
        port = ui.input("Port", "3306", |text| {
            text.parse::<u16>()
                .map(|_| ())
                .map_err(|_| "a port is 1 to 65535".to_owned())
        })?;
    }
    flag(line, "--host", &host);
    if port != "3306" {
        flag(line, "--port", &port);
    }
    let secret = if offers.secrets.is_empty() {
        ui.input("Secret with username and password", "", |text| match text {
            "" => Err("a Secret is needed".to_owned()),
            _ => Ok(()),
        })?
    } else {
        let index = ui.select("Secret with username and password", &offers.secrets)?;
        index
            .and_then(|i| offers.secrets.get(i))
            .cloned()
            .unwrap_or_default()
    };
    flag(line, "--secret", &secret);
    let databases = ui.input(
        "Databases, separated by commas (empty dumps all)",
        "",
        |_| Ok(()),
    )?;
    flag(line, "--databases", &databases);
    Ok(())
}

/// The schedule, told in words with its next runs before it is taken.
fn schedule(context: &Context, line: &mut Vec<String>) -> Result<()> {
    let ui = &context.ui;
    let zone = ui.input("Time zone", "UTC", |text| {
        crds::schedule::parse_zone(text)
            .map(|_| ())
            .map_err(|e| e.to_string())
    })?;
    loop {
        let names: Vec<String> = PRESETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let picked = ui.select("When", &names)?.ok_or_else(cancelled)?;
        let mut text = PRESETS[picked].1.to_owned();
        if text.is_empty() {
            text = ui.input(
                "Cron expression (minute hour day month weekday)",
                "0 2 * * *",
                |text| {
                    Schedule::parse(text, None)
                        .map(|_| ())
                        .map_err(|e| e.to_string())
                },
            )?;
        }
        let Ok(parsed) = Schedule::parse(&text, Some(&zone)) else {
            continue;
        };
        let slots = preview::next(&parsed, context.now(), context.now(), 3);
        ui.note(&preview::words(&parsed));
        ui.note(preview::next_text(&parsed, &slots, context.zone, context.now()).trim_end());
        if ui.agree("Is this right?")? {
            flag(line, "--schedule", &text);
            if zone != "UTC" {
                flag(line, "--time-zone", &zone);
            }
            return Ok(());
        }
    }
}

fn store(ui: &Ui, cluster: &Cluster, offers: &Offers, line: &mut Vec<String>) -> Result<()> {
    let mut choices: Vec<String> = offers
        .claims
        .iter()
        .map(|c| format!("volume claim {c}"))
        .collect();
    choices.extend(offers.storages.iter().map(|name| format!("Storage {name}")));
    choices.push("S3 bucket".to_owned());
    if offers.claims.is_empty() {
        ui.note(&format!(
            "There is no volume claim in namespace {}.",
            cluster.namespace
        ));
    }
    let picked = ui.select("Store", &choices)?.ok_or_else(cancelled)?;
    if let Some(claim) = offers.claims.get(picked) {
        flag(line, "--pvc", claim);
        let path = ui.input(
            "Directory on the volume (empty for its root)",
            "",
            |text| match text.split('/').any(|part| part == "..") {
                true => Err("must not contain `..`".to_owned()),
                false => Ok(()),
            },
        )?;
        flag(line, "--path", &path);
        return Ok(());
    }
    let storage = picked.checked_sub(offers.claims.len());
    if let Some(storage) = storage.and_then(|i| offers.storages.get(i)) {
        flag(line, "--storage", storage);
        return Ok(());
    }
    let needed = |text: &str| {
        if text.is_empty() {
            Err("a bucket is needed".to_owned())
        } else {
            Ok(())
        }
    };
    flag(line, "--s3-bucket", &ui.input("Bucket", "", needed)?);
    flag(
        line,
        "--s3-region",
        &ui.input("Region (empty for the service's own)", "", |_| Ok(()))?,
    );
    flag(
        line,
        "--s3-endpoint",
        &ui.input("Endpoint (empty for AWS)", "", |_| Ok(()))?,
    );
    let secret = if offers.secrets.is_empty() {
        ui.input(
            "Secret with accessKeyId and secretAccessKey",
            "",
            |_| Ok(()),
        )?
    } else {
        let index = ui.select(
            "Secret with accessKeyId and secretAccessKey",
            &offers.secrets,
        )?;
        index
            .and_then(|i| offers.secrets.get(i))
            .cloned()
            .unwrap_or_default()
    };
    flag(line, "--s3-secret", &secret);
    Ok(())
}

/// The user left.
pub(crate) fn cancelled() -> Error {
    Error::usage("cancelled; nothing was created")
}

/// A command line as one would type it.
pub(crate) fn typed(line: &[String]) -> String {
    let quoted = line.iter().map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    let words: Vec<String> = quoted.collect();
    format!("kubectl backup {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_typed() {
        let line = [
            "create",
            "mysql",
            "shop",
            "--schedule",
            "0 2 * * *",
            "--env",
            "X=it's",
        ];
        assert_eq!(
            typed(&line.map(String::from)),
            r"kubectl backup create mysql shop --schedule '0 2 * * *' --env 'X=it'\''s'"
        );
    }
}
