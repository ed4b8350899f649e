//! What a caller sends, read once and strictly: bodies, query parameters and headers become domain types here.
//!
//! Every refusal names the field and never its value. serde's own messages quote what they did not like, so they never
//! leave this file: a body becomes a JSON value first, and its fields are taken out one by one.

use std::{borrow::Cow, fmt, ops::RangeInclusive, str::FromStr};

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse as _,
};
use eventlog::Json;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number};
use tokio::time::timeout_at;

use super::exchange::Exchange;
use crate::problem::{Code, Problem};

/// A phrase that says what a field must be: "must be a text".
pub(crate) type Phrase = Cow<'static, str>;

/// The longest field name that a refusal repeats, in bytes.
const SHOWN_NAME_BYTES_MAX: usize = 64;

/// A request's body as it came; reading it fails only when it is asked for, so that 403 and 404 come before 422.
#[derive(Debug)]
pub(crate) struct RawBody(Result<Bytes, Problem>);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let form = plain_json(request.headers());
        let until = request.extensions().get::<Exchange>().map(|exchange| exchange.deadline);
        let reading = Bytes::from_request(request, state);
        let bytes = match until {
            None => reading.await,
            Some(until) => match timeout_at(until.into(), reading).await {
                Ok(bytes) => bytes,
                // Nothing was asked yet, so nothing can have been recorded.
                Err(_) => {
                    let status = StatusCode::REQUEST_TIMEOUT;
                    return Ok(Self(Err(not_as_documented(status, "the body did not arrive in time"))));
                }
            },
        };
        Ok(Self(match bytes {
            Ok(bytes) if bytes.is_empty() => Ok(bytes),
            Ok(bytes) => form.map(|()| bytes),
            Err(rejection) => Err(match rejection.into_response().status() {
                status @ StatusCode::PAYLOAD_TOO_LARGE => {
                    not_as_documented(status, "the body is larger than it may be")
                }
                _ => not_as_documented(StatusCode::BAD_REQUEST, "the body did not arrive whole"),
            }),
        }))
    }
}

impl RawBody {
    /// The fields of the body's object.
    pub(crate) fn fields(self) -> Result<Fields, Problem> {
        Fields::of_body(&self.0?)
    }

    /// The same, for routes whose body may be left out.
    pub(crate) fn fields_or_none(self) -> Result<Fields, Problem> {
        let bytes = self.0?;
        if bytes.is_empty() { Ok(Fields::default()) } else { Fields::of_body(&bytes) }
    }

    /// Refuses any field, for routes that take none.
    pub(crate) fn nothing(self) -> Result<(), Problem> {
        self.fields_or_none()?.finish()
    }
}

/// Refuses whatever says that it is not plain JSON in UTF-8: it would be read as something else than was meant.
///
/// Source: RFC 9110, sections 8.3 (type) and 8.4 (encoding); RFC 8259, section 8.1 (JSON is UTF-8).
fn plain_json(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |message| Err(not_as_documented(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut encodings = encodings.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    if !encodings.all(|encoding| encoding.trim_ascii().eq_ignore_ascii_case(b"identity")) {
        return refuse("the body must not be compressed");
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else {
        return refuse("the body must be application/json");
    };
    let mut parts = kind.to_str().unwrap_or_default().split(';').map(str::trim);
    if !parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return refuse("the body must be application/json");
    }
    let named = parts.filter_map(|part| part.split_once('='));
    let mut charsets = named
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"'));
    if charsets.all(|charset| charset.eq_ignore_ascii_case("utf-8")) {
        Ok(())
    } else {
        refuse("the body must be in UTF-8")
    }
}

/// An `invalid_request` about the request as a whole.
pub(crate) fn not_as_documented(status: StatusCode, message: &'static str) -> Problem {
    Problem::new(Code::InvalidRequest).with_status(status).saying(message)
}

/// The fields of one JSON object, taken out one by one; what is left at the end is unknown.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    fields: Map<String, Json>,
    /// Where the object stands in the body: empty, or `network_policy.`.
    prefix: String,
}

impl Fields {
    fn of_body(bytes: &[u8]) -> Result<Self, Problem> {
        match strict_json(bytes)? {
            Json::Object(fields) => Ok(Self { fields, prefix: String::new() }),
            _ => Err(Problem::invalid("body", "must be an object")),
        }
    }

    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Json) -> Result<T, Phrase>,
    ) -> Result<T, Problem> {
        self.optional(name, read)?.ok_or_else(|| Problem::invalid(&self.path(name), "is missing"))
    }

    /// A field that may be left out or null.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Json) -> Result<T, Phrase>,
    ) -> Result<Option<T>, Problem> {
        match self.fields.shift_remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => read(value).map(Some).map_err(|phrase| Problem::invalid(&self.path(name), phrase)),
        }
    }

    /// An object inside this one; empty where it is left out.
    pub(crate) fn inner(&mut self, name: &'static str) -> Result<Self, Problem> {
        let fields = self.optional(name, object)?.unwrap_or_default();
        Ok(Self { fields, prefix: format!("{}.", self.path(name)) })
    }

    /// Whether there is nothing left to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => Err(Problem::invalid(&self.path(shown(name)), "is not a field of this request")),
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// A name that a caller chose, if it is short, plain and no token; anything else is not repeated.
fn shown(name: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let fits = !name.is_empty() && name.len() <= SHOWN_NAME_BYTES_MAX && name.bytes().all(plain);
    if fits && !name.contains("bst_") { name } else { "(a name that is not shown)" }
}

