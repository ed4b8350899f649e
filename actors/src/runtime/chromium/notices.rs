//! What a Chromium does by itself, as its Space records it: redacted and bounded here.

use browser::Notice as Seen;
use eventlog::{Json, Redactor};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::json;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tracing::warn;

use super::{DETAILS_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::space::Notice;

/// The rule by which a page is taken away that came to an address of a scheme that no page may show.
const SCHEME_RULE: &str = "scheme";

/// The notices of a browser. `redactor` is asked for each: it learns what was typed.
pub(super) fn of(
    seen: Receiver<Seen>,
    redactor: impl Fn() -> Redactor + Send + 'static,
) -> BoxStream<'static, Notice> {
    stream::unfold((seen, redactor), |(mut seen, redactor)| async move {
        loop {
            match seen.recv().await {
                Ok(notice) => {
                    let notice = recorded(notice, &redactor());
                    return Some((notice, (seen, redactor)));
                }
                // The rules record a bounded number anyway; a page that floods does not get to say more.
                Err(RecvError::Lagged(left_out)) => {
                    warn!(left_out, "Notices of a browser were left out.");
                }
                Err(RecvError::Closed) => return None,
            }
        }
    })
    .boxed()
}

fn recorded(seen: Seen, redactor: &Redactor) -> Notice {
    match seen {
        Seen::Dialog { number, tab, dialog } => {
            let mut shown = json!({ "id": number, "tab": tab });
            if let (Some(shown), Ok(Json::Object(fields))) =
                (shown.as_object_mut(), serde_json::to_value(&dialog))
            {
                shown.extend(fields);
            }
            Notice::DialogOpened { dialog: redactor.bounded_json(shown, DETAILS_BYTES_MAX) }
        }
        Seen::Blocked { tab: _, url } => Notice::Blocked {
            rule: SCHEME_RULE.to_owned(),
            target: redactor.bounded_text(&url, MESSAGE_BYTES_MAX),
        },
    }
}

#[cfg(test)]
mod tests {
    use browser::DialogInfo;

    use super::*;

    #[tokio::test]
    async fn a_dialog_is_recorded_with_its_id_type_and_text_and_without_what_was_typed() {
        let (sender, seen) = tokio::sync::broadcast::channel(4);
        let mut notices = of(seen, || Redactor::with_known(["hunter2!".to_owned()]));
        let dialog = |kind: &str, message: &str, answered| DialogInfo {
            kind: kind.to_owned(),
            message: message.to_owned(),
            default_prompt: None,
            answered,
        };
        let tab = serde_json::from_value(json!("t1")).expect("a tab");
        sender
            .send(Seen::Dialog { number: 1, tab, dialog: dialog("confirm", "hunter2! sure?", false) })
            .expect("heard");
        sender
            .send(Seen::Dialog { number: 2, tab, dialog: dialog("beforeunload", "", true) })
            .expect("heard");
        sender.send(Seen::Blocked { tab, url: "file:///etc/passwd?token=SECRET".to_owned() }).expect("heard");
        drop(sender);
        let Some(Notice::DialogOpened { dialog }) = notices.next().await else { panic!("a dialog") };
        let dialog = dialog.into_inner();
        assert_eq!(
            (&dialog["id"], &dialog["tab"], &dialog["kind"]),
            (&json!(1), &json!("t1"), &json!("confirm"))
        );
        let message = dialog["message"].as_str().expect("a text");
        assert!(message.ends_with("sure?") && !message.contains("hunter2"), "{message}");
        let Some(Notice::DialogOpened { dialog }) = notices.next().await else { panic!("a dialog") };
        assert_eq!(dialog.get()["answered"], true);
        let Some(Notice::Blocked { rule, target }) = notices.next().await else { panic!("a blocked page") };
        assert_eq!(rule, "scheme");
        assert!(target.get().starts_with("file:///etc/passwd") && !target.get().contains("SECRET"));
        assert!(notices.next().await.is_none());
    }
}
