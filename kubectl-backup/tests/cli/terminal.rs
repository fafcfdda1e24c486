//! In a real pseudo-terminal: questions, the wizard, an interrupt, the bar. `script` of util-linux
//! makes the terminal and passes keys on.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup};

/// A program in a terminal of its own.
struct Terminal {
    child: Child,
    keys: std::process::ChildStdin,
    screen: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
    read: usize,
}

impl Terminal {
    fn start(config: &Config, args: &[&str]) -> Self {
        Self::start_after("", config, args)
    }

    /// Starts the program after other words of the shell, such as a width of the terminal.
    fn start_after(before: &str, config: &Config, args: &[&str]) -> Self {
        let quoted: Vec<String> = args.iter().map(|a| format!("'{a}'")).collect();
        let line = format!(
            "{before} exec {} {}",
            env!("CARGO_BIN_EXE_kubectl-backup"),
            quoted.join(" ")
        );
        let mut child = Command::new("/usr/bin/script")
            .args(["-qefc", &line, "/dev/null"])
            .env_clear()
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env("PATH", "/usr/bin:/bin")
            .env("KUBECONFIG", config.directory.path().join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        let mut out = child.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = screen.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = out.read(&mut buffer) {
                shown
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        Self {
            child,
            keys,
            screen,
            reader,
            read: 0,
        }
    }

    /// Waits until a text is shown that was not there before.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let screen = self.screen.lock().unwrap().clone();
            let fresh = screen.get(self.read..).unwrap_or_default();
            if let Some(at) = fresh.find(text) {
                self.read += at + text.len();
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{text:?} is not on the screen: {screen}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Answers a question.
    #[track_caller]
    fn answer(&mut self, question: &str, keys: &str) {
        self.expect(question);
        self.press(keys);
    }

    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        // Its end of the terminal is closed: the reader comes to an end.
        self.reader.join().unwrap();
        let screen = self.screen.lock().unwrap().clone();
        (code, screen)
    }
}

#[test]
fn consent_is_asked_and_no_is_no() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["delete", "--all"]);
    terminal.expect("This would delete mysqlbackup.batch.isekiro.com/shop.");
    terminal.answer("Do you want to continue?", "n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(2), "{screen}");
    assert!(fake.get("prod", "shop").is_some());
    let mut terminal = Terminal::start(&config, &["delete", "--all"]);
    terminal.answer("Do you want to continue?", "y");
    assert_eq!(terminal.end().0, Some(0));
    assert!(fake.get("prod", "shop").is_none());
}

#[test]
fn an_interrupt_in_a_question_brings_the_cursor_back() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["delete", "--all"]);
    terminal.answer("Do you want to continue?", "\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    let (shown, hidden) = (screen.rfind("\u{1b}[?25h"), screen.rfind("\u{1b}[?25l"));
    assert!(shown >= hidden, "the cursor stays hidden: {screen:?}");
    assert!(fake.get("prod", "shop").is_some());
}

#[test]
fn without_a_name_one_is_picked() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "crm",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["suspend"]);
    terminal.expect("Which one to suspend?");
    terminal.answer("mysqlbackup/shop", "shop");
    terminal.press("\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(fake.get("prod", "shop").unwrap()["spec"]["suspend"], true);
    assert_eq!(
        fake.get("prod", "crm").unwrap()["spec"].get("suspend"),
        None
    );
}

#[test]
fn the_wizard_ends_with_the_command_and_the_object() {
    let fake = Fake::start();
    fake.items("/api/v1/namespaces/prod/services", json!([
        { "metadata": { "name": "web", "namespace": "prod" }, "spec": { "ports": [{ "port": 80 }] } },
        { "metadata": { "name": "shop-db", "namespace": "prod" }, "spec": { "ports": [{ "port": 3306 }] } },
    ]));
    fake.items(
        "/api/v1/namespaces/prod/secrets",
        json!([{ "metadata": { "name": "shop-db" } }]),
    );
    fake.items(
        "/api/v1/namespaces/prod/persistentvolumeclaims",
        json!([{ "metadata": { "name": "backups" } }]),
    );
    fake.operate(|object| {
        let notes = object["metadata"]["annotations"].as_object()?;
        let (_, value) = notes
            .iter()
            .find(|(k, _)| k.starts_with("batch.isekiro.com/request-"))?;
        let request = crds::request::Request::parse(value.as_str()?).ok()?;
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"]["requests"] = json!([{
            "id": request.id, "action": request.action.as_str(), "state": "Succeeded",
            "message": "logged in, wrote and read",
        }]);
        Some(after)
    });
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["create", "mysql", "-i"]);
    terminal.answer("Name", "Shop\r");
    terminal.expect("use lower case letters");
    // Backspaces take the refused answer away.
    terminal.press("\u{7f}\u{7f}\u{7f}\u{7f}shop\r");
    terminal.answer("Database server", "\r");
    terminal.answer("Secret with username and password", "\r");
    terminal.answer("Databases, separated by commas", "shop,audit\r");
    terminal.expect("Time zone");
    terminal.press("\u{7f}\u{7f}\u{7f}Europe/Berlin\r");
    terminal.answer("When", "\r");
    terminal.expect("At 02:00 every day (Europe/Berlin)");
    terminal.answer("Is this right?", "y");
    terminal.answer("Store", "\r");
    terminal.answer("Directory on the volume", "../x\r");
    // A mistake is said at once, and the answer stays to be mended.
    terminal.expect("must not contain");
    terminal.press("\u{8}\u{8}\u{8}\u{8}shop\r");
    terminal.answer("Keep", "\r");
    terminal.answer("Encrypt to", "\r");
    terminal.expect("kind: MysqlBackup");
    terminal.expect("The same without questions:");
    terminal.expect("kubectl backup create mysql shop --host shop-db.prod --secret shop-db --databases shop,audit --schedule '0 2 * * *' --time-zone Europe/Berlin --pvc backups --path shop --retention keep-last=7,keep-daily=14");
    assert!(
        fake.seen().iter().all(|s| s.method == "GET"),
        "nothing is sent before the review"
    );
    terminal.answer("Create it?", "y");
    terminal.answer("Try database and store now?", "y");
    terminal.expect("logged in, wrote and read");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let spec = &fake.get("prod", "shop").unwrap()["spec"];
    assert_eq!(spec["source"]["host"], "shop-db.prod");
    assert_eq!(spec["source"]["databases"], json!(["shop", "audit"]));
    assert_eq!(spec["timeZone"], "Europe/Berlin");
    assert_eq!(
        spec["destination"]["volume"]["persistentVolumeClaim"]["claimName"],
        "backups"
    );
    assert_eq!(spec["retention"], json!({ "keepLast": 7, "keepDaily": 14 }));
}

