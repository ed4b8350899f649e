//! Secrets by the name beside them: `token=…`, `password: …`, `"apiKey": "…"`, and keys of JSON objects.

use std::ops::Range;

use super::Json;

/// Longer names are no names.
const NAME_BYTES_MAX: usize = 64;
/// More backslashes before a quote are no escape of an escape.
const ESCAPES_MAX: usize = 8;
/// A bare value after a colon must be so long: `Password: yes` in a page is no secret, and a ref must stay usable.
const BARE_BYTES_MIN: usize = 4;
/// A value that may be harmless by its name (`code=1`) must be so long outside of a query.
const AMBIGUOUS_BYTES_MIN: usize = 6;

/// Names whose end, in any spelling, says that the value is a secret.
const SECRET_ENDS: &[&str] = &[
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "apikey",
    "api_key",
    "access_key",
    "accesskey",
    "private_key",
    "privatekey",
    "secret_key",
    "secretkey",
    "signing_key",
    "encryption_key",
    "session_id",
    "sessionid",
    "session_key",
    "sessid",
    "jwt",
    "authorization",
    "credential",
    "credentials",
    "one_time_code",
    "auth_code",
    "authorization_code",
    "verification_code",
    "security_code",
    "debugger_url",
    "saml_response",
    "samlresponse",
    "signature",
];
/// Names that are secret only as a word of their own (`user_pwd`, not `spwd`).
const SECRET_WORDS: &[&str] =
    &["cookie", "cookies", "pwd", "otp", "totp", "pin", "sid", "sig", "csrf", "xsrf", "cvv", "cvc", "bearer"];
/// Names that are secret wherever they stand in a name: `password2`, `newPasswordAgain`.
const SECRET_PARTS: &[&str] = &["password", "passwd", "passphrase"];
/// Names that are secret in a query, a fragment or form text, and common words elsewhere.
const QUERY_WORDS: &[&str] = &["code", "pass", "auth", "ticket", "assertion"];

/// How sure a name makes us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    Always,
    InQuery,
    Never,
}

/// Whether the value under this key of an object is a secret. A number under a plural (`max_tokens`) is a count.
pub(super) fn is_secret(key: &str, value: &Json) -> bool {
    match secrecy(key) {
        Secrecy::Always => !(value.is_number() && key.ends_with('s')),
        Secrecy::InQuery => value.is_string() && key.eq_ignore_ascii_case("session"),
        Secrecy::Never => false,
    }
}

fn secrecy(name: &str) -> Secrecy {
    let name = snake_case(name);
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    let is_last_word = |word: &&str| {
        name.strip_suffix(*word).is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    if SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || SECRET_WORDS.iter().any(&is_last_word)
    {
        Secrecy::Always
    } else if QUERY_WORDS.iter().any(is_last_word) || name.starts_with("session") {
        Secrecy::InQuery
    } else {
        Secrecy::Never
    }
}

/// `accessToken`, `Access-Token` and `access.token` as `access_token`.
fn snake_case(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut after_small = false;
    for letter in name.chars().take(4 * NAME_BYTES_MAX) {
        if letter.is_ascii_uppercase() && after_small {
            words.push('_');
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        words.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    words
}

/// The spans of `text` that are values of secret-looking names.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(separator) = next_separator(bytes, from) {
        from = separator.end;
        if let Some(span) = value_span(text, &separator) {
            // The value is done with: looking into it again would make the time quadratic.
            from = span.end.max(from);
            spans.push(span);
        }
    }
    spans
}

/// What stands between a name and its value.
struct Separator {
    start: usize,
    end: usize,
    kind: SeparatorKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SeparatorKind {
    Colon,
    Equals,
    /// `%3D`, in a URL inside a URL.
    Encoded,
}

fn next_separator(bytes: &[u8], from: usize) -> Option<Separator> {
    for (start, byte) in bytes.iter().enumerate().skip(from) {
        let (length, kind) = match byte {
            b':' => (1, SeparatorKind::Colon),
            b'=' => (1, SeparatorKind::Equals),
            b'%' => match encoded_length(&bytes[start..], b"3d") {
                Some(length) => (length, SeparatorKind::Encoded),
                None => continue,
            },
            _ => continue,
        };
        return Some(Separator { start, end: start + length, kind });
    }
    None
}

/// The length of `%xx`, `%25xx`, … at the start of `bytes`, if it is there.
fn encoded_length(bytes: &[u8], hex: &[u8; 2]) -> Option<usize> {
    let mut at = 1;
    while at <= 5 && bytes[at.min(bytes.len())..].starts_with(b"25") {
        at += 2;
    }
    let digits = bytes.get(at..at + 2)?;
    (bytes[0] == b'%' && digits.eq_ignore_ascii_case(hex)).then_some(at + 2)
}

fn value_span(text: &str, separator: &Separator) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_colon = separator.kind == SeparatorKind::Colon;
    let name = name_before(text, separator)?;
    let secrecy = secrecy(name.text);
    if secrecy == Secrecy::Never || is_colon && (secrecy == Secrecy::InQuery || is_header(name.text)) {
        return None;
    }
    let in_query = name.in_query && !is_colon;
    let blanks = if in_query { 0 } else { count_while(&bytes[separator.end..], is_blank) };
    let start = separator.end + blanks;
    // `"Password:" [ref=e5]`: the quote ends a label and opens no value.
    let quote_ends_label = is_colon && blanks == 0 && !name.quoted;
    if let Some(span) = (!quote_ends_label).then(|| quoted_value(text, start)).flatten() {
        return Some(span);
    }
    match bytes.get(start)? {
        b'[' | b'{' | b':' if is_colon => return None,
        b'=' if !in_query => return None,
        _ => {}
    }
    let length = bare_length(&bytes[start..], separator.kind == SeparatorKind::Encoded);
    let length_min = match secrecy {
        _ if is_colon => BARE_BYTES_MIN,
        Secrecy::InQuery if !in_query => AMBIGUOUS_BYTES_MIN,
        _ => 1,
    };
    (length >= length_min).then(|| start..start + length)
}

/// These are looked for as whole lines (`pattern.rs`), since their values have a form of their own.
fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("authorization") || name.ends_with("cookie")
}

