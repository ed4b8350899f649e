//! Reading one thing of an element.

use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{GetArgs, What};
use super::results::{Area, GetResult};
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::{Element, GET};
use crate::error::Error;

/// Characters of a text or value that are told.
const CHARS_MAX: usize = 10_000;

/// Names of attributes, by what is in them, whose values are not told.
const SECRET_PARTS: [&str; 14] = [
    "token",
    "secret",
    "passw",
    "passcode",
    "pwd",
    "csrf",
    "xsrf",
    "nonce",
    "auth",
    "session",
    "api-key",
    "apikey",
    "signature",
    "credential",
];

#[derive(Deserialize)]
struct Got {
    #[serde(default)]
    gone: bool,
    /// There is no such thing of this element.
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    value: Value,
    length: Option<usize>,
}

impl Browser {
    /// Reads one thing of an element.
    ///
    /// # Errors
    /// [`Error::StaleRef`]; [`Error::InvalidArgs`] for a value of what is no field, or an attribute without a name.
    pub async fn get(&self, args: &GetArgs, call: &Call) -> Result<GetResult, Error> {
        if args.name.is_some() != (args.what == What::Attribute) {
            return Err(Error::invalid(
                "name says which attribute is meant; give it with attribute, and only then",
            ));
        }
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.read(act.get(args)).await
    }
}

impl Act<'_> {
    async fn get(&self, args: &GetArgs) -> Result<GetResult, Error> {
        let element = self.element(args.reference).await?;
        let what = match args.what {
            What::Text => "text",
            What::Value => "value",
            What::Attribute => "attribute",
            What::Box => "box",
            What::States => "states",
        };
        let given = [json!(what), json!(args.name), json!(CHARS_MAX)];
        let got: Got = self.on(&element, GET, &given).await?;
        if got.gone {
            return Err(Error::StaleRef { reference: args.reference });
        }
        if got.refused {
            return Err(Error::invalid(format!(
                "{} is no field and has no value; ask for its text",
                args.reference
            )));
        }
        if args.what == What::Box {
            return self.placed(&element, got.value).await;
        }
        let length = got.length.filter(|length| *length > 0);
        if let Some(length) = length
            && self.is_hidden(&element, args).await?
        {
            return Ok(GetResult { value: Value::Null, truncated: false, hidden: Some(length) });
        }
        Ok(GetResult { value: got.value, truncated: length > Some(CHARS_MAX), hidden: None })
    }

    /// Whether what is asked for is a secret, or looks like one.
    async fn is_hidden(&self, element: &Element, args: &GetArgs) -> Result<bool, Error> {
        let name = args.name.as_deref().unwrap_or_default().to_ascii_lowercase();
        match args.what {
            // The text of a field is what it holds.
            What::Value | What::Text => self.hides(&element.key).await,
            What::Attribute if name == "value" => self.hides(&element.key).await,
            What::Attribute => Ok(SECRET_PARTS.iter().any(|part| name.contains(part))),
            What::Box | What::States => Ok(false),
        }
    }

    /// The box in the view of the page, whatever frame the element is in.
    async fn placed(&self, element: &Element, value: Value) -> Result<GetResult, Error> {
        let own: Area =
            serde_json::from_value(value).map_err(|_| Error::StaleRef { reference: element.reference })?;
        let frames = self.frame_places().await?;
        let place = frames.get(&element.key.frame).copied().flatten();
        let place = place.ok_or_else(|| {
            Error::invalid(format!("{} is in a frame that is not shown, or turned", element.reference))
        })?;
        let value = serde_json::to_value(place.out(own)).unwrap_or_default();
        Ok(GetResult { value, truncated: false, hidden: None })
    }
}
