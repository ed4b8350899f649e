//! Downloads of a Space: receipts for readers, release and rejection by operators, and the bytes of what was released.
//! They are attachments and never shown in our origin (C12).

use std::io::{Read as _, Seek as _, SeekFrom};

use actors::{
    Rejection,
    download::{Item, ReleasedFile, Stage},
};
use axum::{
    body::Body,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use eventlog::{
    Json, Redacted, Redactor,
    event::download::{DownloadId, RefusedReason},
    id::SpaceId,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    App,
    answer::{Answer, Page},
    asked::{Entered, Id},
    body::{Params, Phrase, RawBody, choice_text, text},
    reads::Wanted,
    spaces::readable,
};
use crate::problem::{Code, Problem};

/// The longest name or reason that a person gives.
const WORDS_CHARS_MAX: usize = 200;

const STATES: &[(&str, &str)] = &[
    ("started", "started"),
    ("captured", "captured"),
    ("refused", "refused"),
    ("approved", "approved"),
    ("released", "released"),
    ("rejected", "rejected"),
    ("expired", "expired"),
];

/// A download of a Space. Where its bytes lie is nobody's business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Download {
    #[schema(example = "0191d2f4-7c1e-7a5b-8c3d-1f2e3d4c5b6a")]
    pub(crate) guid: String,
    pub(crate) space_id: String,
    pub(crate) workspace_id: String,
    /// `started`, `captured`, `refused`, `approved`, `released`, `rejected` or `expired`.
    pub(crate) state: String,
    /// Where it comes from, redacted.
    pub(crate) url: String,
    /// What the page calls it: text, never a path.
    pub(crate) suggested_filename: String,
    #[schema(format = DateTime)]
    pub(crate) started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Lower-case hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// What its name says that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_media_type: Option<String>,
    /// What its first bytes say that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sniffed_media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) captured_at: Option<String>,
    /// Why it was not captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused_because: Option<String>,
    /// Who let it out; the first approval stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<DownloadApproval>,
}

/// Who let a download out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct DownloadApproval {
    #[schema(format = DateTime)]
    pub(crate) approved_at: String,
    /// As the server authenticated them.
    pub(crate) authorized_principal: String,
    pub(crate) authorized_principal_scope: String,
    /// As they said.
    pub(crate) declared_operator: String,
}

impl Download {
    fn new(space: SpaceId, workspace: &str, id: DownloadId, item: &Item) -> Self {
        let receipt = item.stage.receipt();
        let approval = match &item.stage {
            Stage::Approved(_, approval) | Stage::Released { approval, .. } => Some(approval),
            _ => None,
        };
        let refused_because = match &item.stage {
            Stage::Refused(reason) => Some(reason_name(*reason)),
            _ => None,
        };
        Self {
            guid: id.to_string(),
            space_id: space.to_string(),
            workspace_id: workspace.to_owned(),
            state: item.stage.name().to_owned(),
            url: item.url.get().clone(),
            suggested_filename: item.suggested_filename.get().clone(),
            started_at: item.started_at.to_rfc3339(),
            bytes: receipt.map(|receipt| receipt.bytes),
            sha256: receipt.map(|receipt| receipt.sha256.clone()),
            claimed_media_type: receipt.map(|receipt| receipt.claimed_media_type.clone()),
            sniffed_media_type: receipt.map(|receipt| receipt.sniffed_media_type.clone()),
            captured_at: receipt.map(|receipt| receipt.captured_at.to_rfc3339()),
            refused_because,
            approval: approval.map(|approval| DownloadApproval {
                approved_at: approval.approved_at.to_rfc3339(),
                authorized_principal: approval.authorized_principal.to_string(),
                authorized_principal_scope: approval.authorized_principal_scope.clone(),
                declared_operator: approval.declared_operator.get().clone(),
            }),
        }
    }
}

