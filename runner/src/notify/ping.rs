//! Dead-man pings: a GET of the URL on success, of `<url>/fail` on failure, as healthchecks.io and
//! its kin take them.

use crate::notify::Notice;

pub(super) fn url(url: &str, notice: &Notice) -> String {
    let url = url.trim();
    if notice.good() {
        return url.to_owned();
    }
    match url.split_once('?') {
        Some((path, query)) => format!("{}/fail?{query}", path.trim_end_matches('/')),
        None => format!("{}/fail", url.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::parts::NotificationEvent;

    #[test]
    fn a_failure_has_its_own_address() {
        let notice = |event| Notice {
            event,
            title: String::new(),
            lines: vec![],
            body: serde_json::Value::Null,
        };
        let good = notice(NotificationEvent::Recovery);
        let bad = notice(NotificationEvent::Failure);
        assert_eq!(
            url("https://hc.example/u1\n", &good),
            "https://hc.example/u1"
        );
        assert_eq!(
            url("https://hc.example/u1", &bad),
            "https://hc.example/u1/fail"
        );
        assert_eq!(
            url("https://hc.example/u1/?a=1", &bad),
            "https://hc.example/u1/fail?a=1"
        );
    }
}