/// Storages are offered beside claims.
#[test]
fn the_wizard_offers_the_storages_there_are() {
    let fake = Fake::start();
    fake.install("storages");
    fake.put(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Storage",
        "metadata": { "name": "nightly", "namespace": "prod" }, "spec": {},
    }));
    fake.items(
        "/api/v1/namespaces/prod/persistentvolumeclaims",
        json!([{ "metadata": { "name": "backups" } }]),
    );
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["create", "mysql", "shop", "-i"]);
    terminal.answer("Name", "\r");
    terminal.answer("Host", "db\r");
    terminal.answer("Port", "\r");
    terminal.answer("Secret with username and password", "login\r");
    terminal.answer("Databases, separated by commas", "\r");
    terminal.answer("Time zone", "\r");
    terminal.answer("When", "\r");
    terminal.answer("Is this right?", "y");
    terminal.expect("Store");
    terminal.expect("Storage nightly");
    // One below the claim.
    terminal.press("\u{1b}[B\r");
    terminal.answer("Keep", "\r");
    terminal.answer("Encrypt to", "\r");
    terminal.expect("kubectl backup create mysql shop --host db --secret login --schedule '0 2 * * *' --storage nightly --retention");
    terminal.answer("Create it?", "y");
    terminal.answer("Try database and store now?", "n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(
        fake.get("prod", "shop").unwrap()["spec"]["destination"],
        json!({ "storageRef": { "name": "nightly" } })
    );
}

