//! `set`: changes schedule, retention and the like without YAML, checked before anything is sent.

use crds::labels;
use crds::parts::Retention;
use crds::time::rfc3339;
use serde_json::{Map, Value, json};

use crate::build::mysql::{self, credentials, retention, tls};
use crate::change::{Tally, apply};
use crate::cli::{Concurrency, DryRun, EngineFlag, PlaceFlags, Set};
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::MYSQL;
use crate::view::preview::next_run;
use crate::view::retention::preview;
use crate::view::written::difference;
use crate::{presence, select};

/// Changes.
///
/// # Errors
/// The first failure; the others are changed all the same.
pub(crate) async fn run(context: &Context, args: &Set) -> Result<()> {
    let spec = spec(args)?;
    if spec.is_empty() {
        return Err(
            Error::usage("set needs a field to change, such as --schedule")
                .hint("kubectl backup set --help"),
        );
    }
    let cluster = context.cluster().await?;
    let mut tally = Tally::default();
    for object in select::many(context, &cluster, &args.targets, "set", Some(&args.change)).await? {
        let outcome = match object {
            Ok(object) => one(context, &cluster, args, &object, &spec).await,
            Err(error) => Err(error),
        };
        tally.add(context, outcome)?;
    }
    tally.end(args.unchanged)
}

/// The fields to change, as JSON below `spec`; an empty value removes a field.
fn spec(args: &Set) -> Result<Map<String, Value>> {
    let mut spec = Map::new();
    let mut text = |field: &str, value: &Option<String>| {
        if let Some(value) = value {
            let value = if value.is_empty() {
                Value::Null
            } else {
                value.clone().into()
            };
            spec.insert(field.to_owned(), value);
        }
    };
    text("schedule", &args.schedule);
    text("timeZone", &args.time_zone);
    text("image", &args.image);
    if let Some(interval) = &args.places.binlogs {
        let binlogs = match interval.as_str() {
            "" => Value::Null,
            mysql::CONTINUOUS => json!({ "continuous": true, "interval": null }),
            interval => json!({ "interval": interval, "continuous": null }),
        };
        spec.insert("binlogs".to_owned(), binlogs);
    }
    let flags = &args.places.verify;
    let verify = mysql::verify(flags).and_then(|verify| serde_json::to_value(verify).ok());
    if let Some(Value::Object(mut verify)) = verify {
        if flags.verify.is_none() {
            verify.remove("mode");
        }
        spec.insert("verify".to_owned(), verify.into());
    }
    if let Some(policy) = args.concurrency_policy {
        let policy = match policy {
            Concurrency::Allow => "Allow",
            Concurrency::Forbid => "Forbid",
            Concurrency::Replace => "Replace",
        };
        spec.insert("concurrencyPolicy".to_owned(), policy.into());
    }
    let source = source(args)?;
    if !source.is_empty() {
        spec.insert("source".to_owned(), source.into());
    }
    if let Some(destination) = destination(&args.places) {
        spec.insert("destination".to_owned(), destination);
    }
    if let Some(kept) = retention(&args.retention)? {
        // Rules that are not named go away: what is typed is what is kept.
        let mut rules = json!({
            "keepLast": null, "keepHourly": null, "keepDaily": null,
            "keepWeekly": null, "keepMonthly": null, "maxAge": null,
        });
        let named = serde_json::to_value(&kept).unwrap_or_default();
        if let (Some(rules), Some(named)) = (rules.as_object_mut(), named.as_object()) {
            rules.extend(named.clone());
        }
        spec.insert("retention".to_owned(), rules);
    }
    Ok(spec)
}

