//! Whom the outcome is told.

use crds::parts::{NotificationEvent, NotificationType, WebhookMethod};
use secrecy::SecretString;

/// Somebody to tell.
#[derive(Debug)]
pub struct Receiver {
    /// How to name it in warnings.
    pub name: String,
    /// Its protocol.
    pub type_: NotificationType,
    /// Its address, which is a secret.
    pub url: SecretString,
    /// How a webhook is asked.
    pub method: WebhookMethod,
    /// What a webhook is sent beside its own headers; their values may be secrets.
    pub headers: Vec<(String, SecretString)>,
    /// What it wants to hear.
    pub on: Vec<NotificationEvent>,
    /// The operator tells it of a failure, once that is final.
    pub operator_tells: bool,
}

impl Receiver {
    /// True if it wants to hear of `event`. A receiver of Success hears of a recovery as a success.
    pub fn wants(&self, event: NotificationEvent) -> bool {
        use NotificationEvent::{Recovery, Success};
        self.on.contains(&event) || event == Recovery && self.on.contains(&Success)
    }
}