fn running(fake: &Fake) {
    fake.put(backup("prod", "shop", json!({ "schedule": "@daily" }), json!({
        "observedGeneration": 1,
        "runs": [{ "name": "shop-2", "trigger": "Schedule", "result": "Running", "phase": "Dumping", "startTime": "2026-01-02T00:00:00Z" }],
    })));
    let state = json!({ "running": {} });
    fake.pod(json!({
        "metadata": { "name": "shop-2-a", "namespace": "prod", "creationTimestamp": "2026-01-02T00:00:00Z" },
        "spec": { "containers": [{ "name": "backup" }] },
        "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state }] },
    }), "{\"fields\":{\"event\":\"progress\",\"phase\":\"Dumping\",\"rawBytes\":641728512,\"bytesPerSecond\":44040192,\"percent\":34}}\n");
}

#[test]
fn a_bar_on_a_terminal_and_an_interrupt_that_detaches() {
    let fake = Fake::start();
    running(&fake);
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["wait", "shop"]);
    terminal.expect("Dumping  612MiB  34%  42MiB/s  eta 28s");
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(
        screen.contains(
            "Re-attach: kubectl backup wait shop-2   Cancel: kubectl backup cancel shop-2"
        ),
        "{screen}"
    );
    // In a pipe the same is a plain line.
    let ran = config.run(&["wait", "shop", "--timeout", "3s"]);
    assert_eq!(ran.code, Some(124));
    assert!(
        ran.err
            .contains("◎ Dumping  612MiB  34%  42MiB/s  eta 28s\n"),
        "{}",
        ran.err
    );
}

#[test]
fn colours_on_a_terminal() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "suspend": true }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let (code, screen) = Terminal::start(&config, &["list"]).end();
    assert_eq!(code, Some(0));
    assert!(
        screen.contains("\u{1b}[33mSuspended\u{1b}[0m"),
        "{screen:?}"
    );
}

#[test]
fn the_live_table_and_its_keys() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "crm",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let mut terminal = Terminal::start(&config, &["top"]);
    terminal.expect("> mysqlbackup/crm");
    terminal.press("j");
    terminal.expect("> mysqlbackup/shop");
    // Nothing is changed without a yes.
    terminal.press("s");
    terminal.expect("Suspend or resume mysqlbackup/shop? (y/n)");
    terminal.press("n");
    terminal.expect("> mysqlbackup/shop");
    assert_eq!(
        fake.get("prod", "shop").unwrap()["spec"].get("suspend"),
        None
    );
    terminal.press("s");
    terminal.expect("(y/n)");
    terminal.press("y");
    terminal.expect("mysqlbackup/shop suspended");
    assert_eq!(fake.get("prod", "shop").unwrap()["spec"]["suspend"], true);
    terminal.press("t");
    terminal.expect("Run mysqlbackup/shop now? (y/n)");
    terminal.press("y");
    terminal.expect("mysqlbackup/shop: run requested");
    terminal.press("d");
    terminal.expect("Name:          shop");
    terminal.expect("key goes back.");
    terminal.press("x");
    terminal.expect("> mysqlbackup/shop");
    terminal.press("q");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    // In a pipe it is the list, once.
    let ran = config.run(&["top"]).ok();
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
}

/// The same in all namespaces: each line, and what is asked, names its own.
#[test]
fn u17_the_live_table_of_all_namespaces() {
    let fake = Fake::start();
    for namespace in ["eu", "us"] {
        fake.put(backup(
            namespace,
            "shop",
            json!({ "schedule": "@daily" }),
            Value::Null,
        ));
    }
    let config = Config::new(&fake);
    let mut terminal = Terminal::start_after("stty rows 24 cols 120;", &config, &["top", "-A"]);
    terminal.expect("> eu");
    terminal.press("j");
    terminal.expect("> us");
    terminal.press("s");
    terminal.expect("Suspend or resume mysqlbackup/shop in namespace us? (y/n)");
    terminal.press("y");
    terminal.expect("suspended");
    terminal.press("q");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(fake.get("us", "shop").unwrap()["spec"]["suspend"], true);
    assert_eq!(fake.get("eu", "shop").unwrap()["spec"].get("suspend"), None);
}

