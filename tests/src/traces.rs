//! Looking for what must not be there: secrets in files and text, processes of a folder.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// A secret that a test plants, and every form in which a careless program would let it out.
#[derive(Debug, Clone)]
pub struct Planted {
    name: &'static str,
    forms: Vec<Vec<u8>>,
}

impl Planted {
    /// Plants `secret`; `name` says where, for the failure's message.
    #[must_use]
    pub fn new(name: &'static str, secret: &str) -> Self {
        let hex = secret.bytes().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string succeeds");
            text
        });
        let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let forms =
            [secret.as_bytes().to_vec(), hex.clone().into_bytes(), hex.to_uppercase().into_bytes(), wide];
        Self { name, forms: forms.into_iter().chain(base64_cores(secret.as_bytes())).collect() }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        self.forms.iter().any(|form| holds(bytes, form))
    }

    /// Checks that none of `planted` is in `text`.
    ///
    /// # Panics
    /// When one is; the message names it and shows what stands before it.
    #[track_caller]
    pub fn none_in_text(planted: &[Self], place: &str, text: &str) {
        for secret in planted {
            assert!(
                !secret.is_in(text.as_bytes()),
                "{} leaked into {place}:\n{}",
                secret.name,
                around(secret, text)
            );
        }
    }

    /// Checks that none of `planted` is in any file below `folder`, nor in any file's name.
    ///
    /// # Panics
    /// When one is, or when there was no file to look at.
    #[track_caller]
    pub fn none_in_folder(planted: &[Self], folder: &Path) {
        let mut files = Vec::new();
        collect(folder, &mut files);
        assert!(files.len() > 2, "there is something to search in {}", folder.display());
        for file in &files {
            // A file may go while we look: a browser's profile, a closed segment's temporary name.
            let Ok(bytes) = fs::read(file) else { continue };
            let name = file.strip_prefix(folder).unwrap_or(file).to_string_lossy().into_owned();
            for secret in planted {
                assert!(!secret.is_in(&bytes), "{} leaked into the file {name}", secret.name);
                assert!(!secret.is_in(name.as_bytes()), "{} leaked into the name of {name}", secret.name);
            }
        }
    }
}

fn around(secret: &Planted, text: &str) -> String {
    let plain = String::from_utf8_lossy(&secret.forms[0]).into_owned();
    let at = text.find(&plain).unwrap_or(0);
    let from = text.floor_char_boundary(at.saturating_sub(400));
    text[from..text.floor_char_boundary(at + 200)].to_owned()
}

fn holds(bytes: &[u8], form: &[u8]) -> bool {
    let Some(first) = form.first() else { return false };
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| byte == first) {
        if bytes[from + at..].starts_with(form) {
            return true;
        }
        from += at + 1;
    }
    false
}

/// The part of the base64 form that does not depend on what stands around the secret, for each of the three offsets.
fn base64_cores(secret: &[u8]) -> Vec<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextet = |bits: u32, shift: u32| ALPHABET[(bits >> shift) as usize & 63];
    let encode = |whole: &[u8]| -> Vec<u8> {
        whole
            .chunks_exact(3)
            .flat_map(|three| {
                let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
                [sextet(bits, 18), sextet(bits, 12), sextet(bits, 6), sextet(bits, 0)]
            })
            .collect()
    };
    (0..3).filter_map(|skip| secret.get(skip..)).map(encode).filter(|core| core.len() >= 12).collect()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), into),
            Ok(kind) if kind.is_file() => into.push(entry.path()),
            _ => {}
        }
    }
}

/// The pids of the processes whose command line names `needle`, zombies left out.
#[must_use]
pub fn processes_naming(needle: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let names = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        holds(&line, needle.as_bytes())
    };
    pids.filter(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_secret_is_found_in_every_form() {
        let planted = Planted::new("here", "PLANTED-secret-0123456789");
        for text in [
            "x PLANTED-secret-0123456789 y",
            "504c414e5445442d7365637265742d30313233343536373839",
            "aGVyZTogUExBTlRFRC1zZWNyZXQtMDEyMzQ1Njc4OQ==",
            "YTpQTEFOVEVELXNlY3JldC0wMTIzNDU2Nzg5",
        ] {
            assert!(planted.is_in(text.as_bytes()), "{text}");
        }
        assert!(!planted.is_in(b"PLANTED-secret-012345678"));
    }
}
