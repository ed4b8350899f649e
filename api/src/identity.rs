//! Who calls, from which page, and under which name of ours: decided from headers alone, before anything else.
//!
//! A token stands in the `Authorization` header or nowhere (C4). `Host` must be a name of ours (C1, against DNS
//! rebinding) and `Origin`, where a browser sends one, exactly an origin of ours (C2). Nothing in here prints what it
//! refuses.

use axum::http::{HeaderMap, HeaderName, Uri, header};
use eventlog::Sensitive;

use crate::{
    limits::HttpConfig,
    problem::{Code, Problem},
};

/// The longest token that is looked at, in bytes. Ours have 47.
const TOKEN_BYTES_MAX: usize = 256;

/// Names of query parameters that carry secrets elsewhere; here they are refused.
const SECRET_PARAMETERS: &[&str] = &[
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "auth_token",
    "authorization",
    "bearer",
    "id_token",
    "jwt",
    "password",
    "refresh_token",
    "secret",
    "token",
];

/// What every token of ours begins with.
pub(crate) const TOKEN_PREFIX: &str = "bst_";

/// The token of a request: `Authorization: Bearer …`, once.
///
/// Source: RFC 6750, section 2.1; RFC 9110, section 11.1 (the scheme's case does not matter).
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<Sensitive<String>> {
    let text = only(headers, &header::AUTHORIZATION)?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim_start_matches(' ');
    let is_token = !token.is_empty()
        && token.len() <= TOKEN_BYTES_MAX
        && token.bytes().all(|byte| byte.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then(|| Sensitive::new(token.to_owned()))
}

/// Refuses an address that carries a token; the refusal does not print it (F10).
///
/// # Errors
/// `unauthenticated`.
pub fn refuse_token_in_query(uri: &Uri) -> Result<(), Problem> {
    let Some(query) = uri.query() else { return Ok(()) };
    let carries = url::form_urlencoded::parse(query.as_bytes()).any(|(name, value)| {
        SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
            || name.contains(TOKEN_PREFIX)
            || value.contains(TOKEN_PREFIX)
    });
    if carries {
        return Err(Problem::new(Code::Unauthenticated).saying(
            "a token belongs into the Authorization header, never into an address; it should be revoked now",
        ));
    }
    Ok(())
}

/// Under which names the server may be asked, and by which pages.
#[derive(Debug, Clone)]
pub struct Names {
    hosts: Vec<String>,
    origins: Vec<String>,
    scheme: &'static str,
}

impl Names {
    /// The names of this configuration, and the loopback ones.
    #[must_use]
    pub fn new(config: &HttpConfig) -> Self {
        let configured = config.allowed_hosts.iter().map(|host| host.to_ascii_lowercase());
        Self {
            hosts: ["localhost", "127.0.0.1", "[::1]"]
                .map(str::to_owned)
                .into_iter()
                .chain(configured)
                .collect(),
            origins: config.allowed_origins.clone(),
            scheme: if config.tls_terminated { "https" } else { "http" },
        }
    }

    /// Refuses a request under a foreign name, or from a foreign page.
    ///
    /// # Errors
    /// `forbidden`, naming the header.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let authority = self.own_authority(headers, uri).ok_or_else(|| refused("Host"))?;
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let origin = only(headers, &header::ORIGIN).ok_or_else(|| refused("Origin"))?;
        // Byte for byte: a browser sends its origin in one spelling, and every looser rule was a hole somewhere.
        let own = origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://"));
        if own == Some(&authority) || self.origins.iter().any(|allowed| allowed == origin) {
            return Ok(());
        }
        Err(refused("Origin"))
    }

    /// The authority that was asked, in lower case, if its name is one of ours. Any port: a proxy may map it.
    fn own_authority(&self, headers: &HeaderMap, uri: &Uri) -> Option<String> {
        let host = match (headers.contains_key(header::HOST), uri.authority()) {
            (true, None) => only(headers, &header::HOST)?,
            (false, Some(authority)) => authority.as_str(),
            (true, Some(authority)) if only(headers, &header::HOST)? == authority.as_str() => {
                authority.as_str()
            }
            (true, Some(_)) | (false, None) => return None,
        };
        let host = host.to_ascii_lowercase();
        let (name, port) = split_port(&host);
        let port_is_fine = port.is_none_or(|port| port.parse::<u16>().is_ok());
        (port_is_fine && self.hosts.iter().any(|own| own == name)).then(|| host.clone())
    }
}

