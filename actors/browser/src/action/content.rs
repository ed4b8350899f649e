//! Reading: the text of a page, its address, its title.

use serde_json::json;

use super::args::{ContentFormat, GetContentArgs, PageArgs};
use super::results::{Content, TitleResult, UrlResult};
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::error::Error;
use crate::snapshot::SNAPSHOT_CHARS;
use crate::snapshot::text::{Kept, cut_between_characters};

const CONTENT: &str = include_str!("../js/content.js");

/// A line longer than this is continued on the next.
const LINE_CHARS_MAX: usize = 800;

impl Browser {
    /// Reads the text of the page or of an element.
    ///
    /// # Errors
    /// [`Error::StaleRef`]; [`Error::InvalidCursor`] if the cursor is not of the last text read from this tab.
    pub async fn get_content(&self, args: &GetContentArgs, call: &Call) -> Result<Content, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.read(act.content(args)).await
    }

    /// The address of the page. Answers while the page is busy.
    ///
    /// # Errors
    /// [`Error::TabClosed`], [`Error::TabCrashed`], [`Error::DialogOpen`].
    pub async fn get_url(&self, args: &PageArgs, call: &Call) -> Result<UrlResult, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (url, _) = act.address().await;
        Ok(UrlResult { tab: act.tab, url })
    }

    /// The title of the page. Answers while the page is busy.
    ///
    /// # Errors
    /// As [`Browser::get_url`].
    pub async fn get_title(&self, args: &PageArgs, call: &Call) -> Result<TitleResult, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (_, title) = act.address().await;
        Ok(TitleResult { tab: act.tab, title })
    }
}

impl Act<'_> {
    async fn content(&self, args: &GetContentArgs) -> Result<Content, Error> {
        let (kept, from): (Kept, usize) = match &args.cursor {
            Some(cursor) => self.browser.kept_text(self.tab, cursor)?,
            None => {
                let text = self.whole_content(args).await?;
                let lines = text.lines().flat_map(fold).collect();
                (self.browser.keep_text(self.tab, lines), 0)
            }
        };
        let part = kept.part(from, args.max_chars.unwrap_or(SNAPSHOT_CHARS) as usize, "get_content");
        Ok(Content { text: part.text, omitted: part.omitted, cursor: part.cursor })
    }

    async fn whole_content(&self, args: &GetContentArgs) -> Result<String, Error> {
        let format = json!(match args.format {
            ContentFormat::Text => "text",
            ContentFormat::Markdown => "markdown",
        });
        if let Some(reference) = args.reference {
            let element = self.element(reference).await?;
            return self.on(&element, CONTENT, &[format]).await;
        }
        let (frames, _) = self.frames().await?;
        let format = [format];
        let read = frames
            .iter()
            .map(|frame| futures::FutureExt::boxed(self.in_frame::<String>(frame, CONTENT, &format)));
        let mut texts = Vec::new();
        for (frame, text) in frames.iter().zip(futures::future::join_all(read).await) {
            match text {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => texts.push(text),
                Err(error) if *frame.id == *self.target => return Err(error.into()),
                // A frame that leaves meanwhile has no text.
                Err(_) => {}
            }
        }
        Ok(texts.join("\n\n"))
    }
}

/// Cuts a long line between characters.
fn fold(mut line: &str) -> Vec<String> {
    let mut folded = Vec::new();
    loop {
        let head = cut_between_characters(line, LINE_CHARS_MAX);
        // A run that looks like one endless character is cut all the same.
        let head = if head.is_empty() { line } else { head };
        folded.push(head.to_owned());
        line = &line[head.len()..];
        if line.is_empty() {
            return folded;
        }
    }
}
