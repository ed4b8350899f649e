//! The story that the demo tells: create → navigate → snapshot → fill and click by ref → screenshot → replay → close.

use std::{path::Path, time::Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Interrupt, client::Client, shown};

const SPACES: &str = "/workspaces/default/browser-spaces";
const CAPABILITIES: [&str; 8] =
    ["navigate", "snapshot", "click", "fill", "wait", "screenshot", "get_title", "get_content"];
/// The shop's page fits with room to spare; of a longer one, what a step works on is shown with that step.
const SNAPSHOT_LINES_SHOWN: usize = 48;
const LINE_CHARACTERS_SHOWN: usize = 110;

/// Tells the story, one numbered step after the other.
pub(crate) struct Story {
    client: Client,
    interrupt: Interrupt,
    /// The page as it was last read.
    page: String,
    steps: u32,
}

impl Story {
    /// With a client for the server; ends early once it is interrupted.
    pub(crate) const fn new(client: Client, interrupt: Interrupt) -> Self {
        Self { client, interrupt, page: String::new(), steps: 0 }
    }

    /// All of it. The Space is closed also when a step fails; when the story is interrupted, the server's end does it.
    pub(crate) fn tell(mut self, page: &str, allowed: &str, is_shop: bool, picture: &Path) -> Result<()> {
        let space = self.create(allowed)?;
        let path = format!("{SPACES}/{space}");
        let worked = self.work(&path, page, is_shop, picture);
        self.interrupt.check()?;
        let closed = self.close(&path);
        worked.and(closed)
    }

    fn work(&mut self, space: &str, page: &str, is_shop: bool, picture: &Path) -> Result<()> {
        self.task(space, "navigate", &json!({ "url": page }), |result| {
            vec![format!("{}, HTTP {}", result["title"], result["http_status"])]
        })?;
        let text = self.snapshot(space)?;
        if is_shop {
            self.shop(space, &text)?;
        } else {
            self.any_page(space, &text)?;
        }
        self.picture(space, picture)?;
        self.replay(space)
    }

    fn create(&mut self, allowed: &str) -> Result<String> {
        let instance = self.step("register a Chromium", |client| {
            let body = json!({ "kind": "chromium", "name": "demo", "bundle": "standard", "headless": true,
                "network_policy": { "allow": [allowed] } });
            let made = client.post("/browser-instances", &body)?;
            let id = text_of(&made, "browser_instance_id")?;
            let policy = format!("its network policy lets it reach {allowed} beside the public web");
            Ok((id.clone(), vec![id, policy]))
        })?;
        self.step("create a Space on it", |client| {
            let body = json!({ "browser_instance_id": instance, "owner_type": "runtime_agent",
                "owner_id": "demo-agent", "granted_capabilities": CAPABILITIES });
            let made = client.post(SPACES, &body)?;
            let id = text_of(&made, "space_id")?;
            Ok((id.clone(), vec![format!("{id}, {}, owned by demo-agent", plain(&made["status"]))]))
        })
    }

    /// Reads the page: every line of it, up to a bound.
    fn snapshot(&mut self, space: &str) -> Result<String> {
        let result = self.task(space, "snapshot", &json!({}), |result| {
            let text = result["text"].as_str().unwrap_or_default();
            let mut lines: Vec<String> = text.lines().take(SNAPSHOT_LINES_SHOWN).map(clipped).collect();
            let rest = text.lines().count().saturating_sub(SNAPSHOT_LINES_SHOWN);
            if rest > 0 {
                lines.push(format!("… and {rest} more lines"));
            }
            lines
        })?;
        self.page = text_of(&result, "text")?;
        Ok(self.page.clone())
    }

