//! Printing a page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide_cdp::cdp::browser_protocol::io::{CloseParams, ReadParams, StreamHandle};
use chromiumoxide_cdp::cdp::browser_protocol::page::{PrintToPdfParams, PrintToPdfTransferMode};
use serde::Deserialize;

use super::args::{Paper, PdfArgs};
use super::results::Pdf;
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{Call, NAVIGATION_TIMEOUT};
use crate::connection::CallError;
use crate::error::Error;

/// The largest file.
const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How much is read at once.
const CHUNK_BYTES: i64 = 512 * 1024;

#[derive(Deserialize)]
struct Printed {
    stream: String,
}

/// Ends the browser's side of a stream, however much of it was read.
struct Reading<'a> {
    act: &'a Act<'a>,
    handle: StreamHandle,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.act.page.post(&CloseParams::new(self.handle.clone()));
    }
}

impl Browser {
    /// Prints the page.
    ///
    /// # Errors
    /// [`Error::ResultTooLarge`] beyond 16 MiB; [`Error::InvalidArgs`] for pages that there are not.
    pub async fn pdf(&self, args: &PdfArgs, call: &Call) -> Result<Pdf, Error> {
        let act =
            self.begin(args.tab, call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT), call, Needs::Page)?;
        act.read(act.pdf(args)).await
    }
}

impl Act<'_> {
    async fn pdf(&self, args: &PdfArgs) -> Result<Pdf, Error> {
        let (paper_width, paper_height) = inches(args.paper);
        let print = PrintToPdfParams {
            landscape: Some(args.landscape),
            print_background: Some(true),
            scale: args.scale,
            paper_width: Some(paper_width),
            paper_height: Some(paper_height),
            page_ranges: args.ranges.clone(),
            transfer_mode: Some(PrintToPdfTransferMode::ReturnAsStream),
            ..PrintToPdfParams::default()
        };
        let printed: Printed = match self.fetch(&self.page, &print).await {
            // The browser's words about the ranges; it has no code of its own for them.
            Err(CallError::Refused { message, .. }) if message.to_ascii_lowercase().contains("range") => {
                return Err(Error::invalid("ranges names pages that the printed page does not have"));
            }
            other => other?,
        };
        let reading = Reading { act: self, handle: StreamHandle::from(printed.stream) };
        let mut bytes = Vec::new();
        loop {
            let mut read = ReadParams::new(reading.handle.clone());
            read.size = Some(CHUNK_BYTES);
            let chunk = self.call(&read).await?;
            match chunk.base64_encoded {
                Some(true) => {
                    let decoded = STANDARD.decode(&chunk.data).map_err(|_| Error::ResultTooLarge)?;
                    bytes.extend_from_slice(&decoded);
                }
                _ => bytes.extend_from_slice(chunk.data.as_bytes()),
            }
            if bytes.len() > FILE_BYTES_MAX {
                return Err(Error::ResultTooLarge);
            }
            if chunk.eof {
                return Ok(Pdf { bytes: bytes.into() });
            }
        }
    }
}

/// Width and height of a paper.
fn inches(paper: Paper) -> (f64, f64) {
    let millimetres = |width: f64, height: f64| (width / 25.4, height / 25.4);
    match paper {
        Paper::A3 => millimetres(297.0, 420.0),
        Paper::A4 => millimetres(210.0, 297.0),
        Paper::A5 => millimetres(148.0, 210.0),
        Paper::Letter => (8.5, 11.0),
        Paper::Legal => (8.5, 14.0),
        Paper::Tabloid => (11.0, 17.0),
    }
}
