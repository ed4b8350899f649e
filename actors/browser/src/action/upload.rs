//! Giving files to a page: to a field for files, or to the chooser that a click opens.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::dom::SetFileInputFilesParams;
use chromiumoxide_cdp::cdp::browser_protocol::page::SetInterceptFileChooserDialogParams;
use serde::Deserialize;
use serde_json::json;

use super::args::UploadArgs;
use super::choose::plain_click;
use super::results::{AcceptedFile, Effect, UploadResult};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::{Element, stale};
use crate::error::{Check, Error};
use crate::frame::On;
use crate::handover::{HandedOver, OutsideFile, hand_over};

const INPUT: &str = include_str!("../js/input.js");
const GIVEN: &str = include_str!("../js/given.js");

/// How long a page may take to open its chooser once it was clicked.
const CHOOSER_WAIT: Duration = Duration::from_secs(3);

/// So many uploads keep their copies at once; the oldest go first.
const GIVEN_MAX: usize = 16;

#[derive(Deserialize)]
struct Facts {
    several: bool,
    disabled: bool,
    folder: bool,
}

/// Lets choosers open as they did, however the upload ends.
struct Intercepting<'a>(&'a Element);

impl Drop for Intercepting<'_> {
    fn drop(&mut self) {
        self.0.session.post(&SetInterceptFileChooserDialogParams::new(false));
    }
}

impl Browser {
    /// Gives files to a page. `files` are those that the args name, in their order.
    ///
    /// # Errors
    /// [`Error::InvalidArgs`] before the page is touched, if the field does not take them; [`Error::StaleRef`];
    /// [`Error::NoFileChooser`] if a click opened none.
    pub async fn upload(
        &self,
        args: &UploadArgs,
        files: Vec<OutsideFile>,
        call: &Call,
    ) -> Result<UploadResult, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (page, accepted) = act.act_and_tell(act.upload(args, files)).await?;
        Ok(UploadResult { page, accepted })
    }
}

impl Act<'_> {
    async fn upload(
        &self,
        args: &UploadArgs,
        files: Vec<OutsideFile>,
    ) -> Result<(Effect, Option<Vec<AcceptedFile>>), Error> {
        self.to_front().await?;
        let element = self.element(args.reference).await?;
        let sizes: Vec<u64> = files.iter().map(|file| file.bytes).collect();
        let found = self.field_of(&element).await?;
        if let Some(field) = &found {
            self.check_field(&element, field, sizes.len()).await?;
        }
        let handed = self.hand_over(files).await?;
        let field = match found {
            Some(field) => field,
            None => {
                let field = Box::pin(self.chooser_of(&element)).await?;
                self.check_field(&element, &field, sizes.len()).await?;
                field
            }
        };
        let accepted = self.give(&element, &field, handed).await?;
        let is_whole = accepted.iter().map(|file| file.bytes).eq(sizes);
        Ok((if is_whole { Effect::Done } else { Effect::SentUnconfirmed }, Some(accepted)))
    }

    /// The field that the element is, labels or holds.
    async fn field_of(&self, element: &Element) -> Result<Option<String>, Error> {
        let on = On::Object(&element.object);
        let found = self.apply_raw(&element.session, &on, INPUT, &[], false).await;
        Ok(found.map_err(|error| stale(element.reference, error))?.result.object_id)
    }

    async fn check_field(&self, element: &Element, field: &str, count: usize) -> Result<(), Error> {
        let facts: Facts = self.given(element, field, "facts").await?;
        let reference = element.reference;
        if facts.disabled {
            return Err(Error::ElementNotActionable { reference, check: Check::Enabled, covered_by: None });
        }
        if facts.folder {
            return Err(Error::invalid(format!("{reference} takes a folder, and no files")));
        }
        if count > 1 && !facts.several {
            return Err(Error::invalid(format!("{reference} takes one file only")));
        }
        Ok(())
    }

    async fn hand_over(&self, files: Vec<OutsideFile>) -> Result<HandedOver, Error> {
        let (profile, group) = self.browser.home();
        let copied = tokio::task::spawn_blocking(move || hand_over(&profile, group, files)).await;
        match copied {
            Ok(Ok(handed)) => Ok(handed),
            Ok(Err(error)) => {
                tracing::warn!(%error, "Files could not be copied for the browser.");
                Err(Error::NotCopied)
            }
            Err(_) => Err(Error::NotCopied),
        }
    }

    /// The field of the chooser that opens when the element is clicked.
    async fn chooser_of(&self, element: &Element) -> Result<String, Error> {
        self.browser.hub.change(|state| {
            if let Some(tab) = state.tabs.get_mut(&self.tab) {
                tab.chooser = None;
            }
        });
        let _intercepting = Intercepting(element);
        let intercept = SetInterceptFileChooserDialogParams::new(true);
        element
            .session
            .call_raw(&intercept, self.deadline)
            .await
            .map_err(|error| stale(element.reference, error))?;
        self.click(&plain_click(element.reference), 1).await?;
        self.comes(CHOOSER_WAIT, |state| state.tabs.get(&self.tab).is_some_and(|tab| tab.chooser.is_some()))
            .await;
        let opened = self.browser.hub.state().tabs.get_mut(&self.tab).and_then(|tab| tab.chooser.take());
        let node = opened.ok_or(Error::NoFileChooser { reference: element.reference })?;
        let resolved = self.resolve(&element.session, node, element.world).await;
        resolved.map_err(|error| stale(element.reference, error))
    }

    async fn give(
        &self,
        element: &Element,
        field: &str,
        handed: HandedOver,
    ) -> Result<Vec<AcceptedFile>, Error> {
        let _: Vec<AcceptedFile> = self.given(element, field, "hear").await?;
        let paths = handed.paths.iter().map(|path| path.to_string_lossy().into_owned());
        let mut set = SetFileInputFilesParams::new(paths.collect::<Vec<_>>());
        set.object_id = Some(field.to_owned().into());
        self.keep_copies(element, handed);
        self.note_sent(Sent::All);
        let set = element.session.call_raw(&set, self.deadline).await;
        set.map_err(|error| stale(element.reference, error))?;
        self.given(element, field, "tell").await
    }

    /// Pages read files late, so the copies stay as long as the document.
    fn keep_copies(&self, element: &Element, handed: HandedOver) {
        let mut state = self.browser.hub.state();
        if state.given.len() >= GIVEN_MAX {
            state.given.remove(0);
        }
        state.given.push((element.key.clone(), handed));
    }

    async fn given<R: serde::de::DeserializeOwned>(
        &self,
        element: &Element,
        field: &str,
        step: &str,
    ) -> Result<R, Error> {
        let told = self.apply(&element.session, &On::Object(field), GIVEN, &[json!(step)]).await;
        told.map_err(|error| stale(element.reference, error))
    }
}
