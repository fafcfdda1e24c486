//! How a login by the kubeconfig went wrong, without what a helper printed: its output is a token.

use crds::secret::{Scrub, mask, parts};
use kube::client::AuthError;
use kube::config::ExecConfig;

/// Most characters of a helper's own words.
const WORDS: usize = 500;

/// The program that a kubeconfig names to get credentials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Helper {
    /// Its name or path; without arguments, which may hold secrets.
    pub(crate) command: String,
    /// What the kubeconfig says of how to get it.
    pub(crate) install_hint: Option<String>,
}

impl Helper {
    /// The helper of a user, if it has one.
    pub(crate) fn of(exec: Option<&ExecConfig>) -> Self {
        let hint = exec.and_then(|e| e.install_hint.as_deref());
        Self {
            command: exec.and_then(|e| e.command.clone()).unwrap_or_default(),
            install_hint: hint
                .map(str::trim)
                .filter(|h| !h.is_empty())
                .map(str::to_owned),
        }
    }

    fn name(&self) -> String {
        if self.command.is_empty() {
            "the kubeconfig's helper".to_owned()
        } else {
            format!("the kubeconfig's helper {:?}", self.command)
        }
    }
}

/// The login among the causes of an error.
pub(crate) fn login<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a AuthError> {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if let Some(login) = e.downcast_ref() {
            return Some(login);
        }
        if let Some(kube::Error::Auth(login)) = e.downcast_ref() {
            return Some(login);
        }
        cause = e.source();
    }
    None
}

/// What failed and why, and what to do.
pub(crate) fn words(error: &AuthError, helper: &Helper) -> (String, String) {
    let name = helper.name();
    match error {
        AuthError::AuthExecStart(e) => (
            format!("{name} can't be started: {e}"),
            helper.install_hint.clone().unwrap_or_else(|| {
                "install it, or correct users[].user.exec.command in the kubeconfig".to_owned()
            }),
        ),
        AuthError::AuthExecRun { out, .. } => {
            let said = said(&out.stdout, &out.stderr);
            let hint = "run it by hand; its output is not shown, as it may hold a token";
            (
                format!("{name} ended with {}{said}", out.status),
                hint.to_owned(),
            )
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => (
            format!("{name} gave no ExecCredential with a status"),
            "run it by hand; its output is not shown, as it may hold a token".to_owned(),
        ),
        AuthError::AuthExec(text) if text.contains("not supported") => (
            mask(text),
            "correct users[].user in the kubeconfig".to_owned(),
        ),
        AuthError::AuthExec(_) | AuthError::ParseTokenKey(_) => (
            "the kubeconfig's auth-provider gave no token".to_owned(),
            "use an exec helper in its place: users[].user.exec in the kubeconfig".to_owned(),
        ),
        other => (
            mask(&crds::text::chain(other)),
            "correct users[].user in the kubeconfig".to_owned(),
        ),
    }
}

/// The helper's own words, without what it printed where the token belongs.
fn said(stdout: &[u8], stderr: &[u8]) -> String {
    let printed = String::from_utf8_lossy(stdout);
    // A token within a document or a sentence is a word of it.
    let words = printed.split(|c: char| c.is_whitespace() || "\"'{}[],;".contains(c));
    let secrets = parts(&printed)
        .into_iter()
        .chain(words.filter(|w| w.len() >= 8).map(str::to_owned));
    let text = Scrub::new(secrets).clean(&String::from_utf8_lossy(stderr));
    let text: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let text = crds::report::clean(&text.join(" / "), WORDS);
    if text.is_empty() {
        String::new()
    } else {
        format!(" and said: {text}")
    }
}

/// An error with its causes in one line; of a helper that failed, without what it printed.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    match login(error) {
        Some(login) => words(login, &Helper::default()).0,
        None => mask(&crds::text::chain(error)),
    }
}
