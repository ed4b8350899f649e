//! What a file is: by what its name says, and by what its first bytes say. Neither is trusted; both are told, side by side.

/// What is known of nothing else.
const UNKNOWN: &str = "application/octet-stream";
/// So many bytes are looked at.
pub(super) const SNIFFED_BYTES: usize = 1_024;

const CLAIMS: &[(&str, &str)] = &[
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("exe", "application/vnd.microsoft.portable-executable"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/vnd.microsoft.portable-executable"),
    (b"#!", "text/x-shellscript"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
];

/// Beginnings of markup, in lower case.
const MARKUP: &[(&str, &str)] = &[
    ("<!doctype html", "text/html"),
    ("<html", "text/html"),
    ("<head", "text/html"),
    ("<body", "text/html"),
    ("<script", "text/html"),
    ("<iframe", "text/html"),
    ("<svg", "image/svg+xml"),
    ("<?xml", "application/xml"),
];

/// What a name says that its file is.
pub(super) fn claimed(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    CLAIMS.iter().find(|(known, _)| *known == extension).map_or(UNKNOWN, |(_, media_type)| media_type)
}

/// What the first bytes say that a file is.
pub(super) fn sniffed(first: &[u8]) -> &'static str {
    if first.is_empty() {
        return UNKNOWN;
    }
    if let Some((_, media_type)) = MAGIC.iter().find(|(magic, _)| first.starts_with(magic)) {
        return media_type;
    }
    if first.starts_with(b"RIFF") && first.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    let Some(text) = text(first) else { return UNKNOWN };
    let start = text.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    MARKUP
        .iter()
        .find(|(begin, _)| start.starts_with(begin))
        .map_or("text/plain", |(_, media_type)| media_type)
}

/// The bytes as text, if that is what they are; the last character may be cut.
fn text(first: &[u8]) -> Option<&str> {
    let whole = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&first[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\x0c');
    whole.chars().all(is_plain).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_comes_from_its_bytes_whatever_it_is_called() {
        for (bytes, media_type) in [
            (&b"%PDF-1.7"[..], "application/pdf"),
            (b"MZ\x90\x00", "application/vnd.microsoft.portable-executable"),
            (b"\xef\xbb\xbf <!DOCTYPE html><p>", "text/html"),
            (b"name,price\n\xc3", "text/plain"),
            (b"a\x00b", UNKNOWN),
            (b"", UNKNOWN),
        ] {
            assert_eq!(sniffed(bytes), media_type, "{bytes:?}");
        }
        assert_eq!(claimed("invoice.PDF"), "application/pdf");
        assert_eq!([claimed("invoice"), claimed("invoice.pdf.exe\u{202e}")], [UNKNOWN, UNKNOWN]);
    }
}
