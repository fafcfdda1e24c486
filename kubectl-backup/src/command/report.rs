//! `report`: what was due and made in a period, for who has to show it.

use chrono::{DateTime, Duration, NaiveDate, SubsecRound, Utc};
use serde_json::Value;

use crate::cli::{Report, ReportOutput, StructuredOutput};
use crate::cluster::{Cluster, Object, Query, duration};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{KINDS, RESTORE};
use crate::select;
use crate::view::audit::{Inputs, Period, Shape, audit, csv, html, text};
use crate::view::calendar::begins;
use crate::view::output::structured;
use crate::view::table::Look;
use crate::view::time::Zone;

/// The longest period: a calendar has a cell for each of its days.
const MOST_DAYS: i64 = 400;

/// Reports.
///
/// # Errors
/// A period that is none; what the server refused; a named object that does not exist.
pub(crate) async fn run(context: &Context, args: &Report) -> Result<()> {
    let now = context.now().trunc_subsecs(0);
    let period = period(&args.since, args.until.as_deref(), context.zone, now)?;
    let cluster = context.cluster().await?;
    let scope = &args.scope;
    let namespace = (!scope.all_namespaces).then(|| cluster.namespace.clone());
    let (objects, mut hidden) = if scope.names.is_empty() {
        let query = Query {
            namespace: namespace.clone(),
            labels: scope.selector.clone(),
            chunk: 500,
            ..Query::default()
        };
        cluster.readable_objects(&KINDS, &query).await?
    } else {
        let named = select::objects(context, &cluster, &scope.names, false, None).await?;
        (named, vec![])
    };
    let restores = restores(&cluster, namespace.clone(), &mut hidden).await?;
    context.left_out(&hidden);
    let made = audit(Inputs {
        objects: &objects,
        restores: &restores,
        whole: scope.names.is_empty() && scope.selector.is_none(),
        namespace: namespace.as_deref(),
        left_out: hidden.into_iter().map(|error| error.message).collect(),
        period,
        zone: context.zone,
        now,
    });
    if made.is_empty() {
        select::none_found(context, namespace.as_deref());
    }
    let page = match args.output {
        ReportOutput::Json => {
            let value: Value = serde_json::to_value(&made).unwrap_or_default();
            structured(&value, StructuredOutput::Json)
        }
        ReportOutput::Csv => csv(&made),
        ReportOutput::Html => html(&made, context.zone),
        ReportOutput::Text if made.is_empty() => String::new(),
        ReportOutput::Text => text(
            &made,
            Shape {
                namespace: scope.all_namespaces,
                zone: context.zone,
                ascii: context.ui.ascii(),
                look: Look {
                    color: context.ui.color(),
                    no_headers: false,
                    width: context.ui.width(),
                },
            },
        ),
    };
    context.ui.out(&page)
}

/// Restores, where the kind is installed; that they may not be read is told.
async fn restores(
    cluster: &Cluster,
    namespace: Option<String>,
    hidden: &mut Vec<Error>,
) -> Result<Vec<Object>> {
    let query = Query {
        namespace,
        chunk: 500,
        ..Query::default()
    };
    match cluster.objects(&RESTORE, &query).await {
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(error) if error.kind == Exit::Denied => {
            hidden.push(error);
            Ok(vec![])
        }
        Err(error) => Err(error),
    }
}

/// The period that the flags mean (PURE).
fn period(since: &str, until: Option<&str>, zone: Zone, now: DateTime<Utc>) -> Result<Period> {
    let from = instant("--since", since, zone, now)?;
    let until = match until {
        Some(text) => instant("--until", text, zone, now)?,
        None => now,
    };
    if until > now {
        return Err(Error::usage(
            "--until lies in the future, of which there is nothing to report",
        ));
    }
    if from >= until {
        return Err(Error::usage(
            "the period is empty: --since has to be before --until",
        ));
    }
    if until - from > Duration::days(MOST_DAYS) {
        return Err(Error::usage(format!(
            "the period is too long: it has at most {MOST_DAYS} days; end it earlier with --until"
        )));
    }
    Ok(Period { from, until })
}

/// A duration before now, a day's begin, or a time.
fn instant(flag: &str, text: &str, zone: Zone, now: DateTime<Utc>) -> Result<DateTime<Utc>> {
    if let Some(at) = crds::time::parse_rfc3339(text) {
        return Ok(at.trunc_subsecs(0));
    }
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Ok(begins(zone, day));
    }
    let wrong = || {
        Error::usage(format!(
            "invalid {flag} {text:?}: write a duration such as 30d, a day such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T02:00:00Z"
        ))
    };
    let length = duration(flag, text).map_err(|_| wrong())?;
    let length = Duration::from_std(length).map_err(|_| wrong())?;
    now.checked_sub_signed(length).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use chrono_tz::Tz;
    use crds::time::{parse_rfc3339, rfc3339};

    use super::*;

    fn read(since: &str, until: Option<&str>, zone: Zone) -> Result<(String, String)> {
        let now = parse_rfc3339("2026-09-04T11:20:00Z").unwrap();
        let period = period(since, until, zone, now)?;
        Ok((rfc3339(period.from), rfc3339(period.until)))
    }

    #[test]
    fn periods_as_people_type_them() {
        let berlin = Zone::Named(Tz::Europe__Berlin);
        let now = "2026-09-04T11:20:00Z";
        for (since, until, zone, from, to) in [
            ("30d", None, Zone::Schedule, "2026-08-05T11:20:00Z", now),
            (
                "36h",
                Some("12h"),
                Zone::Utc,
                "2026-09-02T23:20:00Z",
                "2026-09-03T23:20:00Z",
            ),
            // A day begins in the zone that was asked for, in UTC where none was.
            (
                "2026-07-01",
                Some("2026-08-01"),
                Zone::Schedule,
                "2026-07-01T00:00:00Z",
                "2026-08-01T00:00:00Z",
            ),
            (
                "2026-07-01",
                Some("2026-08-01"),
                berlin,
                "2026-06-30T22:00:00Z",
                "2026-07-31T22:00:00Z",
            ),
            (
                "2026-01-31T02:00:00+01:00",
                Some("7d"),
                berlin,
                "2026-01-31T01:00:00Z",
                "2026-08-28T11:20:00Z",
            ),
        ] {
            let found = read(since, until, zone).unwrap();
            assert_eq!(found, (from.to_owned(), to.to_owned()), "{since} {until:?}");
        }
    }

    #[test]
    fn a_period_that_is_none_is_refused() {
        for (since, until, why) in [
            (
                "soon",
                None,
                "invalid --since \"soon\": write a duration such as 30d",
            ),
            (
                "30d",
                Some("2026-13-01"),
                "invalid --until \"2026-13-01\": write",
            ),
            ("-3d", None, "invalid --since"),
            ("99999999999d", None, "invalid --since"),
            ("1d", Some("2d"), "the period is empty"),
            ("0", None, "the period is empty"),
            ("30d", Some("2026-09-05"), "--until lies in the future"),
            ("401d", None, "at most 400 days"),
        ] {
            let error = read(since, until, Zone::Schedule).unwrap_err();
            assert_eq!(error.kind.code(), 2, "{since}");
            assert!(error.message.contains(why), "{since}: {}", error.message);
        }
    }
}
