//! What the documents tell people to type: each `kubectl backup` command runs, each `make` target,
//! path and link is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::rights::{cluster, object};
use super::{Ran, bare};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// docs/cli.md.
pub fn cli_md() -> String {
    read(&top().join("docs/cli.md"))
}

/// Files below a directory whose names end so.
fn below(directory: &str, end: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (vec![], vec![top().join(directory)]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_str().unwrap().ends_with(end) {
                found.push(path);
            }
        }
    }
    found
}

/// The documents that people wrote: docs/cli.md is made from the program.
fn documents() -> Vec<(String, String)> {
    let mut paths = below("docs", ".md");
    paths.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|n| top().join(n)));
    paths.retain(|path| !path.ends_with("docs/cli.md"));
    assert!(paths.len() > 10, "{paths:?}");
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|p| (name(p), read(p))).collect()
}

/// A piece of code in a document.
struct Code {
    text: String,
    fenced: bool,
}

/// Lines of code blocks, without comments, and code in running text.
fn code(document: &str) -> Vec<Code> {
    let mut all = vec![];
    for (index, part) in document.split("```").enumerate() {
        if index % 2 == 1 {
            let (_, block) = part.split_once('\n').unwrap_or_default();
            let block = block.replace("\\\n", " ");
            all.extend(block.lines().map(|line| Code {
                text: line.split(" #").next().unwrap_or_default().trim().into(),
                fenced: true,
            }));
        } else {
            let spans = part.split('`').skip(1).step_by(2);
            all.extend(spans.map(|span| Code {
                text: span.split_whitespace().collect::<Vec<_>>().join(" "),
                fenced: false,
            }));
        }
    }
    all
}

