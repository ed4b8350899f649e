//! What is a secret by its form, whatever stands beside it.
//!
//! One pass of a set tells which patterns occur at all; most texts end there. Each pattern's first group is the
//! secret part. Word boundaries are ASCII: the Unicode ones make the matcher fall back to its slow engine.

use std::{ops::Range, sync::LazyLock};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use regex::{Captures, Regex, RegexSet};

type Check = fn(&str) -> bool;

const PATTERNS: &[(&str, Check)] = &[
    // Authorization: a scheme that we know may stay; RFC 9110, section 11.6.2.
    (
        r#"(?i)authorization\\*["']?[ \t]*:[ \t]*\\*["']?(?:basic|bearer|token|apikey)(?:[ \t]+|%20|\+)([^\s"'\\]+)"#,
        always,
    ),
    (r#"(?i)authorization\\*["']?[ \t]*:[ \t]*\\*["']([^\r\n"'\\]+)"#, is_other_scheme),
    (r#"(?i)authorization\\*["']?[ \t]*:[ \t]*([^\s"'\\][^\r\n]*)"#, is_other_scheme),
    // Cookie, Set-Cookie: the whole line; RFC 6265, sections 4.1 and 4.2.
    (r#"(?i)cookie2?\\*["']?[ \t]*:[ \t]*\\*["']?((?:[^\s=;"'\\]+=|[^\s"'\\]{16})[^\r\n"\\]*)"#, always),
    // A bearer token without its header; RFC 6750, section 2.1.
    (r#"(?i)(?-u:\b)bearer(?:[ \t]+|%20|\+)([A-Za-z0-9._~+/=%-]{4,})"#, is_no_word_after_bearer),
    // Basic credentials without their header; RFC 7617, section 2.
    (r"(?i)(?-u:\b)basic(?:[ \t]+|%20|\+)([A-Za-z0-9+/_-]{4,}={0,2})", is_basic_credentials),
    // Userinfo; RFC 3986, section 3.2.1. Browsers take the last @, so this does too.
    (r#"://([^\s/?\#"'<>\\]+)@"#, always),
    (r"(?i)%3A%2F%2F((?:[A-Za-z0-9._~!$'()*+,;=:-]|%[013-9A-F][0-9A-F]|%2[0-9A-E])+)%40", always),
    // Endpoints that let whoever has them drive a browser or a display.
    (r#"(?i)(?-u:\b)wss?(?:://|=|%3A%2F%2F)([^\s"'<>]*/devtools/[^\s"'<>\\]*)"#, always),
    (r#"(?i)(?-u:\b)wss?%3A%2F%2F([^\s"'<>&]*%2Fdevtools%2F[^\s"'<>&\\]*)"#, always),
    (r#"(?i)(?-u:\b)vnc://([^\s"'<>\\]+)"#, always),
    // Private keys; RFC 7468. One that does not end is taken to the end of the text.
    (r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(.*?)(?:-----END|\z)", always),
    // JSON Web Tokens, signed (3 parts) and encrypted (5 parts); RFC 7515, RFC 7516.
    (r"(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,4})", is_random),
    // Tokens that begin in a way that is theirs alone.
    (
        r"(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|bst_[A-Za-z0-9_-]{8,}|xox[abeprs]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,})",
        is_random,
    ),
    (r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,})", always),
    (
        r"(?-u:\b)(sk-[A-Za-z0-9_-]{16,}|(?:[prs]k|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        is_random,
    ),
];

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(PATTERNS.iter().map(|(pattern, _)| pattern)).expect("the patterns above are well formed")
});

static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compile = |(pattern, _): &(&str, Check)| Regex::new(pattern);
    PATTERNS.iter().map(compile).collect::<Result<_, _>>().expect("the patterns above are well formed")
});

/// Adds the spans of `text` that are secrets by their form.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    for index in &SET.matches(text) {
        let is_secret = PATTERNS[index].1;
        let secret = |found: Captures<'_>| {
            let part = found.get(1).filter(|part| is_secret(part.as_str()))?;
            Some(part.range())
        };
        spans.extend(EACH[index].captures_iter(text).filter_map(secret));
    }
}

fn always(_: &str) -> bool {
    true
}

/// The first pattern masks what follows these; of any other scheme the whole line may be secret.
fn is_other_scheme(part: &str) -> bool {
    let scheme = part.split([' ', '\t', '+', '%']).next().unwrap_or_default();
    scheme.len() == part.len()
        || !["basic", "bearer", "token", "apikey"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Names and identifiers of a program's source can begin like a token; they hold small letters only.
fn is_random(part: &str) -> bool {
    part.bytes().skip(4).any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// "Bearer token", "bearer authentication", `Bearer realm="…"` speak of tokens and are none.
fn is_no_word_after_bearer(part: &str) -> bool {
    const WORDS: &[&str] = &[
        "token",
        "tokens",
        "auth",
        "authentication",
        "authorization",
        "scheme",
        "format",
        "header",
        "headers",
        "credentials",
        "prefix",
        "bonds",
        "shares",
    ];
    let word = part.trim_end_matches(['.', '=', '-']).to_ascii_lowercase();
    !WORDS.contains(&word.as_str()) && !part.starts_with("realm=") && !part.starts_with("error=")
}

/// `Basic` is a common word; what follows it counts only if it decodes to `user:password`.
fn is_basic_credentials(part: &str) -> bool {
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let alphabet = if part.contains(['-', '_']) { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    GeneralPurpose::new(alphabet, CONFIG).decode(part).is_ok_and(|bytes| bytes.contains(&b':'))
}
