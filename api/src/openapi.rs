//! The surface as an OpenAPI 3.1 document: one table of operations, the bodies of [`crate::http`], the codes of
//! [`crate::problem`] and the kinds of events as closed lists. Checked in as `docs/openapi.json`.

mod operations;
mod parameters;
mod requests;

use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use self::{
    operations::{Given, OPERATIONS, Operation, Reply, TAGS},
    parameters::PARAMETERS,
};
use crate::{
    http::wire::{self, event},
    problem::Code,
};

/// The bodies of answers, from their own types.
#[derive(OpenApi)]
#[openapi(components(schemas(
    wire::Space,
    wire::Task,
    wire::TaskFailure,
    wire::Instance,
    wire::Policy,
    wire::Binding,
    wire::Token,
    wire::NewToken,
    wire::Artifact,
    wire::AuditEntry,
    wire::Capability,
    event::EventBody,
    event::PrincipalBody,
    crate::http::identity::Identity,
    crate::http::server::Alive,
    crate::http::server::Ready,
    crate::http::server::Draining,
    crate::http::downloads::Download,
    crate::http::downloads::DownloadApproval,
    crate::audit::LogReport,
    crate::http::evidence::CheckpointBody,
)))]
struct Bodies;

const DESCRIPTION: &str = "browserspace gives every agent a browser of its own and records every step.\n\n\
    Success is {\"data\": …}; a list is {\"data\": […], \"next\": cursor or null}; an error is {\"data\": null, \"error\": \
    {\"code\", \"message\", \"details\"?, \"retryable\"}}. Every answer carries x-request-id, traceparent and x-log-position: \
    whatever lies up to that position of the log was taken into account. Unknown fields and parameters are refused.\n\n\
    A token stands in the Authorization header and nowhere else. An agent acts on its own Spaces, an operator on every Space \
    of its Workspaces, an auditor reads and changes nothing.";

/// The text of `docs/openapi.json`.
#[must_use]
pub fn json() -> String {
    let mut text = serde_json::to_string_pretty(&document())
        .expect("the document has no map with keys that are no text");
    text.push('\n');
    text
}

/// Every operation: its method, its path, and whether it needs a token.
#[cfg(test)]
pub(crate) fn routes() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    OPERATIONS.iter().map(|operation| (operation.method, operation.path, operation.given == Given::Token))
}

fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "browserspace",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "tags": TAGS.iter().map(|(name, description)| json!({ "name": name, "description": description })).collect::<Vec<_>>(),
        "paths": paths(),
        "components": {
            "schemas": schemas(),
            "parameters": parameters(),
            "headers": header_components(),
            "responses": { "Error": error_response() },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of this server: bst_ and 43 characters. It is shown once, when it is made.",
                },
            },
        },
    })
}

fn schemas() -> Value {
    let bodies = serde_json::to_value(Bodies::openapi()).expect("the bodies are JSON");
    let mut schemas = bodies["components"]["schemas"].as_object().cloned().unwrap_or_default();
    schemas["Event"]["properties"]["kind"]["enum"] = event::kinds().collect();
    schemas["TaskFailure"]["properties"]["code"] = json!({ "$ref": "#/components/schemas/ErrorCode" });
    schemas.insert("ErrorCode".to_owned(), error_codes());
    schemas.insert("Error".to_owned(), error_schema());
    for (name, schema) in requests::schemas() {
        schemas.insert(name.to_owned(), schema);
    }
    Value::Object(schemas)
}

fn error_codes() -> Value {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "string",
        "description": "A stable code. New ones may be added; treat an unknown one by its HTTP status and `retryable`.",
        "enum": codes,
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "The body of every answer that is no success.",
        "required": ["data", "error"],
        "properties": {
            "data": { "type": "null" },
            "error": {
                "type": "object",
                "required": ["code", "message", "retryable"],
                "properties": {
                    "code": { "$ref": "#/components/schemas/ErrorCode" },
                    "message": { "type": "string", "description": "One sentence for a person." },
                    "details": { "type": "object", "description": "Names of fields, ids and numbers; never a value that was sent." },
                    "retryable": { "type": "boolean", "description": "Whether the same request is sensible later." },
                },
            },
        },
    })
}

fn parameters() -> Value {
    let parameters = PARAMETERS.iter().map(|parameter| {
        let body = json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.place == "path",
            "description": parameter.description,
            "schema": parameter.schema(),
        });
        (parameter.name.to_owned(), body)
    });
    Value::Object(parameters.collect())
}

/// The headers of every answer.
const HEADERS: [(&str, &str, &str); 3] = [
    ("x-request-id", "string", "Names this request in the server's log."),
    ("traceparent", "string", "W3C Trace Context of this request."),
    ("x-log-position", "integer", "Whatever lies up to this position of the log was taken into account."),
];

fn header_components() -> Value {
    let headers = HEADERS.iter().map(|(name, kind, description)| {
        ((*name).to_owned(), json!({ "description": description, "schema": { "type": kind } }))
    });
    Value::Object(headers.collect())
}