/// Any text.
pub(crate) fn text(value: Json) -> Result<String, Phrase> {
    match value {
        Json::String(text) => Ok(text),
        _ => Err("must be a text".into()),
    }
}

/// An id or bounded name; the message of its own error never quotes it.
pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(value: Json) -> Result<T, Phrase> {
    parse_text(&text(value)?)
}

/// The same, from a parameter.
pub(crate) fn parse_text<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, Phrase> {
    text.parse().map_err(|error: T::Err| Phrase::from(error.to_string()))
}

/// A whole number in a range.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Fn(Json) -> Result<u64, Phrase> {
    move |value| {
        let wanted = || format!("must be a whole number from {} to {}", range.start(), range.end()).into();
        value.as_u64().filter(|number| range.contains(number)).ok_or_else(wanted)
    }
}

/// The same, from a parameter: digits only, so that there is one spelling.
pub(crate) fn whole_text(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, Phrase> {
    move |text| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && range.contains(number));
        number
            .ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()).into())
    }
}

/// Any number.
#[expect(clippy::needless_pass_by_value, reason = "readers take the value out of its object")]
pub(crate) fn number(value: Json) -> Result<f64, Phrase> {
    value.as_f64().ok_or_else(|| "must be a number".into())
}

/// `true` or `false`.
#[expect(clippy::needless_pass_by_value, reason = "readers take the value out of its object")]
pub(crate) fn flag(value: Json) -> Result<bool, Phrase> {
    value.as_bool().ok_or_else(|| "must be true or false".into())
}

/// An object of any shape.
pub(crate) fn object(value: Json) -> Result<Map<String, Json>, Phrase> {
    match value {
        Json::Object(fields) => Ok(fields),
        _ => Err("must be an object".into()),
    }
}

/// One of a closed list of words.
pub(crate) fn choice<T: Copy>(words: &'static [(&'static str, T)]) -> impl Fn(Json) -> Result<T, Phrase> {
    move |value| choice_text(words)(value.as_str().unwrap_or_default())
}

/// The same, from a parameter.
pub(crate) fn choice_text<T: Copy>(
    words: &'static [(&'static str, T)],
) -> impl Fn(&str) -> Result<T, Phrase> {
    move |text| {
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            format!("must be one of {}", words.join(", ")).into()
        })
    }
}

/// A list of at most so many entries, none of them twice.
pub(crate) fn list<T: PartialEq>(
    most: usize,
    read: impl Fn(Json) -> Result<T, Phrase>,
) -> impl Fn(Json) -> Result<Vec<T>, Phrase> {
    move |value| {
        let Json::Array(values) = value else { return Err("must be a list".into()) };
        if values.len() > most {
            return Err(format!("must have at most {most} entries").into());
        }
        let mut entries = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let entry = read(value).map_err(|phrase| Phrase::from(format!("entry {index} {phrase}")))?;
            if entries.contains(&entry) {
                return Err(format!("entry {index} stands there twice").into());
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The parameters of a query, taken out one by one like [`Fields`].
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Of this query.
    pub(crate) fn new(query: Option<&str>) -> Self {
        Self(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// A parameter that may be left out; an empty one is there, and means nothing.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Phrase>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        read(&text).map(Some).map_err(|phrase| Problem::invalid(name, phrase))
    }

    /// A parameter's text as it is, for cursors: they have an error of their own.
    pub(crate) fn take(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        let (mut found, rest): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(other, _)| other == name);
        self.0 = rest;
        if found.len() > 1 {
            return Err(Problem::invalid(name, "stands there twice"));
        }
        Ok(found.pop().map(|(_, text)| text))
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::invalid(shown(name), "is not a parameter of this request")),
        }
    }
}

