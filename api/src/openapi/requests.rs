//! The bodies that routes take. They are read field by field (`http/body.rs`), so their shape is written here, and a test
//! sends each of these fields to its route.

use serde_json::{Value, json};

/// Every request body by its name.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("CreateSpace", create_space()),
        ("SubmitTask", submit_task()),
        ("RegisterInstance", register_instance()),
        ("GrantBinding", grant_binding()),
        ("IssueToken", issue_token()),
        (
            "Drain",
            object(
                &[],
                json!({ "deadline_seconds": whole(0, 600, "Running tasks may go on for so long. Default: 30.") }),
            ),
        ),
        (
            "VerifyLog",
            object(
                &[],
                json!({
                    "deep": { "type": "boolean", "description": "Also decode every event and replay every stream. Default: false." },
                }),
            ),
        ),
        (
            "ReleaseDownload",
            object(&["declared_operator"], json!({ "declared_operator": declared_operator() })),
        ),
        (
            "RejectDownload",
            object(
                &["declared_operator", "reason"],
                json!({
                    "declared_operator": declared_operator(),
                    "reason": text(200, "Why it is not let out."),
                }),
            ),
        ),
        ("Nothing", object(&[], json!({}))),
    ]
}

fn declared_operator() -> Value {
    text(200, "Who you say that you are. Recorded beside the principal that your token names.")
}

fn create_space() -> Value {
    object(
        &["browser_instance_id", "owner_type", "owner_id", "granted_capabilities"],
        json!({
            "browser_instance_id": id("ins_", "Which browser to hold."),
            "binding_id": id("bnd_", "By which right, where the instance does not name the Workspace itself."),
            "owner_type": word(&["operator", "runtime_agent", "agent"], AGENT),
            "owner_id": text(128, "Whose it shall be. An agent may only name itself."),
            "granted_capabilities": texts("What its tasks may invoke.", 256),
            "idle_timeout_seconds": whole(10, 86_400, "Unused for so long, it is closed. Default: 1800."),
            "environment": described("What its pages are told of the place that they are in. What is left out is the browser's own.", object(&[], json!({
                "timezone": text(64, "A name of the IANA's list, like Europe/Berlin."),
                "locale": text(16, "A language and perhaps a script and a region, like de-DE."),
                "viewport": described("How large the view is, in CSS pixels. Default: 1280 × 800.", object(&["width", "height"], json!({
                    "width": whole(100, 4_096, "Its width."),
                    "height": whole(100, 4_096, "Its height."),
                }))),
                "device_scale": { "type": "number", "minimum": 0.5, "maximum": 4, "description": "Device pixels for each CSS pixel. Default: 1." },
                "colour_scheme": word(&["light", "dark"], "What pages that ask for it are told."),
                "user_agent": text(512, "The whole user agent, in printable ASCII."),
                "start_page": text(8_192, "An address of http or https that each start of the browser opens first. It is recorded, so it may hold no secret."),
                "allowed_hosts": texts("`host` or `host:port`, besides the instance's own list. Operators only.", 64),
            }))),
        }),
    )
}

fn submit_task() -> Value {
    object(
        &["request_id", "capability"],
        json!({
            "request_id": text(64, "Your own id of this submit; a repeat gives the same task."),
            "capability": text(255, "What to invoke."),
            "args": { "type": "object", "description": "As the capability's args_schema says (GET /api/v1/capabilities). Never returned. Default: {}." },
            "timeout_seconds": whole(1, 600, "The task ends within so long. Default: 60."),
        }),
    )
}

fn register_instance() -> Value {
    object(
        &["kind"],
        json!({
            "kind": { "type": "string", "enum": ["chromium", "scripted"] },
            "name": text(128, "For people."),
            "workspaces": texts("Who may reserve it without a binding. Default: your own Workspaces.", 100),
            "bundle": word(&["standard", "trusted"], "What it loads; trusted adds evaluate. Default: standard."),
            "network_policy": described("What its browser reaches beside the public web on ports 80 and 443.", object(&[], json!({
                "allow": texts("host or host:port that may be reached although it would be denied by default (private, loopback, link-local and metadata addresses, other ports); data: and blob: for documents that a page brings itself, in its frames.", 200),
                "deny": texts("host or host:port that may not be reached, nor names below it; wins over allow.", 200),
                "max_bytes": { "type": "integer", "minimum": 1, "description": "Bytes over the life of a Space." },
                "max_connections": whole(1, 65_535, "Connections at once."),
            }))),
            "headless": { "type": "boolean", "description": "Default: true." },
        }),
    )
}

fn grant_binding() -> Value {
    object(
        &["browser_instance_id"],
        json!({
            "browser_instance_id": id("ins_", "Which instance may be reserved."),
            "owner_id": text(128, "Only by this owner."),
            "capabilities": texts("Only with these capabilities.", 256),
        }),
    )
}

fn issue_token() -> Value {
    object(
        &["role", "owner_id"],
        json!({
            "role": word(&["runtime_agent", "agent", "operator", "auditor"], AGENT),
            "owner_id": text(128, "Who its bearer is."),
            "all_workspaces": { "type": "boolean", "description": "Whether it enters every Workspace. Default: false." },
            "expires_at": { "type": "string", "format": "date-time", "description": "When it ends by itself. Default: never." },
        }),
    )
}

/// One word of the command line and one of the API mean the same role.
const AGENT: &str = "runtime_agent and agent are the same; answers say runtime_agent.";

/// A submit of each capability, with its example as args: name, summary, body.
pub(super) fn submit_examples() -> Value {
    let standard = actors::capability::standard::standard();
    let examples = standard.rows().iter().map(|row| {
        let body = json!({ "request_id": "1", "capability": row.name, "args": row.example });
        (row.name.to_string(), json!({ "summary": row.summary, "value": body }))
    });
    Value::Object(examples.collect())
}

/// Optional fields may be null as well, which says the same as leaving them out.
fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "required": required, "additionalProperties": false });
    schema["properties"] = properties;
    schema
}

fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = description.into();
    schema
}

fn word(words: &[&str], description: &str) -> Value {
    json!({ "type": "string", "enum": words, "description": description })
}

fn text(most: u32, description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": most, "description": description })
}

fn id(prefix: &str, description: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{prefix}"), "description": description })
}

fn texts(description: &str, most: u32) -> Value {
    json!({
        "type": "array",
        "items": { "type": "string" },
        "uniqueItems": true,
        "maxItems": most,
        "description": description,
    })
}

fn whole(least: u64, most: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "description": description })
}
