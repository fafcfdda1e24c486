//! Which engine makes a dump: what the user asked for, what the user's arguments need, and what server and tables are
//! known to allow. PURE.

use crds::dump_arguments::Arguments;
use crds::parts::Engine;

use crate::failure::Failure;
use crate::settings::Source;

/// The engine of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The runner itself.
    Native,
    /// The dump client, for this reason.
    Client(String),
}

/// Chooses. `client_image` is an image that the object names for its client; `unproven` is why server and tables are not
/// known to be dumped whole by the native engine, `None` where they are.
///
/// # Errors
/// What was asked for does not go together, or can't be had.
pub fn choose(
    source: &Source,
    client_image: Option<&str>,
    unproven: Option<&str>,
) -> Result<Chosen, Failure> {
    let arguments = Arguments::new(&source.extra_args).against_native();
    let arguments = arguments.map(|w| format!("{w} of MYSQLDUMP_ARGS or spec.source.extraArgs"));
    if source.engine == Some(Engine::Native) {
        if let Some(why) = arguments {
            return Err(Failure::settings(format!(
                "spec.source.engine is Native, and {why}: leave the arguments or the engine out"
            )));
        }
        return match unproven {
            None => Ok(Chosen::Native),
            Some(why) => Err(Failure::settings(format!(
                "spec.source.engine is Native, which is not known to dump this whole: {why}; leave the engine out, or set Client"
            ))),
        };
    }
    let why = match (source.engine, arguments, client_image, unproven) {
        (Some(Engine::Client), ..) => "spec.source.engine says so".to_owned(),
        (_, Some(arguments), ..) => arguments,
        (_, _, Some(image), _) => {
            format!(
                "spec.source.clientImage names a client, of {image}; set spec.source.engine to Native to use it for restores alone"
            )
        }
        (.., Some(why)) => why.to_owned(),
        _ => return Ok(Chosen::Native),
    };
    if source.accounts {
        return Err(Failure::settings(format!(
            "spec.source.accounts is set, and the dump client, which can't dump accounts, would be taken: {why}; remove one of both"
        )));
    }
    Ok(Chosen::Client(why))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::settings::Settings;

    fn source(engine: Option<Engine>, args: &str) -> Source {
        let env = [("HOST", "h"), ("USERNAME", "bk"), ("MYSQLDUMP_ARGS", args)];
        let env = env.map(|(k, v)| (k.to_owned(), v.to_owned()));
        let mut source = Settings::parse(&env.into(), &|_| Err("none".into()))
            .source
            .unwrap();
        source.engine = engine;
        source
    }

    #[test]
    fn the_client_is_taken_for_a_reason_that_is_named() {
        use Engine::{Client, Native};
        for (engine, args, image, unproven, expected) in [
            (None, "", None, None, "Native"),
            (None, "--quick --skip-lock-tables", None, None, "Native"),
            (
                None,
                "--where=id<5",
                None,
                None,
                "only the dump client knows --where=id<5",
            ),
            (None, "--skip-triggers", None, None, "--skip-triggers"),
            (
                None,
                "",
                Some("mysql:9"),
                None,
                "clientImage names a client, of mysql:9",
            ),
            (
                None,
                "",
                None,
                Some("version 12 is new"),
                "version 12 is new",
            ),
            (Some(Client), "", None, None, "spec.source.engine says so"),
            (Some(Native), "--hex-blob", Some("mysql:9"), None, "Native"),
            (
                Some(Native),
                "--no-data",
                None,
                None,
                "error: spec.source.engine is Native, and only",
            ),
            (
                Some(Native),
                "",
                None,
                Some("table a.b"),
                "error: spec.source.engine is Native, which",
            ),
        ] {
            let source = source(engine, args);
            let said = match choose(&source, image, unproven) {
                Ok(Chosen::Native) => "Native".to_owned(),
                Ok(Chosen::Client(why)) => why,
                Err(e) => format!("error: {}", e.message),
            };
            assert!(
                said.contains(expected),
                "{engine:?} {args} {image:?} {unproven:?}: {said}"
            );
            assert!((said == "Native") == (expected == "Native"), "{said}");
        }
    }

    #[test]
    fn accounts_are_never_left_out_in_silence() {
        let mut with = source(None, "");
        with.accounts = true;
        assert_eq!(choose(&with, None, None).unwrap(), Chosen::Native);
        let e = choose(&with, None, Some("table a.b has a type that is new")).unwrap_err();
        assert_eq!(e.exit_code, crds::report::exit::SETTINGS);
        assert!(
            e.message.contains("spec.source.accounts") && e.message.contains("a.b"),
            "{e}"
        );
    }
}
