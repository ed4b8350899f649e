//! One HTTP/1.1 connection that stays open: the least that a client can cost, so that the server is what is measured.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A connection to the server, bearing one token.
pub(crate) struct KeepAlive {
    stream: TcpStream,
    head: String,
    buffer: Vec<u8>,
}

/// One answer.
pub(crate) struct Answered {
    /// Its status.
    pub(crate) status: u16,
    body: Vec<u8>,
}

impl Answered {
    /// Its body.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).context("the answer is JSON")
    }

    /// Whether it shows a completed task; looked for in the bytes, so that reading them is not what is measured.
    pub(crate) fn shows_completed(&self) -> bool {
        const COMPLETED: &[u8] = br#""status":"completed""#;
        self.status == 200 && self.body.windows(COMPLETED.len()).any(|window| window == COMPLETED)
    }

    /// Its body as text, for a message.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl KeepAlive {
    /// Connects to `http://ADDRESS`.
    pub(crate) async fn connect(address: &str, token: &str) -> Result<Self> {
        let authority = address.strip_prefix("http://").context("an address begins with http://")?;
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "host: {authority}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\nprefer: wait=60\r\n"
        );
        Ok(Self { stream, head, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Posts a body and reads the answer.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<Answered> {
        let length = body.len();
        let request = format!("POST {path} HTTP/1.1\r\n{}content-length: {length}\r\n\r\n{body}", self.head);
        self.stream.write_all(request.as_bytes()).await?;
        self.read().await
    }

    async fn read(&mut self) -> Result<Answered> {
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|end| end == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head =
            std::str::from_utf8(&self.buffer[..head_end]).context("a head is text")?.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a status")?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.context("a content-length")?.trim().parse()?;
        while self.buffer.len() < head_end + length {
            self.more().await?;
        }
        let body = self.buffer[head_end..head_end + length].to_vec();
        self.buffer.drain(..head_end + length);
        Ok(Answered { status, body })
    }

    async fn more(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}