/// The fields of the server to change.
fn source(args: &Set) -> Result<Map<String, Value>> {
    let places = &args.places;
    let mut source = Map::new();
    let mut put = |field: &str, value: Option<Value>| {
        source.extend(value.map(|value| (field.to_owned(), value)));
    };
    let some = !args.databases.is_empty();
    put("databases", some.then(|| args.databases.clone().into()));
    put("host", places.host.clone().map(Value::from));
    put("port", places.port.map(Value::from));
    if let Some(secret) = &places.secret {
        let named = credentials(secret)?;
        // Keys of the Secret before are not those of this one.
        put(
            "credentialsSecretRef",
            Some(json!({
                "name": named.name, "usernameKey": named.username_key, "passwordKey": named.password_key,
            })),
        );
    }
    if let Some(mode) = places.tls {
        let tls = serde_json::to_value(tls(mode)).unwrap_or_default();
        put("tls", Some(tls));
    }
    let engine = places.engine.engine;
    put(
        "engine",
        engine.map(|flag| mysql::engine(flag).as_str().into()),
    );
    put("accounts", places.engine.accounts.map(Value::from));
    // How many connections is the other engine's business.
    let none = (engine == Some(EngineFlag::Client)).then_some(Value::Null);
    put("sessions", places.engine.sessions.map(Value::from).or(none));
    if places.host.is_some() {
        // A server has one address.
        put("socket", Some(Value::Null));
    }
    Ok(source)
}

/// The store to change to, in place of any other.
fn destination(flags: &PlaceFlags) -> Option<Value> {
    let built = mysql::destination(&flags.destination)?;
    let built = serde_json::to_value(&built).unwrap_or_default();
    let mut named = json!({ "volume": null, "s3": null, "storageRef": built["storageRef"] });
    // What is not said of the new place is not that of the old one.
    let rows: [(&str, &[&str]); 2] = [
        (
            "volume",
            &["path", "nfs", "hostPath", "csi", "ephemeral", "emptyDir"],
        ),
        (
            "s3",
            &[
                "prefix",
                "endpoint",
                "region",
                "forcePathStyle",
                "credentialsSecretRef",
                "caSecretKeyRef",
            ],
        ),
    ];
    for (kind, fields) in rows {
        if let Some(fresh) = built[kind].as_object() {
            let unset = fields
                .iter()
                .map(|field| ((*field).to_owned(), Value::Null));
            let mut inner: Map<String, Value> = unset.collect();
            inner.extend(fresh.clone());
            named[kind] = inner.into();
        }
    }
    Some(named)
}

async fn one(
    context: &Context,
    cluster: &Cluster,
    args: &Set,
    object: &Object,
    spec: &Map<String, Value>,
) -> Result<bool> {
    let fields;
    let spec = if *object.kind == MYSQL {
        spec
    } else {
        fields = gobackup(args, object)?;
        &fields
    };
    let mut after = object.clone();
    merge(&mut after.object.data["spec"], &Value::Object(spec.clone()));
    check(object, &after)?;
    if after.spec() == object.spec() {
        context.changed(object, "unchanged", &args.change)?;
        return Ok(false);
    }
    if args.change.dry_run != DryRun::Client {
        presence::demand_new(context, cluster, object, &after).await?;
    }
    if let Some(text) = removed(context, object, &after) {
        context.ui.warn(&text);
    }
    let text = difference(&object.full_name(), Some(object), &after);
    if args.diff {
        context.ui.out(&text)?;
        if args.change.dry_run == DryRun::None && !context.ui.confirm("This is the change.")? {
            return Err(Error::usage("cancelled; nothing was changed"));
        }
    }
    let mut patch = json!({ "spec": spec });
    if spec.contains_key("schedule") || spec.contains_key("timeZone") {
        // Slots up to now belong to the schedule before this edit.
        patch["metadata"] =
            json!({ "annotations": { labels::SCHEDULE_SINCE: rfc3339(context.now()) } });
    }
    let changed = match args.change.dry_run {
        DryRun::Client => after,
        _ => apply(cluster, object, &patch, &args.change, &args.writer).await?,
    };
    let next = next_run(&changed, context.zone, context.now());
    context.changed(&changed, &format!("changed; {next}"), &args.change)?;
    Ok(true)
}

/// What a smaller retention may remove. Without rules before, nothing was removed.
fn removed(context: &Context, object: &Object, after: &Object) -> Option<String> {
    let before = rules(object);
    if before == rules(after) {
        return None;
    }
    let short = object.kind.short_name(&object.name());
    let runs = object.status().runs;
    preview(
        before.as_ref(),
        &rules(after)?,
        &runs,
        &short,
        context.now(),
    )
}

