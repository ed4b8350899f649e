//! The audit trail of a Workspace: as pages, or whole as CSV or NDJSON.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::stream;
use projections::{
    AuditFilter, AuditRow, ViewError,
    audit_trail::{OUTCOMES, TASK},
};

use super::{
    App,
    answer::Page,
    asked::Entered,
    body::{Params, Phrase, choice_text, parse_text},
    reads::{self, Wanted},
    wire::{self, event::kinds},
};
use crate::problem::Problem;

/// Entries that an export reads at once.
const EXPORT_PAGE: usize = projections::views::PAGE_ITEMS_MAX;

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Ndjson,
}

const FORMATS: &[(&str, Format)] = &[("csv", Format::Csv), ("ndjson", Format::Ndjson)];

impl Format {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Csv => "attachment; filename=\"audit-trail.csv\"",
            Self::Ndjson => "attachment; filename=\"audit-trail.ndjson\"",
        }
    }
}

/// `GET …/audit-trail`
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    entered.must_oversee()?;
    let mut params = Params::new(query.as_deref());
    let filter = AuditFilter {
        workspace: Some(entered.workspace.clone()),
        space: params.optional("space", parse_text)?,
        owner: params.optional("owner_id", parse_text)?,
        action: params.optional("action", one_of(actions().collect()))?,
        outcome: params.optional("outcome", one_of(OUTCOMES.to_vec()))?,
        site: params.take("site")?,
    };
    let format = params.optional("format", choice_text(FORMATS))?;
    let wanted = Wanted::of(&mut params)?;
    params.finish()?;
    reads::caught_up(&app, &entered.exchange, &headers).await?;
    let Some(format) = format else {
        let page = app.views.audit(&filter, wanted.cursor(), wanted.limit).await?;
        return Ok(Page::<wire::AuditEntry>::from(page).into_response());
    };
    Ok(export(app, filter, wanted.cursor, format))
}

/// Every action: a task, or the kind of an event.
pub(crate) fn actions() -> impl Iterator<Item = &'static str> {
    std::iter::once(TASK).chain(kinds())
}

/// A word of a closed list: a misspelt one would read as "there is none".
fn one_of(words: Vec<&'static str>) -> impl Fn(&str) -> Result<String, Phrase> {
    move |text| {
        let is_word = words.contains(&text);
        is_word.then(|| text.to_owned()).ok_or_else(|| format!("must be one of {}", words.join(", ")).into())
    }
}

/// Everything that the filter lets through, newest first, page by page: memory stays flat however long it is.
fn export(app: App, filter: AuditFilter, cursor: Option<String>, format: Format) -> Response {
    let pages = stream::try_unfold(Some((cursor, true)), move |at| {
        let (app, filter) = (app.clone(), filter.clone());
        async move {
            let Some((cursor, is_first)) = at else { return Ok(None) };
            let page = app.views.audit(&filter, cursor.as_deref(), EXPORT_PAGE).await?;
            let bytes = written(&page.items, format, is_first);
            Ok::<_, ViewError>(Some((bytes, page.next.map(|next| (Some(next), false)))))
        }
    });
    let mut response = Body::from_stream(pages).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(format.file()));
    response
}

fn written(rows: &[AuditRow], format: Format, is_first: bool) -> Bytes {
    let entries = rows.iter().map(wire::AuditEntry::from);
    match format {
        Format::Ndjson => {
            let line = |entry| serde_json::to_string(&entry).expect("an entry has only plain fields") + "\n";
            entries.map(line).collect::<String>().into()
        }
        Format::Csv => {
            let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
            let written = "a buffer takes every record";
            if is_first {
                writer.write_record(wire::AuditEntry::FIELDS).expect(written);
            }
            for entry in entries {
                writer.write_record(entry.cells().map(inert)).expect(written);
            }
            writer.into_inner().expect(written).into()
        }
    }
}

/// A cell that no spreadsheet takes for a formula: what begins like one is quoted with an apostrophe (OWASP, CSV
/// injection).
fn inert(cell: String) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{cell}") } else { cell }
}