#[test]
fn u17_a_narrow_terminal_loses_columns_and_never_the_name_or_the_state() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "suspend": true }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let titles = |columns: u16, args: &[&str]| {
        let before = format!("stty rows 24 cols {columns};");
        let (code, screen) = Terminal::start_after(&before, &config, args).end();
        assert_eq!(code, Some(0), "{screen}");
        let line = screen.lines().next().unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let all = "NAME SCHEDULE ZONE STATUS LAST-RUN RESULT NEXT-RUN AGE";
    assert_eq!(titles(160, &["list"]), all);
    assert_eq!(
        titles(60, &["list"]),
        "NAME STATUS LAST-RUN RESULT NEXT-RUN"
    );
    assert_eq!(titles(10, &["list"]), "NAME STATUS RESULT");
    // Who asks for everything gets it, and a pipe has no width.
    assert!(titles(60, &["list", "-o", "wide"]).starts_with(all.trim_end_matches(" AGE")));
    let piped = config.run(&["list"]).ok().out;
    assert_eq!(
        piped
            .lines()
            .next()
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        all
    );
}

#[test]
fn u17_colours_in_describe_and_doctor_on_a_terminal_alone() {
    let fake = Fake::start();
    running(&fake);
    let mut object = fake.get("prod", "shop").unwrap();
    object["status"]["runs"] = json!([{ "name": "shop-1", "trigger": "Schedule", "result": "Failed", "reason": "NoSpace", "message": "no space left" }]);
    object["status"]["conditions"] = json!([{ "type": "Ready", "status": "False", "reason": "NoSpace", "message": "no space left", "lastTransitionTime": "2026-01-02T00:00:00Z" }]);
    fake.put(object);
    let config = Config::new(&fake);
    let page = |before: &str, verb: &[&str]| Terminal::start_after(before, &config, verb).end().1;
    let described = page("", &["describe", "shop"]);
    assert!(
        described.contains("\u{1b}[31m✖\u{1b}[0m Active")
            && described.contains("\u{1b}[31mFalse\u{1b}[0m"),
        "{described:?}"
    );
    assert!(page("", &["doctor"]).contains("\u{1b}[32m✔\u{1b}[0m configuration"));
    for verb in [["describe", "shop"].as_slice(), &["doctor"]] {
        assert!(
            !page("export NO_COLOR=1;", verb).contains("\u{1b}["),
            "{verb:?}"
        );
        assert!(!config.run(verb).out.contains("\u{1b}["), "{verb:?}");
    }
}

/// Words for people, JSON for programs, and either where it is asked for.
#[test]
fn u17_a_log_is_read_by_people_on_a_terminal_and_by_programs_in_a_pipe() {
    let fake = Fake::start();
    running(&fake);
    let line = r#"{"timestamp":"2026-01-02T12:00:03.5Z","level":"INFO","event":"phase","phase":"Dumping"}"#;
    let state = json!({ "terminated": { "exitCode": 0 } });
    fake.pod(json!({
        "metadata": { "name": "shop-2-a", "namespace": "prod", "creationTimestamp": "2026-01-02T00:00:00Z" },
        "spec": { "containers": [{ "name": "backup" }] },
        "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state }] },
    }), &format!("{line}\n"));
    let config = Config::new(&fake);
    let words = "12:00:03Z Dumping";
    let screen = |args: &[&str]| Terminal::start(&config, args).end().1;
    assert_eq!(screen(&["logs", "shop"]).trim(), words);
    assert_eq!(screen(&["logs", "shop", "-o", "json"]).trim(), line);
    assert_eq!(config.run(&["logs", "shop"]).ok().out.trim(), line);
    assert_eq!(
        config.run(&["logs", "shop", "-o", "text"]).ok().out.trim(),
        words
    );
    let page = config.run(&["describe", "shop"]).ok().out;
    assert!(page.contains(&format!("  {words}\n")), "{page}");
}