    fn shop(&mut self, space: &str, snapshot: &str) -> Result<()> {
        let reference = |role: &str, name: &str| {
            find_ref(snapshot, role, name).with_context(|| format!("the snapshot has no {role} {name:?}"))
        };
        let add = reference("button", "Add Mountain heather")?;
        let name = reference("textbox", "Your name")?;
        let note = reference("textbox", "A note for the beekeeper")?;
        self.task(space, "click", &json!({ "ref": add }), page_state)?;
        self.task(space, "fill", &json!({ "ref": name, "text": "Ada" }), page_state)?;
        self.task(space, "fill", &json!({ "ref": note, "text": "Greetings to the bees" }), page_state)?;
        // The button was disabled when the page was first read; a ref belongs to the node and is as good now.
        let again = self.snapshot(space)?;
        let order =
            find_ref(&again, "button", "Place the order").context("there is no button to order with")?;
        self.task(space, "click", &json!({ "ref": order }), page_state)?;
        self.task(space, "wait", &json!({ "text": "Thank you, Ada" }), |_| {
            vec!["the page says: Thank you, Ada".to_owned()]
        })?;
        Ok(())
    }

    /// On a page that we do not know: type into the first field, and follow the first link.
    fn any_page(&mut self, space: &str, snapshot: &str) -> Result<()> {
        let field = find_ref(snapshot, "textbox", "").or_else(|| find_ref(snapshot, "searchbox", ""));
        if let Some(field) = field {
            self.task(space, "fill", &json!({ "ref": field, "text": "browserspace" }), page_state)?;
        }
        if let Some(link) = find_ref(snapshot, "link", "") {
            self.task(space, "click", &json!({ "ref": link }), page_state)?;
        }
        Ok(())
    }

    fn picture(&mut self, space: &str, picture: &Path) -> Result<()> {
        let result = self.task(space, "screenshot", &json!({}), |result| {
            let made = &result["artifact"];
            let hash = plain(&made["sha256"]);
            let hash = hash.get(..16).unwrap_or_default();
            vec![format!("{}, {} bytes, SHA-256 {hash}…", plain(&made["media_type"]), made["bytes"])]
        })?;
        let artifact = text_of(&result["artifact"], "artifact_id")?;
        self.step("fetch the picture", |client| {
            let bytes = client.bytes(&format!("{space}/artifacts/{artifact}"))?;
            std::fs::create_dir_all(picture.parent().context("the picture lies in a folder")?)?;
            std::fs::write(picture, bytes)?;
            Ok(((), vec![format!("saved as {}", shown(picture))]))
        })
    }

    fn replay(&mut self, space: &str) -> Result<()> {
        self.step("replay what happened", |client| {
            let events = client.get(&format!("{space}/events?after_sequence=0&limit=100"))?;
            let events = events.as_array().context("events are a list")?;
            Ok(((), events.iter().map(event_line).collect()))
        })
    }

    fn close(&mut self, space: &str) -> Result<()> {
        self.step("close the Space", |client| {
            let closed = client.post(&format!("{space}/close"), &json!({}))?;
            Ok(((), vec![plain(&closed["status"])]))
        })
    }

    fn task(
        &mut self,
        space: &str,
        capability: &str,
        args: &Value,
        show: impl FnOnce(&Value) -> Vec<String>,
    ) -> Result<Value> {
        let number = self.steps + 1;
        let mut lines = Vec::from_iter(args["ref"].as_str().and_then(|wanted| line_of(&self.page, wanted)));
        self.step(&format!("{capability} {args}"), |client| {
            let result = client.task(space, number, capability, args)?;
            lines.extend(show(&result));
            Ok((result, lines))
        })
    }

    fn step<T>(&mut self, asked: &str, work: impl FnOnce(&Client) -> Result<(T, Vec<String>)>) -> Result<T> {
        self.interrupt.check()?;
        self.steps += 1;
        println!("\n{:>2}. {}", self.steps, clipped(asked));
        let begun = Instant::now();
        let (value, lines) = work(&self.client).with_context(|| format!("step {}: {asked}", self.steps))?;
        self.interrupt.check()?;
        let took = begun.elapsed();
        lines.iter().for_each(|line| println!("      {line}"));
        println!("      ({} ms)", took.as_millis());
        Ok(value)
    }
}

/// The ref of the first line with this role and, in it, this name: `e12 button "Add to basket"`.
fn find_ref(snapshot: &str, role: &str, name: &str) -> Option<String> {
    snapshot.lines().find_map(|line| {
        // Before the first quotation mark the line holds only our own words, never the page's.
        let (ours, said) = line.split_once('"').unwrap_or((line, ""));
        let mut words = ours.split_whitespace();
        let reference = words.next().filter(|word| is_ref(word))?;
        (words.next() == Some(role) && said.starts_with(name)).then(|| reference.to_owned())
    })
}