fn headers() -> Value {
    let headers = HEADERS
        .iter()
        .map(|(name, ..)| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") })));
    Value::Object(headers.collect())
}

fn error_response() -> Value {
    json!({
        "description": "Refused or failed.",
        "headers": headers(),
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    })
}

fn paths() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        item[operation.method] = self::operation(operation);
    }
    Value::Object(paths)
}

fn operation(operation: &Operation) -> Value {
    let mut body = json!({
        "tags": [operation.tag],
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description,
        "parameters": parameter_references(operation),
        "responses": responses(operation),
    });
    if let Some((name, required)) = operation.body {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        let mut content = json!({ "schema": schema });
        if name == "SubmitTask" {
            content["examples"] = requests::submit_examples();
        }
        body["requestBody"] = json!({ "required": required, "content": { "application/json": content } });
    }
    body["security"] = match operation.given {
        Given::Anybody => json!([]),
        Given::Token => json!([{ "token": [] }]),
    };
    body
}

fn parameter_references(operation: &Operation) -> Vec<Value> {
    let in_path = PARAMETERS.iter().filter(|parameter| {
        parameter.place == "path" && operation.path.contains(&format!("{{{}}}", parameter.name))
    });
    let others = operation.parameters.iter().copied();
    in_path
        .map(|parameter| parameter.name)
        .chain(others)
        .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
        .collect()
}

fn responses(operation: &Operation) -> Value {
    let mut responses = Map::new();
    for (status, description) in operation.answers {
        let mut response = json!({ "description": description, "headers": headers() });
        if *status != 204 {
            response["content"] = content(&operation.reply);
        }
        responses.insert(status.to_string(), response);
    }
    let mut errors: Vec<(u16, Vec<&str>)> = Vec::new();
    for code in operation.errors().filter(|code| code.status().is_some()) {
        let status = code.status().map_or(500, |status| status.as_u16());
        match errors.iter_mut().find(|(known, _)| *known == status) {
            Some((_, codes)) => codes.push(code.as_str()),
            None => errors.push((status, vec![code.as_str()])),
        }
    }
    errors.sort_unstable();
    for (status, codes) in errors {
        let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
        let description = format!("Codes: {}.", codes.join(", "));
        responses.insert(status.to_string(), json!({ "description": description, "content": content }));
    }
    responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Error" }));
    Value::Object(responses)
}

fn content(reply: &Reply) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let one = |name: &str| json!({ "type": "object", "required": ["data"], "properties": { "data": reference(name) } });
    let list = |name: &str| {
        json!({
            "type": "object",
            "required": ["data", "next"],
            "properties": {
                "data": { "type": "array", "items": reference(name) },
                "next": { "type": ["string", "null"], "description": "Asks for the rest, where there is one. Opaque." },
            },
        })
    };
    match reply {
        Reply::One(name) => json!({ "application/json": { "schema": one(name) } }),
        Reply::List(name) => json!({ "application/json": { "schema": list(name) } }),
        Reply::Events => json!({
            "application/json": { "schema": list("Event") },
            "text/event-stream": {
                "schema": { "type": "string" },
                "example": "id: 1\ndata: {\"sequence\":1,\"position\":7,\"kind\":\"opened\",…}\n\n: heartbeat\n\n",
            },
        }),
        Reply::File => json!({ "*/*": { "schema": { "type": "string", "format": "binary" } } }),
        Reply::Text(media_type) => json!({ *media_type: { "schema": { "type": "string" } } }),
        Reply::Document => json!({ "application/json": { "schema": { "type": "object" } } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_is_checked_in() {
        crate::generated::compare("docs/openapi.json", &json());
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                        let pointer = reference.strip_prefix('#').expect("references stay in the document");
                        assert!(document.pointer(pointer).is_some(), "{reference}");
                    }
                    fields.values().for_each(|value| check(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
    }

    #[test]
    fn every_parameter_of_a_path_is_described_and_every_id_is_its_own() {
        let document = document();
        let mut ids = std::collections::BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for operation in item.as_object().expect("operations").values() {
                assert!(ids.insert(operation["operationId"].to_string()), "{path}");
                let parameters = operation["parameters"].to_string();
                for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                    assert!(parameters.contains(&format!("parameters/{name}\"")), "{path}: {name}");
                }
            }
        }
    }

    #[test]
    fn the_route_that_makes_a_workspace_does_not_miss_one() {
        let paths = &document()["paths"];
        let tokens = &paths["/api/v1/workspaces/{workspace_id}/tokens"];
        assert_eq!(tokens["post"]["responses"]["404"], Value::Null);
        assert_eq!(tokens["get"]["responses"]["404"]["description"], "Codes: workspace_not_found.");
    }

    #[test]
    fn the_kinds_of_events_are_a_closed_list() {
        let kinds = document()["components"]["schemas"]["Event"]["properties"]["kind"]["enum"].clone();
        let kinds: Vec<String> = serde_json::from_value(kinds).expect("a list of texts");
        for kind in ["opened", "queued", "closed", "reserved", "token_issued", "booted"] {
            assert!(kinds.iter().any(|known| known == kind), "{kind}");
        }
    }
}
