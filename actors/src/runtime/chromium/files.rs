//! The files of a Space: those that its steps make, and those that pages are given from them.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use browser::{Browser, Call, Error, OutsideFile, args::UploadArgs, results::UploadResult};
use eventlog::{
    event::{
        download::DownloadId,
        space::{ArtifactRecord, TaskError},
    },
    id::{ArtifactId, SpaceId},
};
use tracing::warn;

use crate::{
    artifact::{self, Limits, StoreError},
    capability::standard::KeptFile,
    clock::IdSource,
    download::{Desk, ReleasedFile},
    space::failure::Failure,
};

/// Where the files of one Space are.
#[derive(Clone)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    pub(super) space: SpaceId,
    pub(super) desk: Desk,
    pub(super) limits: Limits,
    pub(super) ids: Arc<dyn IdSource>,
}

impl Files {
    /// Keeps a file. It is on disk and synced when this returns, so before the event that names it.
    pub(super) async fn keep(
        &self,
        kind: &'static str,
        media_type: &'static str,
        bytes: bytes::Bytes,
    ) -> Result<ArtifactRecord, TaskError> {
        let id = ArtifactId::from_uuid(self.ids.uuid());
        let (folder, space, limits) = (self.folder.clone(), self.space, self.limits);
        let kept = tokio::task::spawn_blocking(move || {
            artifact::store(&folder, space, id, kind, media_type, &bytes, limits)
        });
        match kept.await {
            Ok(Ok(record)) => Ok(record),
            Ok(Err(StoreError::Io(error))) => {
                warn!(space.id = %self.space, %error, "An artifact could not be kept.");
                Err(Failure::Internal.saying("the file could not be kept", true))
            }
            Ok(Err(StoreError::TooLarge(_) | StoreError::SpaceFull(_))) => {
                Err(Failure::ResultTooLarge.saying("there is no room for the file", true))
            }
            Err(_) => Err(Failure::Internal.saying("the file could not be kept", true)),
        }
    }

    /// Gives a page files of this Space. Each is found, and found whole, before the page is touched (C11).
    pub(super) async fn upload(
        &self,
        browser: &Browser,
        args: &UploadArgs,
        call: &Call,
    ) -> Result<UploadResult, Error> {
        let mut downloads = HashMap::new();
        for (index, name) in (0..).zip(&args.files) {
            if let Ok(id) = name.parse() {
                downloads.insert(index, self.released(index, id).await?);
            }
        }
        let (folder, space, names) = (self.folder.clone(), self.space, args.files.clone());
        let found = tokio::task::spawn_blocking(move || {
            (0..)
                .zip(&names)
                .map(|(index, name)| match downloads.remove(&index) {
                    Some(released) => Ok(released),
                    None => find(&folder, space, index, name),
                })
                .collect::<Result<Vec<_>, _>>()
        });
        let files = found.await.map_err(|_| Error::NotCopied)??;
        browser.upload(args, files, call).await
    }

    /// A download that a person let out; any other is none.
    async fn released(&self, index: usize, id: DownloadId) -> Result<OutsideFile, Error> {
        let ReleasedFile { file, receipt } = self.desk.released(id).await.ok_or_else(|| {
            let message = format!("/files/{index}: there is no such released download in this Space");
            Error::InvalidArgs { message }
        })?;
        let name = format!("{id}.{}", extension(&receipt.sniffed_media_type));
        Ok(OutsideFile { name, file, bytes: receipt.bytes })
    }
}

/// What of a kept file stands in the result of its step.
pub(super) fn described(record: &ArtifactRecord) -> KeptFile {
    KeptFile {
        artifact_id: record.id,
        media_type: record.media_type.clone(),
        bytes: record.bytes,
        sha256: record.sha256.clone(),
    }
}

fn find(folder: &std::path::Path, space: SpaceId, index: usize, name: &str) -> Result<OutsideFile, Error> {
    let missing = |what: &str| Error::InvalidArgs { message: format!("/files/{index}: {what}") };
    let id: ArtifactId =
        name.parse().map_err(|_| missing("is no id of an artifact or a released download"))?;
    let found = artifact::open(folder, space, id);
    let found = found.map_err(|_| missing("there is no such artifact in this Space"))?;
    let name = format!("{id}.{}", extension(&found.media_type));
    Ok(OutsideFile { name, file: found.file, bytes: found.bytes })
}

/// What the name of a file of this type ends in.
fn extension(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        _ => "bin",
    }
}
