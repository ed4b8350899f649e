//! The web console: files that were built from `api/console` and embedded by the build script, under a policy that lets
//! nothing run or load but them. It talks to `/api/v1` like any other client; nothing here knows a token.

use axum::{
    extract::Request,
    http::{HeaderName, StatusCode, header},
    response::{Html, IntoResponse as _, Response},
};

use crate::problem::{Code, Problem};

/// Address and bytes of every file; empty where the console was not built.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// Scripts and styles are files of ours. Pictures may also be blobs: artifacts are fetched with the token, and shown from
/// memory. Text becomes markup only through the one policy of the console's own framework.
const POLICY: (HeaderName, &str) = (
    header::CONTENT_SECURITY_POLICY,
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
     trusted-types svelte-trusted-html",
);

/// Names below it hold a hash of the content.
const HASHED: &str = "/assets/";

const MISSING: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>browserspace</title></head><body>\
    <h1>This server was built without the web console</h1>\
    <p>On a machine with Node 20.19 or later: <code>cargo xtask console</code>, then build the server again.</p>\
    <p>Everything else works: <a href=\"/docs\">the API</a>.</p></body></html>";

/// `GET /`
pub(crate) async fn page() -> Response {
    file("/index.html").unwrap_or_else(|| (StatusCode::NOT_FOUND, Html(MISSING)).into_response())
}

/// `GET /assets/…` and `GET /favicon.svg`
pub(crate) async fn asset(request: Request) -> Result<Response, Problem> {
    file(request.uri().path()).ok_or_else(|| Problem::new(Code::RouteNotFound))
}

fn file(address: &str) -> Option<Response> {
    let (_, bytes) = FILES.iter().find(|(known, _)| *known == address)?;
    let caching =
        if address.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let own = [
        (header::CONTENT_TYPE, media_type(address)),
        (header::CACHE_CONTROL, caching),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        POLICY,
    ];
    Some((own, *bytes).into_response())
}

fn media_type(address: &str) -> &'static str {
    match address.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_no_room_for_inline_code_or_foreign_hosts() {
        for open in ["unsafe", "*", "http:", "https:", "data:", "nonce"] {
            assert!(!POLICY.1.contains(open), "{open}");
        }
        assert!(POLICY.1.starts_with("default-src 'none'"));
    }

    #[test]
    fn what_was_built_in_holds_a_page_or_nothing() {
        let has_page = FILES.iter().any(|(address, _)| *address == "/index.html");
        assert_eq!(has_page, !FILES.is_empty());
        assert!(FILES.iter().all(|(address, _)| media_type(address) != "application/octet-stream"));
    }

    #[tokio::test]
    async fn the_front_page_is_the_console_or_says_how_to_get_it() {
        let response = page().await;
        if FILES.is_empty() {
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            assert!(MISSING.contains("cargo xtask console"));
        } else {
            assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], POLICY.1);
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
        }
    }

    #[test]
    fn an_address_outside_of_the_list_is_no_file() {
        for address in ["/assets/", "/assets/../index.html", "/index", "//index.html", ""] {
            assert!(file(address).is_none(), "{address}");
        }
    }
}
