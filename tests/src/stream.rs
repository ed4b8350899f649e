//! Reading server-sent events as their specification says (WHATWG HTML, section 9.2).

use std::{collections::VecDeque, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use reqwest::Response;
use serde_json::Value;

use crate::Transcript;

/// How long the next event may take to come.
const NEXT_TIMEOUT: Duration = Duration::from_secs(30);

/// One event of a stream.
#[derive(Debug, Clone)]
pub struct SseEvent {
    /// Its id, as text.
    pub id: Option<String>,
    /// Its data, as JSON.
    pub data: Value,
}

impl SseEvent {
    /// Its id as a number.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.id.as_ref().and_then(|id| id.parse().ok()).expect("the event has a number as id")
    }
}

/// An open stream.
pub struct Sse {
    bytes: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    buffer: Vec<u8>,
    ready: VecDeque<SseEvent>,
    /// How many comments came: heartbeats.
    pub comments: usize,
    transcript: Transcript,
}

impl Sse {
    pub(crate) fn new(response: Response, transcript: Transcript) -> Self {
        let bytes = response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec())).boxed();
        Self { bytes, buffer: Vec::new(), ready: VecDeque::new(), comments: 0, transcript }
    }

    /// The next event; `None` at the stream's end.
    ///
    /// # Panics
    /// When none comes in time.
    pub async fn next(&mut self) -> Option<SseEvent> {
        tokio::time::timeout(NEXT_TIMEOUT, self.pull()).await.expect("the next event comes in time")
    }

    /// The next `count` events.
    ///
    /// # Panics
    /// When the stream ends or stalls before that.
    pub async fn take(&mut self, count: usize) -> Vec<SseEvent> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            events.push(self.next().await.expect("the stream goes on"));
        }
        events
    }

    /// Waits for one more comment.
    ///
    /// # Panics
    /// When none comes in time, or an event or the end comes first.
    pub async fn heartbeat(&mut self) {
        let before = self.comments;
        let beat = async {
            while self.comments == before {
                assert!(self.ready.is_empty(), "an event came first");
                assert!(self.fill().await, "the stream goes on");
            }
        };
        tokio::time::timeout(NEXT_TIMEOUT, beat).await.expect("a heartbeat comes in time");
    }

    async fn pull(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Reads one chunk; `false` at the stream's end.
    async fn fill(&mut self) -> bool {
        let Some(Ok(chunk)) = self.bytes.next().await else { return false };
        self.transcript.add(&String::from_utf8_lossy(&chunk));
        self.buffer.extend_from_slice(&chunk);
        while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            self.take_block(&String::from_utf8_lossy(&block));
        }
        true
    }

    fn take_block(&mut self, block: &str) {
        let (mut id, mut data) = (None, Vec::new());
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" => self.comments += 1,
                "id" => id = Some(value.to_owned()),
                "data" => data.push(value),
                _ => {}
            }
        }
        if !data.is_empty() {
            let data = serde_json::from_str(&data.join("\n")).expect("an event's data is JSON");
            self.ready.push_back(SseEvent { id, data });
        }
    }
}
