//! Which addresses an agent may open and which pages may be read.

use url::Url;

use crate::error::Error;

/// The longest address, in bytes.
pub(crate) const URL_BYTES_MAX: usize = 8192;

/// Documents that a page brings itself, so that no proxy sees them.
const INLINE_SCHEMES: [&str; 2] = ["data", "blob"];

/// Checks an address that an agent wants to open: http, https or about:blank.
pub(crate) fn may_open(address: &str) -> Result<Url, Error> {
    if address.len() > URL_BYTES_MAX {
        return Err(Error::invalid(format!("the address is longer than {URL_BYTES_MAX} bytes")));
    }
    let url = Url::parse(address)
        .map_err(|_| Error::invalid("the address is not absolute; begin it with https:// or http://"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        "about" if url.as_str() == "about:blank" => Ok(url),
        _ => Err(Error::BlockedByPolicy { rule: "scheme", sent: false }),
    }
}

/// Whether a page that a tab came to show may be read; the browser's own error page may.
pub(crate) fn may_show(address: &str) -> bool {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    matches!(scheme, "" | "http" | "https" | "about" | "chrome-error")
        && !(scheme == "about"
            && !matches!(address, "about:blank" | "about:srcdoc")
            && !address.starts_with("about:blank#"))
}

/// Whether a frame inside a page may show an address. `inline` are the schemes of documents that the page brings itself.
pub(crate) fn may_show_inside(address: &str, inline: &[String]) -> bool {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    may_show(address) || (INLINE_SCHEMES.contains(&scheme) && inline.iter().any(|allowed| allowed == scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_and_the_blank_page_may_be_opened() {
        for address in
            ["http://a.example/", "https://a.example:8443/x?y#z", "about:blank", "HTTP://a.example"]
        {
            assert!(may_open(address).is_ok(), "{address}");
        }
        for address in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            " file:///x",
            "chrome://version",
            "view-source:http://a.example/",
            "javascript:alert(1)",
            "data:text/html,x",
            "blob:http://a.example/1",
            "about:version",
            "filesystem:http://a/x",
            "devtools://devtools/x",
            "mailto:a@a.example",
            "chrome-error://chromewebdata/",
        ] {
            assert!(matches!(may_open(address), Err(Error::BlockedByPolicy { .. })), "{address}");
        }
        assert!(matches!(may_open("no address"), Err(Error::InvalidArgs { .. })));
    }

    #[test]
    fn a_page_that_came_to_another_scheme_is_not_read() {
        assert!(
            may_show("https://a.example/")
                && may_show("about:blank")
                && may_show("chrome-error://chromewebdata/")
        );
        for address in
            ["file:///x", "data:text/html,x", "blob:http://a/1", "chrome://version", "about:version"]
        {
            assert!(!may_show(address), "{address}");
        }
        let inline = ["data".to_owned(), "file".to_owned()];
        assert!(may_show_inside("data:text/html,x", &inline) && may_show_inside("https://a.example/", &[]));
        for address in ["data:text/html,x", "blob:http://a/1", "filesystem:http://a/x"] {
            assert!(!may_show_inside(address, &[]), "{address}");
        }
        assert!(!may_show_inside("file:///x", &inline) && !may_show_inside("blob:http://a/1", &inline));
    }
}
