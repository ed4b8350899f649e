//! Running a script of the caller's in the page: the one place where that happens, for the trusted bundle only.

use chromiumoxide_cdp::cdp::browser_protocol::dom::{BackendNodeId, ResolveNodeParams};
use chromiumoxide_cdp::cdp::js_protocol::runtime::{
    CallArgument, CallFunctionOnParams, EvaluateParams, ReleaseObjectParams, RemoteObjectId,
};
use serde::Deserialize;
use serde_json::Value;

use super::args::EvaluateArgs;
use super::results::{Effect, EvaluateResult};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::connection::CallError;
use crate::error::Error;
use crate::reference::ElementRef;
use crate::session::Session;
use crate::tab::{TEXT_CHARS_MAX, cut};

/// The largest value, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 48 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: Outcome,
    exception_details: Option<Thrown>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default)]
    value: Value,
    /// `NaN`, `Infinity`, `-0` and big integers.
    unserializable_value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thrown {
    #[serde(default)]
    text: String,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    description: Option<String>,
    #[serde(default)]
    value: Value,
}

impl Browser {
    /// Runs a script in the page, and waits for the promise that it gives.
    ///
    /// Who may ask for this is decided elsewhere; here it is run as it is.
    ///
    /// # Errors
    /// [`Error::ScriptFailed`] with what it threw; [`Error::ResultTooLarge`]; [`Error::TaskTimeout`] once its time is
    /// up, after it was stopped.
    pub async fn evaluate(&self, args: &EvaluateArgs, call: &Call) -> Result<EvaluateResult, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (page, value) = act.act_and_tell(act.evaluate(args)).await?;
        Ok(EvaluateResult { page, value })
    }
}

impl Act<'_> {
    async fn evaluate(&self, args: &EvaluateArgs) -> Result<(Effect, Option<Value>), Error> {
        let evaluated = match args.reference {
            Some(reference) => self.evaluate_on(&args.expression, reference).await,
            None => {
                let mut run = EvaluateParams::new(&args.expression);
                run.return_by_value = Some(true);
                run.await_promise = Some(true);
                run.user_gesture = Some(true);
                self.note_sent(Sent::All);
                self.fetch::<_, Evaluated>(&self.page, &run).await.map_err(Error::from)
            }
        };
        match evaluated {
            Ok(Evaluated { exception_details: Some(thrown), .. }) => {
                Err(Error::ScriptFailed { message: thrown.words() })
            }
            Ok(Evaluated { result, .. }) => {
                let value = result.unserializable_value.map_or(result.value, Value::from);
                if serde_json::to_string(&value).map_or(usize::MAX, |text| text.len()) > VALUE_BYTES_MAX {
                    return Err(Error::ResultTooLarge);
                }
                Ok((Effect::Done, Some(value)))
            }
            Err(Error::Internal { source, sent }) => match *source {
                // The page left before the promise was kept.
                CallError::Refused { ref message, .. } if is_departure(message) => {
                    Ok((Effect::SentUnconfirmed, None))
                }
                // What can not be written as JSON, like a ring of objects.
                CallError::Refused { message, .. } => {
                    Err(Error::ScriptFailed { message: cut(&message, TEXT_CHARS_MAX) })
                }
                other => Err(Error::Internal { source: Box::new(other), sent }),
            },
            Err(error) => Err(error),
        }
    }

    async fn evaluate_on(&self, expression: &str, reference: ElementRef) -> Result<Evaluated, Error> {
        let element = self.element(reference).await?;
        // In the page's own world, which is where its script lives.
        let resolve =
            ResolveNodeParams::builder().backend_node_id(BackendNodeId::new(element.key.node)).build();
        let resolved = element.session.call(&resolve, self.deadline).await;
        let resolved = resolved.map_err(|error| crate::element::stale(reference, error))?;
        let object = resolved.object.object_id.ok_or(Error::StaleRef { reference })?;
        let handle = Handle { session: &element.session, object };
        let mut run =
            CallFunctionOnParams::new(format!("function (element) {{ return (\n{expression}\n); }}"));
        run.object_id = Some(handle.object.clone());
        run.arguments =
            Some(vec![CallArgument { object_id: Some(handle.object.clone()), ..CallArgument::default() }]);
        run.return_by_value = Some(true);
        run.await_promise = Some(true);
        run.user_gesture = Some(true);
        self.note_sent(Sent::All);
        Ok(self.fetch(&element.session, &run).await?)
    }
}

/// An object of the page that is let go when this is dropped.
struct Handle<'a> {
    session: &'a Session,
    object: RemoteObjectId,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        self.session.post(&ReleaseObjectParams::new(self.object.clone()));
    }
}

fn is_departure(message: &str) -> bool {
    [
        "navigated or closed",
        "context was destroyed",
        "Cannot find context",
        "context with specified id",
        "collected",
    ]
    .iter()
    .any(|words| message.contains(words))
}

impl Thrown {
    /// What was thrown, as its page says it.
    fn words(self) -> String {
        let said = self.exception.map(|thrown| match (thrown.description, thrown.value) {
            (Some(description), _) => description,
            (None, Value::String(text)) => text,
            (None, value) => value.to_string(),
        });
        cut(&said.unwrap_or(self.text), TEXT_CHARS_MAX)
    }
}
