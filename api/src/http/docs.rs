//! The surface as a document: `/openapi.json` for programs, `/docs` for people. No script, nothing from elsewhere.

use std::{fmt::Write as _, sync::LazyLock};

use axum::{
    http::{HeaderName, header},
    response::{Html, IntoResponse},
};
use serde_json::Value;

use crate::openapi;

/// For the page only: its own style sheet, and nothing else.
const POLICY: (HeaderName, &str) = (
    header::CONTENT_SECURITY_POLICY,
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

static DOCUMENT: LazyLock<String> = LazyLock::new(openapi::json);
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let document = serde_json::from_str(&DOCUMENT).expect("the document was printed a moment ago");
    render(&document)
});

const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font: 0.9em/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8884; border-radius: 0.5rem; }
details { border: 1px solid #8884; border-radius: 0.5rem; margin: 0.5rem 0; padding: 0.5rem 0.75rem; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #8884; padding: 0.25rem 0.5rem 0.25rem 0; text-align: left; vertical-align: top; }
";

/// `GET /openapi.json`
pub(crate) async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}

/// `GET /docs`
pub(crate) async fn page() -> impl IntoResponse {
    ([POLICY], Html(PAGE.as_str()))
}

/// `GET /docs/style.css`
pub(crate) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

fn render(document: &Value) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>browserspace API</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"/docs/style.css\"></head><body>",
    );
    let info = &document["info"];
    put(&mut page, format_args!("<h1>{}</h1>", escaped(&info["title"])));
    for paragraph in info["description"].as_str().unwrap_or_default().split("\n\n") {
        put(&mut page, format_args!("<p>{}</p>", escape(paragraph)));
    }
    page.push_str("<p>For programs: <a href=\"/openapi.json\">openapi.json</a></p>");
    for tag in document["tags"].as_array().into_iter().flatten() {
        section(&mut page, document, tag);
    }
    page.push_str("<h2>Bodies</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        put(
            &mut page,
            format_args!(
                "<details id=\"{0}\"><summary><code>{0}</code> {1}</summary><pre>{2}</pre></details>",
                escape(name),
                escaped(&schema["description"]),
                escape(&text)
            ),
        );
    }
    page.push_str("</body></html>");
    page
}

fn section(page: &mut String, document: &Value, tag: &Value) {
    put(page, format_args!("<h2>{}</h2><p>{}</p>", escaped(&tag["name"]), escaped(&tag["description"])));
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if operation["tags"][0] == tag["name"] {
                self::operation(page, document, path, method, operation);
            }
        }
    }
}

fn operation(page: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    put(
        page,
        format_args!(
            "<details><summary><b>{}</b> <code>{}</code><br>{}</summary>",
            escape(&method.to_uppercase()),
            escape(path),
            escaped(&operation["summary"])
        ),
    );
    put(page, format_args!("<p>{}</p>", escaped(&operation["description"])));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters.map(|parameter| resolved(document, parameter)) {
        put(
            page,
            format_args!(
                "<p><code>{}</code> ({}): {}</p>",
                escaped(&parameter["name"]),
                escaped(&parameter["in"]),
                escaped(&parameter["description"])
            ),
        );
    }
    if let Some(name) = reference(&operation["requestBody"]) {
        put(page, format_args!("<p>Body: <a href=\"#{0}\"><code>{0}</code></a></p>", escape(&name)));
    }
    examples(page, &operation["requestBody"]["content"]["application/json"]["examples"]);
    page.push_str("<table><tr><th>Status</th><th>Answer</th></tr>");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let response = resolved(document, response);
        put(page, format_args!("<tr><td>{}</td><td>{}", escape(status), escaped(&response["description"])));
        if let Some(name) = reference(response) {
            put(page, format_args!(" <a href=\"#{0}\"><code>{0}</code></a>", escape(&name)));
        }
        page.push_str("</td></tr>");
    }
    page.push_str("</table></details>");
}

fn examples(page: &mut String, examples: &Value) {
    let Some(examples) = examples.as_object() else { return };
    page.push_str("<table><tr><th>Example</th><th>Body</th></tr>");
    for example in examples.values() {
        let (summary, body) = (escaped(&example["summary"]), escape(&example["value"].to_string()));
        put(page, format_args!("<tr><td>{summary}</td><td><code>{body}</code></td></tr>"));
    }
    page.push_str("</table>");
}

/// What is meant: a part of the document, where only its place is given (`#/components/…`).
fn resolved<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    let place = part["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| document.pointer(place)).unwrap_or(part)
}

/// The first schema that a body or answer refers to.
fn reference(of: &Value) -> Option<String> {
    fn find(value: &Value) -> Option<&str> {
        match value {
            Value::Object(fields) => {
                fields.get("$ref").and_then(Value::as_str).or_else(|| fields.values().find_map(find))
            }
            Value::Array(values) => values.iter().find_map(find),
            _ => None,
        }
    }
    find(&of["content"]).and_then(|name| name.rsplit('/').next()).map(str::to_owned)
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a String takes any text");
}

fn escaped(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_route_and_runs_nothing() {
        let document: Value = serde_json::from_str(&DOCUMENT).expect("it is JSON");
        for path in document["paths"].as_object().expect("it has paths").keys() {
            assert!(PAGE.contains(&format!("<code>{path}</code>")), "{path}");
        }
        assert!(PAGE.contains("<code>after_sequence</code> (query)"), "parameters are shown");
        assert!(
            !PAGE.contains("<code></code>") && !PAGE.contains("<td>default</td><td></td>"),
            "all of them"
        );
        for active in ["<script", "javascript:", "onclick", "style=", "http://", "src="] {
            assert!(!PAGE.contains(active), "{active}");
        }
    }
}