fn reason_name(reason: RefusedReason) -> String {
    let name = serde_json::to_value(reason).ok();
    name.and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

/// `GET …/downloads`
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<Download>, Problem> {
    readable(&app, &entered, space, &headers).await?;
    let mut params = Params::new(query.as_deref());
    let wanted = Wanted::of(&mut params)?;
    let state = params.optional("state", choice_text(STATES))?;
    params.finish()?;
    let unknown = |_| Problem::invalid_cursor("cursor", "must be the `next` of a page of this same list");
    let before: Option<DownloadId> = wanted.cursor().map(str::parse).transpose().map_err(unknown)?;
    let shelf = app.spaces.downloads(space).await?;
    let workspace = entered.workspace.to_string();
    let mut rows = shelf
        .items
        .iter()
        .rev()
        .filter(|(id, item)| {
            before.is_none_or(|before| **id < before) && state.is_none_or(|state| item.stage.name() == state)
        })
        .map(|(id, item)| Download::new(space, &workspace, *id, item));
    let data: Vec<_> = rows.by_ref().take(wanted.limit).collect();
    let next = rows.next().and_then(|_| Some(data.last()?.guid.clone()));
    Ok(Page { data, next })
}

/// `POST …/downloads/{guid}/release`
pub(crate) async fn release(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    Path(path): Path<std::collections::HashMap<String, String>>,
    headers: HeaderMap,
    body: RawBody,
) -> Result<Answer<Download>, Problem> {
    entered.must_operate()?;
    readable(&app, &entered, space, &headers).await?;
    let guid = guid(&path)?;
    let mut fields = body.fields()?;
    let declared_operator = fields.required("declared_operator", words)?;
    fields.finish()?;
    let released = app.spaces.release_download(&entered.context(), space, guid, declared_operator).await?;
    shown(&app, &entered, space, guid).await.map(|answer| answer.at(released.position))
}

/// `POST …/downloads/{guid}/reject`
pub(crate) async fn reject(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    Path(path): Path<std::collections::HashMap<String, String>>,
    headers: HeaderMap,
    body: RawBody,
) -> Result<Answer<Download>, Problem> {
    entered.must_operate()?;
    readable(&app, &entered, space, &headers).await?;
    let guid = guid(&path)?;
    let mut fields = body.fields()?;
    let declared_operator = fields.required("declared_operator", words)?;
    let reason = fields.required("reason", words)?;
    fields.finish()?;
    let context = entered.context();
    let rejected = app.spaces.reject_download(&context, space, guid, reason, declared_operator).await?;
    shown(&app, &entered, space, guid).await.map(|answer| answer.at(rejected.position))
}

async fn shown(
    app: &App,
    entered: &Entered,
    space: SpaceId,
    guid: DownloadId,
) -> Result<Answer<Download>, Problem> {
    let shelf = app.spaces.downloads(space).await?;
    let item = shelf.items.get(&guid).ok_or(Rejection::DownloadGone)?;
    Ok(Answer::ok(Download::new(space, entered.workspace.as_str(), guid, item)))
}

/// `GET …/downloads/{guid}/content`
pub(crate) async fn content(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    Path(path): Path<std::collections::HashMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    readable(&app, &entered, space, &headers).await?;
    let guid = guid(&path)?;
    let found = app.spaces.open_download(space, guid).await?;
    let etag = format!("\"{}\"", found.receipt.sha256);
    let total = found.receipt.bytes;
    let range = range(&headers, &etag, total);
    let (status, first, count) = match range {
        Range::Whole => (StatusCode::OK, 0, total),
        Range::Part(first, last) => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Range::Outside => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    let bytes = read(found, first, count).await?;
    let mut response = (status, Body::from(bytes)).into_response();
    let own = [
        // What it is, a browser is not to find out for itself.
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{guid}.bin\"")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::ETAG, etag),
    ];
    for (name, value) in own {
        let value = HeaderValue::from_str(&value).map_err(|_| Problem::new(Code::Internal))?;
        response.headers_mut().insert(name, value);
    }
    let content_range = match range {
        Range::Whole => return Ok(response),
        Range::Part(first, last) => format!("bytes {first}-{last}/{total}"),
        Range::Outside => format!("bytes */{total}"),
    };
    let value = HeaderValue::from_str(&content_range).map_err(|_| Problem::new(Code::Internal))?;
    response.headers_mut().insert(header::CONTENT_RANGE, value);
    Ok(response)
}