/// JSON in which no name stands twice in one object (RFC 7493, section 2.3) and nothing is nested deeper than 127.
///
/// Two readers of a repeated name may see two different values, one of which nobody checked.
fn strict_json(bytes: &[u8]) -> Result<Json, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        // `error` may quote the text, so only its place is told.
        let problem = if error.is_data() {
            Problem::new(Code::InvalidRequest).saying("a name stands twice in one object of the body")
        } else {
            not_as_documented(StatusCode::BAD_REQUEST, "the body is not JSON, or nested too deeply")
        };
        problem.detail("line", error.line()).detail("column", error.column())
    })
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Json;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element_seed(Strict)? {
            list.push(entry);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Strict)?;
            if map.insert(name, value).is_some() {
                return Err(de::Error::custom("a name stands twice"));
            }
        }
        Ok(Json::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(body: &str) -> Result<Fields, Problem> {
        RawBody(Ok(Bytes::copy_from_slice(body.as_bytes()))).fields()
    }

    #[test]
    fn what_is_not_json_is_400_and_says_where() {
        for body in ["", "{", "{]", "\u{0}", "{\"a\": 1e999}", "{\"a\": \"\\ud800\"}", "{} {}", "nul"] {
            let problem = fields(body).expect_err(body);
            assert_eq!(problem.status(), StatusCode::BAD_REQUEST, "{body:?}");
        }
        assert!(strict_json(&[b'"', 0xff, b'"']).is_err(), "bytes that are no UTF-8");
    }

    #[test]
    fn a_depth_bomb_is_refused_and_not_followed() {
        let body = format!("{{\"args\": {}", "[".repeat(200_000));
        assert_eq!(fields(&body).expect_err("a bomb").status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_name_that_stands_twice_is_refused_at_any_depth() {
        for body in ["{\"a\": 1, \"a\": 2}", "{\"args\": [{\"url\": \"x\", \"\\u0075rl\": \"y\"}]}"] {
            assert_eq!(fields(body).expect_err(body).status(), StatusCode::UNPROCESSABLE_ENTITY);
        }
    }

    #[test]
    fn a_refusal_names_the_field_and_never_the_value() {
        let read = |body: &str| -> Result<(), Problem> {
            let mut fields = fields(body)?;
            fields.required("timeout_seconds", whole(1..=600))?;
            let mut inner = fields.inner("network_policy")?;
            inner.optional("allow", list(2, text))?;
            inner.finish()?;
            fields.finish()
        };
        for (body, field) in [
            ("{}", "timeout_seconds"),
            ("{\"timeout_seconds\": \"SECRET\"}", "timeout_seconds"),
            ("{\"timeout_seconds\": 601}", "timeout_seconds"),
            ("{\"timeout_seconds\": 1.5}", "timeout_seconds"),
            ("{\"timeout_seconds\": -1}", "timeout_seconds"),
            ("{\"timeout_seconds\": 1, \"colour\": \"SECRET\"}", "colour"),
            ("{\"timeout_seconds\": 1, \"bst_SECRET\": 1}", "(a name that is not shown)"),
            ("{\"timeout_seconds\": 1, \"a\\u001b[31m SECRET\": 1}", "(a name that is not shown)"),
            ("{\"timeout_seconds\": 1, \"network_policy\": [\"SECRET\"]}", "network_policy"),
            ("{\"timeout_seconds\": 1, \"network_policy\": {\"x\": 1}}", "network_policy.x"),
            (
                "{\"timeout_seconds\": 1, \"network_policy\": {\"allow\": [\"SECRET\", 1]}}",
                "network_policy.allow",
            ),
            (
                "{\"timeout_seconds\": 1, \"network_policy\": {\"allow\": [\"SECRET\", \"SECRET\"]}}",
                "network_policy.allow",
            ),
            ("[]", "body"),
        ] {
            let problem = read(body).expect_err(body);
            assert_eq!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
            let text = format!("{problem:?}");
            assert!(text.contains(&format!("String(\"{field}\")")), "{body}: {text}");
            assert!(!text.contains("SECRET"), "{body}: {text}");
        }
        read("{\"timeout_seconds\": 600, \"network_policy\": null}").expect("it is as documented");
    }

    #[test]
    fn a_parameter_stands_once_and_is_known() {
        let read = |query: &str| -> Result<Option<u64>, Problem> {
            let mut params = Params::new(Some(query));
            let limit = params.optional("limit", whole_text(1..=100))?;
            params.finish().map(|()| limit)
        };
        assert_eq!(read("limit=7"), Ok(Some(7)));
        assert_eq!(read(""), Ok(None));
        for bad in ["limit=0", "limit=101", "limit=%2B7", "limit=-1", "limit=x", "limit=7&limit=8", "page=1"]
        {
            assert_eq!(read(bad).expect_err(bad).code(), Code::InvalidRequest);
        }
    }
}
