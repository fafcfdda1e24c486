//! Until where a restore replays, as it is asked for.

use binlog::chain::Target;
use crds::time::parse_rfc3339;

use crate::failure::Failure;
use crate::mysql_backup::binlogs::time;
use crate::settings::options::ReplayTarget;

/// Reads it.
///
/// # Errors
/// It is none, or more than one.
pub(super) fn target(asked: &ReplayTarget) -> Result<Target, Failure> {
    let bad = |text: String| Err(Failure::settings(format!("options.restore.replay: {text}")));
    let gtid = |text: &str| {
        text.parse()
            .map_err(|e| Failure::settings(format!("options.restore.replay: {e}; write it as the server does, such as 0-1-5 (MariaDB) or 3E11FA47-71CA-11E1-9E33-C80AA9429562:23 (MySQL)")))
    };
    match (&asked.at, &asked.gtid, &asked.before_gtid, asked.latest) {
        (Some(text), None, None, false) => {
            let at = parse_rfc3339(text).filter(|at| at.timestamp_subsec_nanos() == 0);
            let moment = at.and_then(|at| u32::try_from(at.timestamp()).ok());
            match moment {
                Some(moment) => Ok(Target::Moment(moment)),
                None => bad(format!(
                    "{text:?} is no time in whole seconds since 1970 with a zone, such as 2025-01-15T10:30:00Z"
                )),
            }
        }
        (None, Some(text), None, false) => gtid(text).map(Target::Gtid),
        (None, None, Some(text), false) => gtid(text).map(Target::BeforeGtid),
        (None, None, None, true) => Ok(Target::Latest),
        _ => bad("names none, or more than one, of at, gtid, beforeGtid, latest".to_owned()),
    }
}

/// It in words.
pub(super) fn words(target: &Target) -> String {
    match target {
        Target::Moment(moment) => format!("all before {}", time(*moment)),
        Target::Gtid(gtid) => format!("all up to GTID {gtid}, with it"),
        Target::BeforeGtid(gtid) => format!("all before GTID {gtid}"),
        Target::Backup(later) => format!("all before {}:{}", later.file, later.position),
        Target::Latest => "all that is stored".to_owned(),
    }
}
