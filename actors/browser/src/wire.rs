//! The framing of the debugging pipe: JSON messages, each ended by a NUL byte.
//!
//! Only the envelope is decoded here. Params and results stay raw, so an unknown method or field can never fail
//! the connection; a result that does not decode fails the one call that asked for it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The longest message that is kept, in bytes. A longer answer fails its call with "too large".
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How much of an oversized message is kept, to find the call that it answers.
const HEAD_BYTES: usize = 64;

/// One message from the browser, borrowed from its frame.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<'a> {
    pub(crate) id: Option<u64>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    pub(crate) session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<ProtocolError>,
}

/// The browser's refusal of one command (JSON-RPC 2.0, section 5.1).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ProtocolError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// One frame cut out of the byte stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A complete message, without its NUL.
    Message(Vec<u8>),
    /// A message beyond [`MESSAGE_BYTES_MAX`] was dropped; the call that it answered, if it was an answer.
    Oversized(Option<u64>),
}

/// Cuts the byte stream into frames, holding at most one message.
#[derive(Debug)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    limit: usize,
    dropping: bool,
}

impl Splitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), limit, dropping: false }
    }

    /// Takes the next bytes of the stream and hands every finished frame to `each`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            self.keep(&bytes[..end]);
            let frame = std::mem::take(&mut self.buffer);
            if std::mem::take(&mut self.dropping) {
                each(Frame::Oversized(leading_id(&frame)));
            } else {
                each(Frame::Message(frame));
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.dropping {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > self.limit {
            self.buffer.truncate(HEAD_BYTES);
            self.buffer.shrink_to_fit();
            self.dropping = true;
        }
    }
}

/// The id of an answer, read from the first bytes of a message: Chromium writes it first.
fn leading_id(head: &[u8]) -> Option<u64> {
    let digits = head.strip_prefix(b"{\"id\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Replaces every lone surrogate escape by U+FFFD, in place.
///
/// Page text may hold half of a surrogate pair. JSON can spell it, Rust strings cannot, and one such character
/// would fail the decoding of a whole tree.
pub(crate) fn repair_surrogates(json: &mut [u8]) {
    let mut at = 0;
    while at + 1 < json.len() {
        if json[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(json, at) {
            Some(high) if (0xD800..0xDC00).contains(&high) => match unit(json, at + 6) {
                Some(low) if (0xDC00..0xE000).contains(&low) => at += 12,
                _ => at = replace(json, at),
            },
            Some(low) if (0xDC00..0xE000).contains(&low) => at = replace(json, at),
            Some(_) => at += 6,
            None => at += 2,
        }
    }
}

fn replace(json: &mut [u8], at: usize) -> usize {
    json[at..at + 6].copy_from_slice(b"\\ufffd");
    at + 6
}

fn unit(json: &[u8], at: usize) -> Option<u16> {
    let escape = json.get(at..at + 6)?;
    let hex = escape.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Frame> {
        let mut splitter = Splitter::new(limit);
        let mut frames = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |frame| frames.push(frame));
        }
        frames
    }

    #[test]
    fn a_message_may_arrive_in_pieces_and_two_may_arrive_at_once() {
        let frames = split(100, &[b"{\"a\"", b":1}\0{}", b"\0"]);
        assert_eq!(frames, [Frame::Message(b"{\"a\":1}".to_vec()), Frame::Message(b"{}".to_vec())]);
    }

    #[test]
    fn an_oversized_answer_names_its_call_and_the_next_message_is_intact() {
        let long = [b"{\"id\":42,\"result\":\"".to_vec(), vec![b'x'; 300], b"\"}\0{}\0".to_vec()].concat();
        let frames = split(100, &[&long[..150], &long[150..]]);
        assert_eq!(frames, [Frame::Oversized(Some(42)), Frame::Message(b"{}".to_vec())]);
    }

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character_and_a_pair_stays() {
        let mut json = br#"["\ud83d","\ud83d\ude00","\\ud83d","\udc00x"]"#.to_vec();
        repair_surrogates(&mut json);
        let texts: Vec<String> = serde_json::from_slice(&json).expect("the text is valid JSON now");
        assert_eq!(texts, ["\u{fffd}", "\u{1f600}", "\\ud83d", "\u{fffd}x"]);
    }
}
