#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use super::*;
use proptest::prelude::*;

#[test]
fn s2_secrets_vanish_the_longest_first_and_short_ones_as_words() {
    let scrub = Scrub::new(["S3cr3t".into(), "S3cr3t-marker".into(), "ab".into()]);
    assert_eq!(
        scrub.clean("x S3cr3t-marker y S3cr3t about 'ab', ab"),
        "x *** y *** about '***', ***"
    );
    let scrub = Scrub::new(["a%".into(), "x".into()]);
    assert_eq!(
        scrub.clean("said 'a%25' YSU= eA== 78 6125 max"),
        "said '***' *** *** *** *** max"
    );
}

/// The forms were made by other programs: base64 and xxd of coreutils, Python's urllib, json and
/// shlex, PHP's addslashes and htmlspecialchars.
#[test]
fn s2_every_form_vanishes() {
    let secret = "p\"a'ss\\wo/rd +ü&%";
    let scrub = Scrub::new([secret.to_owned()]);
    for form in [
        secret,
        "p%22a%27ss%5Cwo%2Frd%20%2B%C3%BC%26%25",
        "p%22a%27ss%5cwo%2frd%20%2b%c3%bc%26%25",
        "p%22a'ss%5Cwo/rd+%2B%C3%BC%26%25",
        "p%2522a%2527ss%255Cwo%252Frd%2520%252B%25C3%25BC%2526%2525",
        "p\\\"a'ss\\\\wo/rd +\\u00fc&%",
        "p\\\"a'ss\\\\wo\\/rd +\\u00FC\\u0026%",
        "p\\\\\\\"a'ss\\\\\\\\wo/rd +\\\\u00fc&%",
        "'p\"a'\"'\"'ss\\wo/rd +ü&%'",
        "'p\"a'\\''ss\\wo/rd +ü&%'",
        "p\"\"a'ss\\wo/rd +ü&%",
        "p\"a''ss\\\\wo/rd +ü&%%",
        "p&quot;a&#039;ss\\wo/rd +ü&amp;%",
        "p&#34;a&#x27;ss\\wo/rd +&#252;&amp;%",
        "7022612773735c776f2f7264202bc3bc2625",
        "7022612773735C776F2F7264202BC3BC2625",
        "70:22:61:27:73:73:5c:77:6f:2f:72:64:20:2b:c3:bc:26:25",
        "cCJhJ3NzXHdvL3JkICvDvCYl",
    ] {
        let shown = scrub.clean(&format!("it said {form}, and ended"));
        for part in ["a'ss", "ss\\", "rd", "73", "CJhJ", "NzX", "%22"] {
            assert!(!shown.contains(part), "{form}: {shown}");
        }
        assert!(
            shown.starts_with("it said ") && shown.ends_with(", and ended"),
            "{form}: {shown}"
        );
    }
}

#[test]
fn s2_base64_vanishes_wherever_it_begins() {
    let scrub = Scrub::new(["S3cr3t-marker".to_owned()]);
    // printf 'bk:S3cr3t-marker' | base64, and with one, two, three letters before, one after.
    for form in [
        "Yms6UzNjcjN0LW1hcmtlcg==",
        "YTpTM2NyM3QtbWFya2Vy",
        "YWI6UzNjcjN0LW1hcmtlcg",
        "YWJjOlMzY3IzdC1tYXJrZXIK",
        "UzNjcjN0LW1hcmtlcg==",
    ] {
        let shown = scrub.clean(&format!("Authorization={form} next"));
        assert!(!shown.contains(&form[4..12]), "{form}: {shown}");
    }
    // The alphabet of URLs: printf '>>>???S3cr' | base64 has + and /.
    let scrub = Scrub::new([">>>???".to_owned()]);
    assert_eq!(scrub.clean("x Pj4-Pz8_ y Pj4+Pz8/ z"), "x *** y *** z");
}

#[test]
fn s1_the_parts_of_a_value_are_secrets_too() {
    for (value, part) in [
        ("mysql://root:S3cr3t-1@db:3306/shop", "S3cr3t-1"),
        ("root:S3cr3t-1@tcp(db:3306)/shop", "S3cr3t-1"),
        ("postgres://u:S3%2Fcr3t@h/d", "S3/cr3t"),
        ("https://hook.example/services/T0/B0/S3cr3t-1\n", "S3cr3t-1"),
        (
            "https://hook.example/send?key=1&access_token=S3cr3t-1",
            "S3cr3t-1",
        ),
        ("host=db user=u password=S3cr3t-1 dbname=x", "S3cr3t-1"),
        (
            "# created\n# public key: age1x\nAGE-SECRET-KEY-1QQQ\n",
            "AGE-SECRET-KEY-1QQQ",
        ),
        (
            "{\"type\": \"service_account\", \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nS3cr3t-line\\n-----END PRIVATE KEY-----\\n\"}",
            "S3cr3t-line",
        ),
    ] {
        assert!(
            parts(value).iter().any(|p| p == part),
            "{value}: {:?}",
            parts(value)
        );
    }
}

#[test]
fn debug_shows_no_secret() {
    assert_eq!(
        format!("{:?}", Scrub::new(["S3cr3t-marker".into()])),
        "Scrub(1 secrets)"
    );
}

proptest! {
    /// Any text, any secret, any mix of ways of writing each character: nothing of it is left.
    #[test]
    fn s2_no_mix_of_forms_is_shown(
        secret in "[a-zA-Z0-9\"'\\\\ %&/+=ü€😀\n]{4,20}",
        ways in proptest::collection::vec(0..6usize, 20),
        before in "[a-z ,.]{0,12}", after in "[a-z ,.]{0,12}",
    ) {
        let mut written = String::new();
        for (c, way) in secret.chars().zip(&ways) {
            let mut utf8 = [0; 4];
            let raw = c.encode_utf8(&mut utf8);
            match way {
                1 => raw.bytes().for_each(|b| written.push_str(&format!("%{b:02x}"))),
                2 => raw.bytes().for_each(|b| written.push_str(&format!("%{b:02X}"))),
                3 => { let text = serde_json::to_string(raw).unwrap(); written.push_str(&text[1..text.len() - 1]); }
                4 => written.push_str(&format!("&#{};", u32::from(c))),
                5 => { let mut units = [0; 2]; for u in c.encode_utf16(&mut units) { written.push_str(&format!("\\u{u:04x}")); } }
                _ => written.push_str(raw),
            }
        }
        let scrub = Scrub::new([secret.clone()]);
        let shown = scrub.without_known(&format!("{before}|{written}|{after}"));
        prop_assert!(!shown.contains(&written), "{}: {}", written, shown);
        prop_assert!(shown.contains("***"));
    }

    #[test]
    fn s2_any_text_can_be_scrubbed(text in "\\PC{0,200}", secret in "\\PC{1,12}") {
        let shown = Scrub::new([secret.clone()]).clean(&text);
        prop_assert!(secret.chars().count() < 4 || "***".contains(&secret) || MASK.contains(&secret) || !shown.contains(&secret));
    }
}