fn is_ref(word: &str) -> bool {
    word.strip_prefix('e')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

fn page_state(result: &Value) -> Vec<String> {
    let effect = plain(&result["effect"]);
    let place = ["url", "title"].iter().filter_map(|key| result[*key].as_str()).find(|text| !text.is_empty());
    vec![
        place.map_or_else(
            || format!("{effect}; a new page is on its way"),
            |place| format!("{effect}: {place}"),
        ),
    ]
}

/// What a step works on: the line of the snapshot that begins with this ref.
fn line_of(snapshot: &str, wanted: &str) -> Option<String> {
    let line = snapshot.lines().map(str::trim_start).find(|line| line.split(' ').next() == Some(wanted))?;
    Some(clipped(line))
}

fn event_line(event: &Value) -> String {
    let principal = &event["principal"];
    let who = match &principal["id"] {
        Value::String(id) => format!("{} {id}", plain(&principal["kind"])),
        _ => plain(&principal["kind"]),
    };
    let line = format!(
        "{:>4}  {}  {who:<17}  {:<15}  {}",
        plain(&event["sequence"]),
        plain(&event["recorded_at"]),
        plain(&event["kind"]),
        about(event)
    );
    line.trim_end().to_owned()
}

/// What one would ask about an event of this kind.
fn about(event: &Value) -> String {
    let payload = &event["payload"];
    match event["kind"].as_str() {
        Some("started" | "recovered") => format!("generation {}", payload["generation"]),
        Some("completed") => {
            let result = &payload["result"];
            let said = ["effect", "url", "title"].iter().filter_map(|key| result[*key].as_str());
            let made = payload["artifacts"].as_array().into_iter().flatten();
            let made = made.filter_map(|artifact| artifact["media_type"].as_str());
            clipped(&said.chain(made).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("  "))
        }
        Some("failed") => plain(&payload["error"]["code"]),
        _ => {
            let found = ["capability", "reason", "code"].iter().find_map(|key| payload.get(*key));
            found.map(plain).unwrap_or_default()
        }
    }
}

fn text_of(value: &Value, key: &str) -> Result<String> {
    value[key].as_str().map(str::to_owned).with_context(|| format!("the answer has no {key}: {value}"))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn clipped(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARACTERS_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{about, event_line, find_ref, line_of};

    #[test]
    fn a_ref_is_found_by_role_and_name_and_not_in_what_the_page_says() {
        let snapshot =
            " h1 \"Honey\"\n \"e1 button\"\n  e12 button \"Add heather\"\n e7 textbox \"Name\" required\n";
        assert_eq!(find_ref(snapshot, "button", "Add").as_deref(), Some("e12"));
        assert_eq!(find_ref(snapshot, "textbox", "").as_deref(), Some("e7"));
        assert_eq!(find_ref(snapshot, "link", ""), None);
    }

    #[test]
    fn a_step_shows_the_line_that_its_ref_means() {
        let snapshot = " h1 \"e12\"\n  e1 link \"Home\"\n   e12 button \"Add heather\"\n";
        assert_eq!(line_of(snapshot, "e12").as_deref(), Some("e12 button \"Add heather\""));
        assert_eq!(line_of(snapshot, "e2"), None);
    }

    #[test]
    fn an_event_is_told_with_who_and_with_what_came_of_it() {
        let started = json!({ "sequence": 3, "recorded_at": "T", "kind": "started",
            "principal": { "kind": "operator", "id": "me" }, "payload": { "generation": 1 } });
        assert_eq!(event_line(&started), "   3  T  operator me        started          generation 1");
        let completed = |payload| about(&json!({ "kind": "completed", "payload": payload }));
        let url = "http://a.example/";
        assert_eq!(
            completed(json!({ "result": { "effect": "navigated", "url": url } })),
            format!("navigated  {url}")
        );
        assert_eq!(
            completed(json!({ "result": {}, "artifacts": [{ "media_type": "image/png" }] })),
            "image/png"
        );
        let failed = json!({ "kind": "failed", "payload": { "error": { "code": "stale_ref" } } });
        assert_eq!(about(&failed), "stale_ref");
    }
}