/// A header's text, if it stands there exactly once and is plain text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        // The colons of a bare `[::1]` are no port.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn refused(name: &'static str) -> Problem {
    Problem::new(Code::Forbidden)
        .saying(format!(
            "this server does not answer to that {name}; its configuration lists the names it answers to"
        ))
        .detail("header", name)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).expect("a header value"));
        }
        headers
    }

    fn check(host: &str, origin: Option<&str>) -> bool {
        let config = HttpConfig {
            allowed_hosts: vec!["Spaces.example".to_owned()],
            allowed_origins: vec!["https://console.example".to_owned()],
            ..HttpConfig::default()
        };
        let mut headers = headers(&[("host", host)]);
        if let Some(origin) = origin {
            headers.append("origin", HeaderValue::from_str(origin).expect("a header value"));
        }
        Names::new(&config).check(&headers, &Uri::from_static("/api/v1/capabilities")).is_ok()
    }

    #[test]
    fn c01_only_names_of_ours_are_answered() {
        for host in ["localhost", "LOCALHOST:7000", "127.0.0.1:7000", "[::1]", "[::1]:7000", "spaces.example"]
        {
            assert!(check(host, None), "{host}");
        }
        for host in [
            "evil.example:7000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:7000@evil.example",
            "localhost:evil",
            "localhost:70000",
            "::1",
            "",
            "0.0.0.0:7000",
        ] {
            assert!(!check(host, None), "{host}");
        }
        let names = Names::new(&HttpConfig::default());
        let two = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(names.check(&two, &Uri::from_static("/")).is_err(), "two Host headers");
        assert!(names.check(&HeaderMap::new(), &Uri::from_static("/")).is_err(), "no Host header");
        let absolute = Uri::from_static("http://evil.example/");
        assert!(
            names.check(&headers(&[("host", "localhost")]), &absolute).is_err(),
            "the address says another"
        );
    }

    #[test]
    fn c02_an_origin_is_ours_byte_for_byte_or_refused() {
        assert!(check("127.0.0.1:7000", Some("http://127.0.0.1:7000")));
        assert!(check("127.0.0.1:7000", Some("https://console.example")));
        for origin in [
            "http://127.0.0.1.evil.example",
            "null",
            "http://127.0.0.1:7001",
            "http://127.0.0.1",
            "https://127.0.0.1:7000",
            "HTTP://127.0.0.1:7000",
            "http://localhost:7000",
            "https://Console.example",
            "https://console.example:443",
            "http://127.0.0.1:7000/",
            "",
        ] {
            assert!(!check("127.0.0.1:7000", Some(origin)), "{origin}");
        }
        assert!(!check("evil.example:7000", Some("http://evil.example:7000")), "rebinding: both agree");
    }

    #[test]
    fn c04_a_token_stands_in_one_header_and_nowhere_else() {
        let token = |pairs: &[(&'static str, &str)]| bearer(&headers(pairs)).map(Sensitive::into_exposed);
        assert_eq!(token(&[("authorization", "Bearer bst_x")]).as_deref(), Some("bst_x"));
        assert_eq!(token(&[("authorization", "bearer  bst_x")]).as_deref(), Some("bst_x"));
        assert_eq!(token(&[("authorization", "Bearer ")]), None, "an empty token is no token");
        assert_eq!(token(&[("authorization", "Bearer")]), None);
        assert_eq!(token(&[("authorization", "Basic bst_x")]), None);
        assert_eq!(token(&[("authorization", "Bearer a b")]), None);
        assert_eq!(token(&[("authorization", &format!("Bearer {}", "x".repeat(257)))]), None);
        assert_eq!(token(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]), None);
        assert_eq!(token(&[("cookie", "token=bst_x")]), None);
    }

    #[test]
    fn f10_a_token_in_an_address_is_refused_and_not_printed() {
        for query in [
            "?token=SECRET",
            "?a=1&Access_Token=SECRET",
            "?%74oken=SECRET",
            "?q=bst_SECRET",
            "?bst_SECRET=1",
            "?a=1&%62st_SECRET",
            "?token",
        ] {
            let uri: Uri = format!("/api/v1/log{query}").parse().expect("an address");
            let problem = refuse_token_in_query(&uri).expect_err(query);
            assert_eq!(problem.code(), Code::Unauthenticated);
            assert!(!format!("{problem:?}").contains("SECRET"));
        }
        assert!(refuse_token_in_query(&Uri::from_static("/x?limit=1&cursor=token")).is_ok());
    }
}
