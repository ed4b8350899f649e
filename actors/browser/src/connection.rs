//! One debugging connection: commands out, answers and events in, over any byte stream.
//!
//! ```text
//!   call() ──► calls ──┐                    ┌──► pending[id] ──► the waiting call
//!                      ├──► writer ▷ pipe ▷ reader
//!   post() ──► posts ──┘                    └──► Listener::event (in order, before later answers)
//! ```
//!
//! The reader hands events to the listener synchronously: what an event changed is seen by whoever waits for a
//! later answer. At the end of the stream the pending map is *taken*, so every waiter fails at once and no later
//! call can wait for an answer that will not come. Deadlines, tabs and pages are the business of others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use chromiumoxide_types::Command;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{debug, trace};

use crate::wire::{Envelope, Frame, MESSAGE_BYTES_MAX, Splitter, repair_surrogates};

/// Commands that may wait for the writer before a caller has to wait itself.
const CALLS_CAPACITY: usize = 256;

/// Commands that the listener may have queued. A browser that leaves more unread is treated as gone.
const POSTS_CAPACITY: usize = 4096;

/// Why the far end of a call no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The connection ended: the browser is gone.
    Closed,
    /// The session ended: its tab or frame is gone.
    Detached,
    /// The renderer of the session crashed.
    Crashed,
}

/// Why one command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Whoever should have answered is gone.
    #[error("the browser end is gone ({0:?})")]
    Gone(Gone),
    /// The browser refused the command; nothing else is wrong.
    #[error("{method} was refused ({code}): {message}")]
    Refused {
        /// The command's name.
        method: String,
        /// The code of the refusal.
        code: i64,
        /// The browser's words; may hold page text.
        message: String,
    },
    /// The answer was longer than a message may be, and was dropped.
    #[error("the answer to {method} was too large")]
    TooLarge {
        /// The command's name.
        method: String,
    },
    /// The command could not be written, or its answer not read, as JSON.
    #[error("{method} has an unexpected shape")]
    Shape {
        /// The command's name.
        method: String,
        /// What the decoder said.
        #[source]
        source: serde_json::Error,
    },
    /// The deadline of the call passed.
    #[error("{method} was not answered in time")]
    Overdue {
        /// The command's name.
        method: String,
    },
}

/// Something that the browser reported by itself.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The event's name, e.g. `Page.frameNavigated`.
    pub method: &'a str,
    /// The session that it belongs to; none for the browser itself.
    pub session: Option<&'a str>,
    /// Its params, not decoded.
    pub params: &'a str,
}

/// Takes every event of a connection, in order.
pub trait Listener: Send + 'static {
    /// Called for each event, on the reader: it must not block.
    fn event(&mut self, connection: &Connection, event: Event<'_>);
    /// Called once, when the connection has ended.
    fn closed(&mut self);
}

struct Pending {
    session: Option<Arc<str>>,
    answer: oneshot::Sender<Result<Bytes, Failure>>,
}

enum Failure {
    Gone(Gone),
    Refused { code: i64, message: String },
    TooLarge,
}

struct Shared {
    next_id: AtomicU64,
    /// `None` once the connection has ended.
    pending: Mutex<Option<HashMap<u64, Pending>>>,
    calls: mpsc::Sender<Vec<u8>>,
    posts: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
}

/// One debugging connection. Cheap to clone; all clones are the same connection.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Speaks the protocol over `stream` until it ends or [`Connection::close`] is called.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static, listener: impl Listener) -> Self {
        Self::with_message_limit(stream, listener, MESSAGE_BYTES_MAX)
    }

    fn with_message_limit(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        listener: impl Listener,
        limit: usize,
    ) -> Self {
        let (read, write) = tokio::io::split(stream);
        let (calls, calls_out) = mpsc::channel(CALLS_CAPACITY);
        let (posts, posts_out) = mpsc::channel(POSTS_CAPACITY);
        let connection = Self(Arc::new(Shared {
            next_id: AtomicU64::new(1),
            pending: Mutex::new(Some(HashMap::new())),
            calls,
            posts,
            stop: CancellationToken::new(),
        }));
        tokio::spawn(write_all(write, calls_out, posts_out, connection.0.stop.clone()));
        tokio::spawn(read_all(connection.clone(), read, listener, limit));
        connection
    }

    /// Ends the connection; all waiting calls fail with [`Gone::Closed`].
    pub fn close(&self) {
        self.0.stop.cancel();
    }

    /// Sends `command` and waits for its raw result. Dropping the future forgets the answer.
    pub(crate) async fn call_raw<C: Command>(
        &self,
        session: Option<&Arc<str>>,
        command: &C,
    ) -> Result<Bytes, CallError> {
        let method = command.identifier();
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let message = encode(id, session, command)?;
        let (answer, answered) = oneshot::channel();
        match self.0.pending.lock().as_mut() {
            Some(pending) => pending.insert(id, Pending { session: session.cloned(), answer }),
            None => return Err(CallError::Gone(Gone::Closed)),
        };
        let _forget = Forget { connection: self, id };
        if self.0.calls.send(message).await.is_err() {
            return Err(CallError::Gone(Gone::Closed));
        }
        let sent = Instant::now();
        let answer = answered.await;
        trace!(%method, took_us = micros(sent), "A command was answered.");
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(Failure::Gone(gone))) => Err(CallError::Gone(gone)),
            Ok(Err(Failure::TooLarge)) => Err(CallError::TooLarge { method: method.into_owned() }),
            Ok(Err(Failure::Refused { code, message })) => {
                Err(CallError::Refused { method: method.into_owned(), code, message })
            }
            Err(_) => Err(CallError::Gone(Gone::Closed)),
        }
    }

    /// Sends `command` without waiting and without an interest in its result.
    ///
    /// For the listener, which must not wait: posts are written in their order, before queued calls.
    pub(crate) fn post<C: Command>(&self, session: Option<&Arc<str>>, command: &C) {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let queued = encode(id, session, command).map(|message| self.0.posts.try_send(message).is_ok());
        if !matches!(queued, Ok(true)) {
            debug!(method = %command.identifier(), "A posted command could not be queued; the connection ends.");
            self.close();
        }
    }

    /// Fails all calls that wait on `session`.
    pub(crate) fn fail_session(&self, session: &str, gone: Gone) {
        let mut lost = Vec::new();
        if let Some(pending) = self.0.pending.lock().as_mut() {
            let ids: Vec<u64> = pending
                .iter()
                .filter(|(_, call)| call.session.as_deref() == Some(session))
                .map(|(id, _)| *id)
                .collect();
            lost.extend(ids.into_iter().filter_map(|id| pending.remove(&id)));
        }
        for call in lost {
            // The caller may have stopped waiting.
            let _ = call.answer.send(Err(Failure::Gone(gone)));
        }
    }

    fn answer(&self, id: u64, result: Result<Bytes, Failure>) {
        let call = self.0.pending.lock().as_mut().and_then(|pending| pending.remove(&id));
        if let Some(call) = call {
            // The caller may have stopped waiting.
            let _ = call.answer.send(result);
        }
    }
}