/// A name before a separator.
struct Name<'a> {
    text: &'a str,
    quoted: bool,
    /// It stands where names of a query, a fragment or form text stand.
    in_query: bool,
}

fn name_before<'a>(text: &'a str, separator: &Separator) -> Option<Name<'a>> {
    let bytes = &text.as_bytes()[..separator.start];
    let blanks = count_back(bytes, 4, is_blank);
    let mut end = bytes.len() - blanks;
    let quoted = matches!(bytes[..end].last(), Some(b'"' | b'\''));
    if quoted {
        end -= 1;
        end -= count_back(&bytes[..end], ESCAPES_MAX, |byte| byte == b'\\');
    }
    // `user[password]=…`, as forms of some frameworks write it.
    end -= count_back(&bytes[..end], 1, |byte| byte == b']');
    let mut start = end - count_back(&bytes[..end], NAME_BYTES_MAX, is_name_byte);
    let mut in_query = match bytes[..start].last() {
        None => blanks == 0,
        Some(before) => blanks == 0 && b"?&#;[".contains(before),
    };
    if bytes[..start].last() == Some(&b'%') {
        // `%26code%3D…`: the digits of the escape look like a part of the name.
        while text[start..end].starts_with("25") {
            start += 2;
        }
        start = (start + 2).min(end);
        in_query = true;
    }
    if text[start..end].eq_ignore_ascii_case("key") && bytes[..start].last() == Some(&b' ') {
        // "API key: …": the word before it decides.
        start -= 1 + count_back(&bytes[..start - 1], NAME_BYTES_MAX, is_name_byte);
    }
    (start < end).then(|| Name { text: &text[start..end], quoted, in_query })
}

/// The inside of a quoted value; `None` if there is no quote, or it does not close on its line.
fn quoted_value(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let escapes = count_while(&bytes[at..], |byte| byte == b'\\');
    if escapes > ESCAPES_MAX {
        return None;
    }
    let quote = *bytes.get(at + escapes).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let start = at + escapes + 1;
    let mut run = 0;
    for (offset, byte) in bytes[start..].iter().enumerate() {
        match *byte {
            b'\n' | b'\r' => return None,
            b'\\' => run += 1,
            // A quote with more backslashes than the opening one had belongs to the value.
            byte if byte == quote && (run <= escapes || (escapes == 0 && run % 2 == 0)) => {
                let span = start..start + offset - run.min(escapes);
                return (!span.is_empty() && bytes[start] != b' ').then_some(span);
            }
            _ => run = 0,
        }
    }
    None
}

fn bare_length(bytes: &[u8], encoded: bool) -> usize {
    bytes
        .iter()
        .enumerate()
        .position(|(at, byte)| {
            byte.is_ascii_whitespace()
                || byte.is_ascii_control()
                || b"&\"<>#\\".contains(byte)
                || (encoded && *byte == b'%' && encoded_length(&bytes[at..], b"26").is_some())
        })
        .unwrap_or(bytes.len())
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn count_while(bytes: &[u8], holds: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| holds(**byte)).count()
}

fn count_back(bytes: &[u8], max: usize, holds: impl Fn(u8) -> bool) -> usize {
    bytes.iter().rev().take(max).take_while(|byte| holds(**byte)).count()
}
