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
        ("Nothing", object(&[], json!({}))),
    ]
}

fn create_space() -> Value {
    object(
        &["browser_instance_id", "owner_type", "owner_id", "granted_capabilities"],
        json!({
            "browser_instance_id": id("ins_", "Which browser to hold."),
            "binding_id": id("bnd_", "By which right, where the instance does not name the Workspace itself."),
            "owner_type": { "type": "string", "enum": ["operator", "runtime_agent"] },
            "owner_id": text(128, "Whose it shall be. An agent may only name itself."),
            "granted_capabilities": texts("What its tasks may invoke.", 256),
            "idle_timeout_seconds": whole(10, 86_400, "Unused for so long, it is closed. Default: 1800."),
        }),
    )
}

fn submit_task() -> Value {
    object(
        &["request_id", "capability"],
        json!({
            "request_id": text(64, "Your own id of this submit; a repeat gives the same task."),
            "capability": text(255, "What to invoke."),
            "args": { "type": "object", "description": "As the capability's args_schema says. Never returned. Default: {}." },
            "timeout_seconds": whole(1, 600, "The task ends within so long. Default: 60."),
        }),
    )
}

fn register_instance() -> Value {
    object(
        &["kind", "bundle"],
        json!({
            "kind": { "type": "string", "enum": ["chromium", "scripted"] },
            "name": text(128, "For people."),
            "workspaces": texts("Who may reserve it without a binding. Default: your own Workspaces.", 100),
            "bundle": { "type": "string", "enum": ["standard", "trusted"] },
            "network_policy": object(&[], json!({
                "allow": texts("host or host:port that may be reached although the floor denies it.", 200),
                "deny": texts("host or host:port that may not be reached.", 200),
                "max_bytes": { "type": "integer", "minimum": 1, "description": "Bytes over the life of a Space." },
                "max_connections": whole(1, 65_535, "Connections at once."),
            })),
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
            "role": { "type": "string", "enum": ["runtime_agent", "operator", "auditor"] },
            "owner_id": text(128, "Who its bearer is."),
            "all_workspaces": { "type": "boolean", "description": "Whether it enters every Workspace. Default: false." },
            "expires_at": { "type": "string", "format": "date-time", "description": "When it ends by itself. Default: never." },
        }),
    )
}

/// Optional fields may be null as well, which says the same as leaving them out.
fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "required": required, "additionalProperties": false });
    schema["properties"] = properties;
    schema
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