async fn read(found: ReleasedFile, first: u64, count: u64) -> Result<Vec<u8>, Problem> {
    let read = tokio::task::spawn_blocking(move || {
        let mut file = found.file;
        file.seek(SeekFrom::Start(first))?;
        let mut bytes = Vec::new();
        file.take(count).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.await.map_err(|_| Problem::new(Code::Internal))?;
    let bytes = bytes.map_err(|_| Problem::new(Code::StorageUnavailable))?;
    if bytes.len() as u64 == count { Ok(bytes) } else { Err(Problem::new(Code::DownloadConflict)) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Whole,
    /// The first and the last byte.
    Part(u64, u64),
    Outside,
}

/// One range of bytes (RFC 9110, section 14.1.2). Several, or what is no range of bytes, is the whole.
fn range(headers: &HeaderMap, etag: &str, total: u64) -> Range {
    let is_other = |value: &HeaderValue| value.as_bytes() != etag.as_bytes();
    if headers.get(header::IF_RANGE).is_some_and(is_other) {
        return Range::Whole;
    }
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let Some((first, last)) =
        asked.and_then(|asked| asked.strip_prefix("bytes=")).and_then(|asked| asked.split_once('-'))
    else {
        return Range::Whole;
    };
    let number = |text: &str| match text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => None,
        false => text.parse::<u64>().ok(),
    };
    let end = total.saturating_sub(1);
    match (number(first), number(last)) {
        (Some(first), _) if first >= total => Range::Outside,
        (Some(first), None) if last.is_empty() => Range::Part(first, end),
        (Some(first), Some(last)) if first <= last => Range::Part(first, last.min(end)),
        (None, Some(count)) if first.is_empty() && count > 0 && total > 0 => {
            Range::Part(total.saturating_sub(count), end)
        }
        _ => Range::Whole,
    }
}

/// The guid of the path (Q4: one that is no UUID is 422).
fn guid(path: &std::collections::HashMap<String, String>) -> Result<DownloadId, Problem> {
    let guid = path.get("guid").and_then(|text| text.parse().ok());
    guid.ok_or_else(|| Problem::invalid("guid", "must be a UUID, in lower case and with hyphens"))
}

/// What a person types.
fn words(value: Json) -> Result<Redacted<String>, Phrase> {
    let typed = text(value)?;
    let typed = typed.trim();
    let is_plain = |c: char| !c.is_control();
    if typed.is_empty() || typed.chars().count() > WORDS_CHARS_MAX || !typed.chars().all(is_plain) {
        return Err("must be a text of 1 to 200 characters on one line".into());
    }
    Ok(Redactor::new().text(typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_of_bytes_or_the_whole() {
        let of = |asked: &str| {
            let headers = HeaderMap::from_iter([(
                header::RANGE,
                HeaderValue::from_str(asked).expect("it is a header"),
            )]);
            range(&headers, "\"a\"", 10)
        };
        assert_eq!(
            [of("bytes=0-3"), of("bytes=4-"), of("bytes=-2")],
            [Range::Part(0, 3), Range::Part(4, 9), Range::Part(8, 9)]
        );
        assert_eq!(
            [of("bytes=8-99"), of("bytes=10-"), of("bytes=-99")],
            [Range::Part(8, 9), Range::Outside, Range::Part(0, 9)]
        );
        for whole in
            ["bytes=3-1", "bytes=0-1,4-5", "lines=1-2", "bytes=", "bytes=-0", "bytes=a-b", "bytes=+1-2"]
        {
            assert_eq!(of(whole), Range::Whole, "{whole}");
        }
    }
}
