//! Help, usage and version.

use super::fake::Fake;
use super::{Config, Ran, bare};

#[test]
fn short_help() {
    let ran = Ran::of(bare().arg("-h").output().unwrap()).ok();
    insta::assert_snapshot!(ran.out, @r"
    ");
}

#[test]
fn a_usage_error_is_2() {
    for args in [
        &["nonsense"][..],
        &["list", "--nonsense"],
        &["create"],
        &["schedule"],
    ] {
        let ran = Ran::of(bare().args(args).output().unwrap());
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(2), ""),
            "{args:?} {ran:?}"
        );
    }
}

#[test]
fn versions_of_both_sides() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(&["version"]).ok();
    assert!(
        ran.out.contains(concat!("v", env!("CARGO_PKG_VERSION"))) && ran.out.contains("v1.35.4"),
        "{}",
        ran.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&config.run(&["version", "--client", "-o", "json"]).ok().out).unwrap();
    assert_eq!(json["clientVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json.get("serverVersion"), None);
}
