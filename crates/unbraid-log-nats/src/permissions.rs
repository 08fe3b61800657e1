//! What the user may not do, found out at the start.
//!
//! A server drops what a user may not send, and says so in a message of its own. Without this check the log would only look
//! like one that does not answer.

use async_nats::{Event, ServerError};
use futures::future::join_all;
use unbraid_log::StreamId;

use crate::{
    NatsError,
    api::{Api, Store},
    names::Names,
};

/// What a server has refused for want of a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    action: &'static str,
    subject: String,
}

impl Refusal {
    /// Reads the message of a server: `Permissions Violation for Publish to "a.b"`.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Event::ServerError(ServerError::Other(text)) = event else {
            return None;
        };
        let refused = text.strip_prefix("Permissions Violation for ")?;
        let (action, subject) = refused.split_once(" to ")?;
        let action = match action {
            "Publish" => "publish",
            "Subscription" => "subscribe",
            _ => return None,
        };
        let subject = subject.trim_start_matches('"').split('"').next();
        Some(Self {
            action,
            subject: subject.unwrap_or_default().to_owned(),
        })
    }

    pub(crate) fn into_error(self, needed: String) -> NatsError {
        NatsError::NotPermitted {
            action: self.action,
            subject: self.subject,
            needed,
        }
    }
}

/// Does, without an effect, what a log does later. The connection notes what is refused for want of a permission; every other
/// result is that of a later call.
pub(crate) async fn try_all(api: &Api, names: &Names) {
    let Ok(id) = StreamId::random() else {
        return;
    };
    let _subscribed = api.client().subscribe(names.live(&id)).await;
    let stored = names.stored(id.as_str());
    join_all(stored.map(|subject| api.publish_nowhere(subject))).await;
    let _none = api.last(Store::Log, names.records(&id)).await;
    let _none = api.last(Store::Values, names.meta(&id)).await;
    let _none = api.purge(Store::Log, names.records(&id), 1).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<(&'static str, String)> {
        let event = Event::ServerError(ServerError::Other(text.to_owned()));
        Refusal::of(&event).map(|refusal| (refusal.action, refusal.subject))
    }

    #[test]
    fn a_missing_permission_is_read_from_the_message_of_the_server() {
        for (text, action, subject) in [
            (r#"Publish to "unbraid.log.a""#, "publish", "unbraid.log.a"),
            (r#"Subscription to "_INBOX.a.*""#, "subscribe", "_INBOX.a.*"),
            (r#"Subscription to "a" using queue "b""#, "subscribe", "a"),
        ] {
            let text = format!("Permissions Violation for {text}");
            assert_eq!(refusal(&text), Some((action, subject.to_owned())));
        }
        for text in ["", "maximum connections exceeded", "Permissions Violation"] {
            assert_eq!(refusal(text), None, "{text}");
        }
        assert_eq!(Refusal::of(&Event::Connected), None);
    }
}
