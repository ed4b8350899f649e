//! A session: the part of a connection that talks to one page, one cross-process frame, or the browser itself.

use std::sync::Arc;

use bytes::Bytes;
use chromiumoxide_types::{Command, Method};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::connection::{CallError, Connection};

/// Where a command goes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Session {
    connection: Connection,
    id: Option<Arc<str>>,
}

impl Session {
    /// The session of the browser itself.
    pub fn browser(connection: Connection) -> Self {
        Self { connection, id: None }
    }

    pub(crate) fn attached(connection: Connection, id: Arc<str>) -> Self {
        Self { connection, id: Some(id) }
    }

    pub(crate) fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// Sends `command` and decodes its result.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Overdue`] once `deadline` has passed.
    pub async fn call<C: Command>(&self, command: &C, deadline: Instant) -> Result<C::Response, CallError> {
        self.fetch(command, deadline).await
    }

    /// Like [`Session::call`], decoded to a narrower shape: a field that we do not read cannot fail the call.
    pub(crate) async fn fetch<C: Command, R: DeserializeOwned>(
        &self,
        command: &C,
        deadline: Instant,
    ) -> Result<R, CallError> {
        let result = self.call_raw(command, deadline).await?;
        serde_json::from_slice(&result)
            .map_err(|source| CallError::Shape { method: command.identifier().into_owned(), source })
    }

    /// Like [`Session::call`], not decoded at all.
    pub(crate) async fn call_raw<C: Command + Method>(
        &self,
        command: &C,
        deadline: Instant,
    ) -> Result<Bytes, CallError> {
        match timeout_at(deadline, self.connection.call_raw(self.id.as_ref(), command)).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Overdue { method: command.identifier().into_owned() }),
        }
    }

    /// Sends `command` without waiting for its result.
    pub(crate) fn post<C: Command>(&self, command: &C) {
        self.connection.post(self.id.as_ref(), command);
    }
}