/// The rules of an object; none if it keeps everything. A Backup keeps a count on each storage: the
/// largest of them, as what only a smaller one would remove is there as long.
fn rules(object: &Object) -> Option<Retention> {
    if *object.kind == MYSQL {
        return serde_json::from_value(object.spec()["retention"].clone()).ok();
    }
    let storages = object.spec()["storageRefs"].as_array()?;
    let counts = storages.iter().map(|storage| {
        let keep = storage["keep"].as_i64().filter(|keep| *keep > 0)?;
        i32::try_from(keep).ok()
    });
    let counts: Option<Vec<i32>> = counts.collect();
    Some(Retention {
        keep_last: Some(counts?.into_iter().max()?),
        ..Retention::default()
    })
}

/// The same in the fields of gobackup.io: the schedule is an object, and each storage keeps a count.
fn gobackup(args: &Set, object: &Object) -> Result<Map<String, Value>> {
    let name = object.full_name();
    if !object.spec()["storageRefs"].is_array() {
        return Err(Error::usage(format!(
            "{name} has its fields outside of spec, as older generations did"
        ))
        .hint("change it with kubectl edit"));
    }
    if let Some(flag) = args.places.given() {
        return Err(Error::usage(format!(
            "{flag} goes with MysqlBackups: {name} names Databases and Storages, which have it (kubectl edit)"
        )));
    }
    let mut spec = Map::new();
    let text = |value: &String| match value.as_str() {
        "" => Value::Null,
        value => value.into(),
    };
    let mut schedule = Map::new();
    if let Some(cron) = &args.schedule {
        schedule.insert("cron".to_owned(), text(cron));
    }
    if let Some(zone) = &args.time_zone {
        schedule.insert("timeZone".to_owned(), text(zone));
    }
    if let Some(policy) = args.concurrency_policy {
        schedule.insert("concurrencyPolicy".to_owned(), format!("{policy:?}").into());
    }
    if !schedule.is_empty() {
        spec.insert("schedule".to_owned(), schedule.into());
    }
    if let Some(image) = &args.image {
        spec.insert("job".to_owned(), json!({ "image": text(image) }));
    }
    if !args.databases.is_empty() {
        let names = args.databases.iter();
        let refs = names.map(|name| json!({ "name": name })).collect();
        spec.insert("databaseRefs".to_owned(), refs);
    }
    if let Some(rules) = retention(&args.retention)? {
        let alone = crds::parts::Retention {
            keep_last: rules.keep_last,
            ..Default::default()
        };
        let (true, Some(keep)) = (rules == alone, rules.keep_last) else {
            return Err(Error::usage(format!(
                "{name} keeps a count on each storage: use --retention keep-last=N"
            )));
        };
        let mut refs = object.spec()["storageRefs"].clone();
        for storage in refs.as_array_mut().into_iter().flatten() {
            storage["keep"] = keep.into();
        }
        spec.insert("storageRefs".to_owned(), refs);
    }
    Ok(spec)
}

/// The rules operator and webhook use. A mistake that was there before is not this change's.
fn check(before: &Object, after: &Object) -> Result<()> {
    let schedule = &after.spec()["schedule"];
    if *after.kind != MYSQL
        && let Some(cron) = schedule["cron"].as_str()
    {
        return crds::schedule::Schedule::parse(cron, schedule["timeZone"].as_str())
            .map(|_| ())
            .map_err(|e| Error::usage(format!("{}: {e}", after.full_name())));
    }
    let problems = |object: &Object| {
        serde_json::from_value(object.spec().clone())
            .map_or_else(|_| vec![], |spec| crds::validate::mysql_backup(&spec))
    };
    let old = problems(before);
    let mut new = problems(after);
    new.retain(|problem| !old.contains(problem));
    if new.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{}: {}",
        after.full_name(),
        crds::validate::join(&new)
    )))
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}
