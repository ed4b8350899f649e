//! The standard output: the only way to it, so that a reader who leaves (as `head` does) ends every command quietly.

use std::io::{self, BufWriter, Stdout, Write};

/// Whoever read our output has gone: no failure of ours, and nothing is left to be done.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
pub(super) struct ReaderGone;

/// Whether a command ended because of that.
pub(super) fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ReaderGone>().is_some()
}

/// Writes the text, all of it, at once.
pub(super) fn write(text: &str) -> anyhow::Result<()> {
    let mut output = Output::new();
    output.write(text)?;
    output.flush()
}

/// Writes one line, at once.
pub(super) fn line(text: &str) -> anyhow::Result<()> {
    write(&format!("{text}\n"))
}

/// For much output: written in large pieces.
pub(super) struct Output(BufWriter<Stdout>);

impl Output {
    pub(super) fn new() -> Self {
        Self(BufWriter::new(io::stdout()))
    }

    pub(super) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        self.0.write_all(text.as_bytes()).map_err(told)
    }

    /// Hands over what was written so far.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.0.flush().map_err(told)
    }
}

fn told(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ReaderGone.into();
    }
    anyhow::Error::new(error).context("the output can not be written")
}