/// The words of a command line, as a shell reads them.
pub fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (vec![], None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ' | '\t', None) => all.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

/// What stands for something in a document, as the thing itself.
fn filled(word: &str) -> String {
    match word {
        "NAME" | "orders" => "shop".into(),
        "NS" => "prod".into(),
        "RUN" => "shop-2".into(),
        _ => word.to_owned(),
    }
}

/// Runs a command of a document against a server that has what it names.
fn run(args: &[String]) -> Ran {
    let (fake, config) = cluster();
    let nightly = args.iter().any(|a| a == "backup/nightly");
    for kind in ["backups", "databases", "storages"] {
        if matches!(args[0].as_str(), "import" | "create") || nightly {
            fake.install(kind);
        }
    }
    if nightly {
        fake.put(json!({
            "apiVersion": "gobackup.io/v1", "kind": "Backup",
            "metadata": { "name": "nightly", "namespace": "prod", "uid": "u" }, "spec": {},
        }));
    }
    let result = if args[0] == "cancel" {
        "Running"
    } else {
        "Succeeded"
    };
    fake.put(object(result));
    fake.ended_pod("shop-2-a");
    let home = config.directory.path();
    let model = "models: {m: {databases: {d: {type: mysql, host: h, database: x}}, storages: {s: {type: s3, bucket: b}}}}\n";
    std::fs::write(home.join("gobackup.yml"), model).unwrap();
    let shop = "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {name: shop}\nspec: {schedule: '@daily', image: mine}\n";
    std::fs::write(home.join("shop.yaml"), shop).unwrap();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = config.command(&args);
    Ran::of(command.arg("--yes").current_dir(home).output().unwrap())
}

#[test]
fn each_command_of_the_documents_runs() {
    let mut commands = BTreeSet::new();
    for (file, text) in documents() {
        for code in code(&text) {
            if let Some(line) = code.text.strip_prefix("kubectl backup ") {
                let args: Vec<String> = words(line).iter().map(|w| filled(w)).collect();
                commands.insert((args, code.fenced, file.clone()));
            }
        }
    }
    assert!(commands.len() > 20, "{commands:?}");
    for (args, fenced, file) in commands {
        // A verb that is only spoken of.
        if args.len() == 1 && !fenced {
            let ran = Ran::of(bare().args(&args).arg("--help").output().unwrap());
            assert_eq!(ran.code, Some(0), "{file}: {args:?} {ran:?}");
            continue;
        }
        let ran = run(&args);
        let good = match args[0].as_str() {
            // It finds what this server lacks.
            "doctor" => matches!(ran.code, Some(0 | 1)),
            // It goes through exec, which this server does not speak: tests/e2e downloads.
            "binlog" | "download" | "show" => ran.code != Some(2),
            _ => ran.code == Some(0),
        };
        assert!(good, "{file}: kubectl backup {args:?} {ran:#?}");
    }
}

/// Usage lines of docs/cli.md have brackets, examples have none.
#[test]
fn u16_each_example_of_the_help_runs() {
    let text = cli_md();
    let mut seen = 0;
    for code in code(&text).iter().filter(|code| code.fenced) {
        let Some(line) = code.text.strip_prefix("kubectl backup ") else {
            continue;
        };
        if line.contains(['[', '<']) {
            continue;
        }
        seen += 1;
        let args = words(line);
        let ran = run(&args);
        let good = match args[0].as_str() {
            "doctor" | "diff" => matches!(ran.code, Some(0 | 1)),
            "health" => matches!(ran.code, Some(0..=3)) && !ran.err.contains("error:"),
            // It goes through exec, which this server does not speak: tests/e2e downloads.
            "binlog" | "download" | "show" => ran.code != Some(2),
            _ => ran.code == Some(0),
        };
        assert!(good, "kubectl backup {args:?} {ran:#?}");
    }
    assert!(seen > 35, "{seen}");
}

/// A line with `x` for each `{name}` of Rust and each `{{ $labels.name }}` of an alert.
fn without_braces(line: &str) -> String {
    let (mut plain, mut depth) = (String::new(), 0);
    for c in line.chars() {
        match c {
            '{' => {
                if depth == 0 {
                    plain.push('x');
                }
                depth += 1;
            }
            '}' => depth -= 1,
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Commands that programs and alerts advise, cut where the sentence goes on.
fn advised(text: &str) -> Vec<String> {
    let mut all = vec![];
    for rest in text.split("kubectl backup ").skip(1) {
        let line = without_braces(rest.lines().next().unwrap_or_default());
        let ends = ['"', '`', ';', ')', '\\', '>', '.', ','];
        let sentence = line.split(ends).next().unwrap_or_default();
        // Verb, flags with a value, and names: the next word is the sentence's.
        let words: Vec<&str> = sentence.split(' ').collect();
        let belongs = |at: usize| {
            let word = words[at];
            at == 0
                || word.starts_with('-')
                || word == "x"
                || word.contains('/')
                || (words[at - 1].len() == 2 && words[at - 1].starts_with('-'))
        };
        let length = (0..words.len()).take_while(|at| belongs(*at)).count();
        let command = &words[..length];
        if command[0] != "x" && !command[0].is_empty() {
            all.push(command.join(" "));
        }
    }
    all
}

#[test]
fn each_command_that_is_advised_exists() {
    let mut files = below("deploy/alerts", "rules.yaml");
    for program in [
        "crds/src",
        "operator/src",
        "runner/src",
        "kubectl-backup/src",
    ] {
        files.extend(below(program, ".rs"));
    }
    let commands: BTreeSet<String> = files.iter().flat_map(|f| advised(&read(f))).collect();
    assert!(commands.len() > 20, "{commands:#?}");
    for command in commands {
        let ran = Ran::of(
            bare()
                .args(command.split(' '))
                .arg("--help")
                .output()
                .unwrap(),
        );
        assert_eq!(ran.code, Some(0), "{command}: {ran:#?}");
    }
}

#[test]
fn each_make_target_is_there() {
    let makefile = read(&top().join("Makefile"));
    let mut seen = 0;
    for (file, text) in documents() {
        for code in code(&text) {
            let Some(line) = code.text.strip_prefix("make ") else {
                continue;
            };
            for word in words(line) {
                seen += 1;
                let there = match word.split_once('=') {
                    Some((name, _)) => {
                        makefile.contains(&format!("$({name})"))
                            || makefile.contains(&format!("{name}="))
                    }
                    None => makefile.lines().any(|l| l.starts_with(&format!("{word}:"))),
                };
                assert!(there, "{file}: make {line}: {word}");
                let value = word.split_once('=').map_or("", |(_, value)| value);
                if value.starts_with("deploy/") {
                    assert!(top().join(value).exists(), "{file}: {value}");
                }
            }
        }
    }
    assert!(seen > 10, "{seen}");
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn each_path_and_link_is_there() {
    let places = [
        "crds/",
        "deploy/",
        "docs/",
        "krew/",
        "kubectl-backup/",
        "operator/",
        "runner/",
        "tests/",
        ".ci/",
        ".github/",
    ];
    let (mut paths, mut links) = (0, 0);
    for (file, text) in documents() {
        for code in code(&text) {
            for word in words(&code.text) {
                let plain = word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
                if plain && places.iter().any(|place| word.starts_with(place)) {
                    paths += 1;
                    assert!(top().join(&word).exists(), "{file}: {word}");
                }
            }
        }
        let here = if file
            .to_uppercase()
            .starts_with(file.trim_end_matches(".md"))
        {
            top()
        } else {
            top().join("docs")
        };
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.starts_with("http") {
                continue;
            }
            links += 1;
            let (path, section) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                text.clone()
            } else {
                read(&here.join(path))
            };
            let there = section.is_empty()
                || target
                    .lines()
                    .any(|l| l.starts_with('#') && anchor(l) == section);
            assert!(there, "{file}: {link}");
        }
    }
    assert!(paths > 10 && links > 50, "{paths} paths, {links} links");
}
