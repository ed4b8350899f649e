//! Reading markup.

use serde_json::json;

use super::args::GetHtmlArgs;
use super::results::Html;
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::error::Error;
use crate::snapshot::SNAPSHOT_CHARS;

const HTML: &str = include_str!("../js/html.js");

impl Browser {
    /// Reads the markup of the page or of an element. What is in a frame is read by a ref in it.
    ///
    /// # Errors
    /// [`Error::StaleRef`].
    pub async fn get_html(&self, args: &GetHtmlArgs, call: &Call) -> Result<Html, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.read(act.html(args)).await
    }
}

impl Act<'_> {
    async fn html(&self, args: &GetHtmlArgs) -> Result<Html, Error> {
        let chars = json!(args.max_chars.unwrap_or(SNAPSHOT_CHARS));
        match args.reference {
            Some(reference) => {
                let element = self.element(reference).await?;
                self.on(&element, HTML, &[json!(args.outer), chars]).await
            }
            None => {
                let frame = self.main_frame().await?;
                Ok(self.in_frame(&frame, HTML, &[json!(args.outer), chars]).await?)
            }
        }
    }
}