/// Whole microseconds since `then`.
fn micros(then: Instant) -> u64 {
    u64::try_from(then.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Removes a pending call when its future is dropped.
struct Forget<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(pending) = self.connection.0.pending.lock().as_mut() {
            pending.remove(&self.id);
        }
    }
}

fn encode<C: Command>(id: u64, session: Option<&Arc<str>>, command: &C) -> Result<Vec<u8>, CallError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Message<'a, C> {
        id: u64,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a str>,
        params: &'a C,
    }
    let method = command.identifier();
    let message = Message { id, method: &method, session_id: session.map(|id| &**id), params: command };
    let mut bytes = serde_json::to_vec(&message)
        .map_err(|source| CallError::Shape { method: method.clone().into_owned(), source })?;
    bytes.push(0);
    Ok(bytes)
}

async fn write_all(
    mut pipe: impl AsyncWrite + Unpin,
    mut calls: mpsc::Receiver<Vec<u8>>,
    mut posts: mpsc::Receiver<Vec<u8>>,
    stop: CancellationToken,
) {
    loop {
        let message = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(message) = posts.recv() => message,
            Some(message) = calls.recv() => message,
            else => break,
        };
        let written = tokio::select! {
            () = stop.cancelled() => break,
            written = pipe.write_all(&message) => written,
        };
        if written.is_err() {
            break;
        }
    }
    stop.cancel();
    // The far end may be gone already.
    let _ = pipe.shutdown().await;
}

async fn read_all(
    connection: Connection,
    mut pipe: impl AsyncRead + Unpin,
    mut listener: impl Listener,
    limit: usize,
) {
    let mut splitter = Splitter::new(limit);
    let mut chunk = vec![0; 256 * 1024];
    loop {
        let read = tokio::select! {
            () = connection.0.stop.cancelled() => break,
            read = pipe.read(&mut chunk) => read,
        };
        match read {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                splitter.push(&chunk[..count], |frame| dispatch(&connection, &mut listener, frame));
            }
        }
    }
    connection.close();
    let waiting = connection.0.pending.lock().take();
    for (_, call) in waiting.into_iter().flatten() {
        // The caller may have stopped waiting.
        let _ = call.answer.send(Err(Failure::Gone(Gone::Closed)));
    }
    listener.closed();
}

fn dispatch(connection: &Connection, listener: &mut impl Listener, frame: Frame) {
    let frame = match frame {
        Frame::Message(mut frame) => {
            repair_surrogates(&mut frame);
            Bytes::from(frame)
        }
        Frame::Oversized(Some(id)) => return connection.answer(id, Err(Failure::TooLarge)),
        Frame::Oversized(None) => return debug!("An oversized event was dropped."),
    };
    let envelope: Envelope<'_> = match serde_json::from_slice(&frame) {
        Ok(envelope) => envelope,
        Err(error) => {
            return debug!(category = ?error.classify(), "A message that is no envelope was dropped.");
        }
    };
    if let Some(method) = &envelope.method {
        let params = envelope.params.map_or("{}", RawValue::get);
        listener.event(connection, Event { method, session: envelope.session.as_deref(), params });
        return;
    }
    let Some(id) = envelope.id else { return };
    let result = match envelope.error {
        // -32001: the browser no longer knows the session.
        Some(error) if error.code == -32001 => Err(Failure::Gone(Gone::Detached)),
        Some(error) => Err(Failure::Refused { code: error.code, message: error.message }),
        None => {
            Ok(envelope.result.map_or_else(Bytes::new, |result| frame.slice_ref(result.get().as_bytes())))
        }
    };
    connection.answer(id, result);
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
