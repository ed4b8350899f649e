//! Files that tasks made: the list, and the bytes. They are attachments and never shown in our origin (C12).

use actors::Rejection;
use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use eventlog::id::{ArtifactId, SpaceId};
use tokio_util::io::ReaderStream;

use super::{
    App,
    answer::Page,
    asked::{Entered, Id},
    reads::Wanted,
    spaces::readable,
    wire,
};
use crate::problem::{Code, Problem};

/// `GET …/artifacts`
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<wire::Artifact>, Problem> {
    readable(&app, &entered, space, &headers).await?;
    let wanted = Wanted::only(query.as_deref())?;
    let page = app.views.artifacts(space, wanted.cursor(), wanted.limit).await?;
    Ok(page.into())
}

/// `GET …/artifacts/{artifact_id}`
pub(crate) async fn bytes(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    Id(artifact): Id<ArtifactId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    readable(&app, &entered, space, &headers).await?;
    if app.views.artifact(artifact).await?.is_none_or(|row| row.space_id != space) {
        return Err(Problem::new(Code::ArtifactNotFound));
    }
    let found = app.spaces.open_artifact(space, artifact).await.map_err(|rejection| match rejection {
        // The event is there and the bytes are not, or not yet: for a caller it is the same.
        Rejection::TaskNotFound => Problem::new(Code::ArtifactNotFound),
        other => other.into(),
    })?;
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(found.file)));
    let name = wire::file_name(artifact, &found.media_type);
    let own = [
        (header::CONTENT_TYPE, found.media_type),
        (header::CONTENT_LENGTH, found.bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::ETAG, format!("\"{}\"", found.sha256)),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned()),
    ];
    let mut response = body.into_response();
    for (name, value) in own {
        let value = HeaderValue::from_str(&value).map_err(|_| Problem::new(Code::Internal))?;
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}
