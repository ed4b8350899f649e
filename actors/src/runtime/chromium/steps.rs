//! From a capability's name to what the browser does: one line each. Args become types here, results become JSON.

use super::files::Files;
use browser::{Browser, Call, Error};
use eventlog::{Json, Sensitive, id::CapabilityName};
use serde::{Serialize, de::DeserializeOwned};

/// What a step gave, before it is redacted.
pub(super) enum Raw {
    /// Something that can be written down.
    Json(Json),
    /// A picture, to be kept as a file.
    Picture(browser::results::Screenshot),
    /// A picture with its refs, to be kept as a file.
    Annotated(browser::results::Annotated),
    /// A printed page, to be kept as a file.
    Pdf(browser::results::Pdf),
}

/// Why a step gave nothing.
pub(super) enum StepError {
    /// The browser says why.
    Browser(Error),
    /// The args are not those of the capability, though they fit its schema; or the result can't be written.
    Shape(&'static str),
    /// It panicked: nobody knows how far it came.
    Bug,
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        Self::Browser(error)
    }
}

#[rustfmt::skip]
pub(super) async fn run(
    browser: &Browser,
    capability: &CapabilityName,
    a: &Sensitive<Json>,
    call: &Call,
    files: &Files,
) -> Result<Raw, StepError> {
    match capability.as_str() {
        "navigate" => json(browser.navigate(&args(a)?, call).await?),
        "go_back" => json(browser.go_back(&args(a)?, call).await?),
        "go_forward" => json(browser.go_forward(&args(a)?, call).await?),
        "reload" => json(browser.reload(&args(a)?, call).await?),
        "click" => json(browser.click(&args(a)?, call).await?),
        "dblclick" => json(browser.dblclick(&args(a)?, call).await?),
        "hover" => json(browser.hover(&args(a)?, call).await?),
        "focus" => json(browser.focus(&args(a)?, call).await?),
        "scroll_into_view" => json(browser.scroll_into_view(&args(a)?, call).await?),
        "type" => json(browser.type_text(&args(a)?, call).await?),
        "fill" => json(browser.fill(&args(a)?, call).await?),
        "press" => json(browser.press(&args(a)?, call).await?),
        "select" => json(browser.select(&args(a)?, call).await?),
        "check" => json(browser.check(&args(a)?, call).await?),
        "uncheck" => json(browser.uncheck(&args(a)?, call).await?),
        "scroll" => json(browser.scroll(&args(a)?, call).await?),
        "drag" => json(browser.drag(&args(a)?, call).await?),
        "mouse" => json(browser.mouse(&args(a)?, call).await?),
        "upload" => json(files.upload(browser, &args(a)?, call).await?),
        "wait" => json(browser.wait(&args(a)?, call).await?),
        "dialog" => json(browser.dialog(&args(a)?, call).await?),
        "tab_new" => json(browser.tab_new(&args(a)?, call).await?),
        "tab_select" => json(browser.tab_select(&args(a)?).await?),
        "tab_close" => json(browser.tab_close(&args(a)?, call).await?),
        "tab_list" => json(browser.tab_list().await?),
        "snapshot" => json(browser.snapshot(&args(a)?, call).await?),
        "screenshot" => Ok(Raw::Picture(browser.screenshot(&args(a)?, call).await?)),
        "screenshot_annotate" => Ok(Raw::Annotated(browser.screenshot_annotate(&args(a)?, call).await?)),
        "pdf" => Ok(Raw::Pdf(browser.pdf(&args(a)?, call).await?)),
        "get_content" => json(browser.get_content(&args(a)?, call).await?),
        "get_html" => json(browser.get_html(&args(a)?, call).await?),
        "get" => json(browser.get(&args(a)?, call).await?),
        "get_url" => json(browser.get_url(&args(a)?, call).await?),
        "get_title" => json(browser.get_title(&args(a)?, call).await?),
        "downloads" => json(files.desk.receipts().await.map_err(|_| StepError::Shape("the downloads can't be read"))?),
        "evaluate" => json(browser.evaluate(&args(a)?, call).await?),
        _ => Err(StepError::Shape("this browser has no such capability")),
    }
}

fn args<T: DeserializeOwned>(args: &Sensitive<Json>) -> Result<T, StepError> {
    serde_json::from_value(args.expose().clone())
        .map_err(|_| StepError::Shape("the args do not fit the capability"))
}

fn json(result: impl Serialize) -> Result<Raw, StepError> {
    let result = serde_json::to_value(result).map_err(|_| StepError::Shape("the result can't be written"))?;
    Ok(Raw::Json(result))
}
